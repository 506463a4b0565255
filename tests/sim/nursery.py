"""Where mutants are made and played: a process that has loaded everything but the product, and forks for each.

Run by its path (`python nursery.py`), so that nothing of `counterfoil` is loaded here. One JSON line in (`mutant`,
`url`,
`standby`, `superuser`, `first`: where its runs' tags begin), one out.
"""

import gc
import importlib.util
import json
import logging
import os
import shutil
import sys
import tempfile
import time
import traceback
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def _load(name: str) -> Any:
    """A neighbour by its path: importing it as a part of the package would load the package."""
    spec = importlib.util.spec_from_file_location(f"nursery_{name}", HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


mutants = _load("mutants")

WRONG_PATCH = (NameError, ImportError, SyntaxError, AttributeError, TypeError)
"""What a patch raises that is no mutant but a mistake."""


def main() -> None:
    _load_others()
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="counterfoil-mutants-") as name:
        pristine = Path(name) / "pristine"
        mutants.copy_product(pristine)
        everyone = {mutant.name: mutant for mutant in (mutants.CONTROL, *mutants.load_mutants())}
        for line in sys.stdin:
            told = json.loads(line)
            folder = Path(name) / "mutant"
            began = time.perf_counter()
            try:
                mutants.make(everyone[told["mutant"]], pristine, folder)
                said = mutants.in_a_fork(partial(_live, everyone[told["mutant"]], folder, told))()
            except mutants.DoesNotApply as error:
                said = json.dumps({"killed": False, "why": f"does not apply: {error}"})
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            answer = json.loads(said) if said.startswith("{") else {"killed": False, "why": said}
            print(json.dumps(answer | {"mutant": told["mutant"], "took_s": time.perf_counter() - began}), flush=True)


def _load_others() -> None:
    """What every child would have to load."""
    for name in (
        "alembic.command",
        "celery",
        "cryptography.fernet",
        "httpx",
        "jsonschema_rs",
        "psutil",
        "psycopg",
        "pydantic",
        "redis",
        "rfc8785",
        "sqlalchemy.dialects.postgresql.psycopg",
        "sqlalchemy.orm",
        "yaml",
    ):
        __import__(name)


def _live(mutant: Any, folder: Path, told: dict[str, Any]) -> str:
    """In the child: load the mutated copy and play until somebody notices."""
    gc.disable()
    sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in repr(finder).lower()]
    sys.path.insert(0, str(folder))
    import counterfoil

    assert (counterfoil.__file__ or "").startswith(str(folder)), counterfoil.__file__
    from counterfoil.tests.sim.campaign import Stage
    from counterfoil.tests.sim.families import FAMILIES
    from counterfoil.tests.sim.probes import probe

    url = told["url"]
    if mutants.touches_migrations(mutant):
        url = _own_database(told)
    stage = Stage(url, told["standby"], statements=mutant.tier == "B", first=told["first"])
    if mutant.by == ("probes",):
        found = probe(stage.db)
        return json.dumps({"killed": bool(found), "runs": 1, "why": (found or ["nobody noticed"])[0], "by": "probes"})
    unknown = [family for family in mutant.by if family not in FAMILIES]
    if unknown:
        return json.dumps({"killed": False, "why": f"no such family: {unknown}"})
    runs = 0
    parent = os.getppid()
    for family, seed in mutant.tries():
        runs += 1
        if os.getppid() != parent:
            os._exit(1)  # nobody listens any more
        try:
            violations = stage.draw(FAMILIES[family], seed).violations
        except WRONG_PATCH:
            return json.dumps({"killed": False, "why": f"the patch is wrong: {traceback.format_exc()[-600:]}"})
        except Exception as error:  # noqa: BLE001  the product broke, which is noticed too
            violations = (f"{type(error).__name__}: {str(error)[:200]}",)
        if violations:
            return json.dumps({"killed": True, "runs": runs, "why": violations[0][:300], "by": family, "seed": seed})
    return json.dumps({"killed": False, "runs": runs, "why": "nobody noticed"})


def _own_database(told: dict[str, Any]) -> str:
    """A database made by the mutated migrations."""
    from counterfoil.ledger import migrate
    from counterfoil.tests.sim.ledgerdb import create_database

    url = create_database(told["superuser"], told["url"], f"mutant_{told['first']}")
    migrate.upgrade(url)
    return url


if __name__ == "__main__":
    main()
