"""`make bench`, `make bench-million`, `make bench-kill`: what is wanted comes by environment, as make hands it on."""

import os
import sys

from .field import BenchError
from .full import Plan, run_full
from .kill import run_kill
from .million import run_million
from .quick import run_quick


def main() -> int:
    get = os.environ.get

    def flag(name: str) -> bool:
        return get(name, "") not in ("", "0")

    what = sys.argv[1] if len(sys.argv) > 1 else ""
    try:
        if what == "kill":
            return 0 if run_kill() else 1
        if what == "million":
            return 0 if run_million(float(get("SECONDS", "") or (60 if flag("QUICK") else 600))) else 1
        if flag("QUICK"):
            return 0 if run_quick() else 1
        run_full(
            Plan(
                rounds=int(get("ROUNDS") or Plan.rounds),
                paced=int(get("PACED") or Plan.paced),
                burst=int(get("BURST") or Plan.burst),
                only=tuple(filter(None, get("ONLY", "").split(","))),
            )
        )
    except BenchError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
