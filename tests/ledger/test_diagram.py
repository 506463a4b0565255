"""docs/states.md is generated."""

from pathlib import Path

from counterfoil.ledger import diagram
from counterfoil.ledger.states import EDGES, State


def test_the_page_in_docs_is_in_step_with_the_table_of_edges() -> None:
    assert diagram.PAGE.read_text(encoding="utf-8") == diagram.page(), "run `python -m counterfoil.ledger.diagram`"


def test_every_edge_and_every_state_is_on_the_page(tmp_path: Path) -> None:
    diagram.write(tmp_path / "new" / "states.md")
    page = (tmp_path / "new" / "states.md").read_text(encoding="utf-8")
    assert all(state in diagram.mermaid() for state in State)
    rows = {line.split("`")[1]: line for line in page.splitlines() if line.startswith("| `")}
    assert all(f"`{target}`" in rows[source] for source, target in EDGES)
