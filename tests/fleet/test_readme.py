"""The README's first code block does what it says, on a real fleet."""

import os
import re
import subprocess
import sys
from pathlib import Path

from .conftest import Fleet

README = Path(__file__).parents[2] / "README.md"


def test_the_first_code_block_of_the_readme_prints_its_receipt_and_finds_it_again(fleet: Fleet) -> None:
    """Run as it stands, in a process of its own, twice: the second run finds the same operation."""
    found = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert found is not None
    targets = Path(fleet.environ["COUNTERFOIL_TARGETS_FILE"])
    targets.write_text(targets.read_text().replace("  tools:", "  reports:", 1))
    fleet.start(solo=True)
    fleet.until("the target is announced", lambda: _announced(fleet), 20)
    said = [
        subprocess.run(
            [sys.executable, "-c", found[1]],
            env=fleet.environ,
            cwd=fleet.folder,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for _ in range(2)
    ]
    assert said[0].split() == ["succeeded", "{'node':", "None}"]
    assert said[0] == said[1]
    (operation,) = fleet.client.operations()
    assert operation.call_node_id == "run-42/step-3"
    assert os.environ.get("COUNTERFOIL_DATABASE_URL") is None


def _announced(fleet: Fleet) -> bool:
    from sqlalchemy import select

    from counterfoil.ledger.tables import target_state

    with fleet.client._database.autocommit() as connection:
        return connection.execute(select(target_state.c.target)).first() is not None
