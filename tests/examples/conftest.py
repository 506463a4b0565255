"""The example packages as an installer leaves them: on the path, with the entry points of their own pyproject."""

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from counterfoil.adapters import plugins

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Every example package of this repository, for as long as its tests run."""
    site = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        for file in EXAMPLES.glob("*/pyproject.toml"):
            patch.syspath_prepend(str(file.parent))
            project = tomllib.loads(file.read_text())["project"]
            folder = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
            folder.mkdir()
            (folder / "METADATA").write_text(
                f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
            )
            lines = [
                line
                for group, entries in project["entry-points"].items()
                for line in (f"[{group}]", *(f"{name} = {value}" for name, value in entries.items()))
            ]
            (folder / "entry_points.txt").write_text("\n".join(lines))
        plugins.offered.cache_clear()
        yield
    plugins.offered.cache_clear()
    sys.modules.pop("counterfoil_openai_responses", None)
