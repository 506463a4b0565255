"""The picture of the states, drawn from `EDGES`. `python -m counterfoil.ledger.diagram` writes docs/states.md."""

from itertools import groupby
from pathlib import Path

from .states import EDGES, OPEN, TERMINAL, Lane, State

PAGE = Path(__file__).parent.parent / "docs" / "states.md"

_HEAD = """\
# States of an operation

Generated from `EDGES` in `ledger/states.py` by `python -m counterfoil.ledger.diagram`; a test keeps it in step.

An arrow is a legal move; its label names the lanes whose evidence may cause it (`door` is a caller's own transaction).
Whatever is not drawn can't happen. `ACCEPTED`, `CANCELLED_ACCEPTED` and `REFUSED` are the ends: they absorb, and only
`accept_terminal` writes them, together with the receipt. A verdict (a person's, or the policy's `on_unknown`) may take
any other state to `ACCEPTED`; where that is all an arrow says it is not drawn.

"""


def mermaid() -> str:
    """The table of edges as a Mermaid state diagram, in the order of the states."""
    lines = ["stateDiagram-v2", f"    [*] --> {State.SUBMITTING}"]
    order = {state: place for place, state in enumerate(State)}
    drawn = [pair for pair in EDGES if EDGES[pair] != {Lane.DOOR} or pair[1] is not State.ACCEPTED]
    for source, target in sorted(drawn, key=lambda pair: (order[pair[0]], order[pair[1]])):
        lanes = ", ".join(lane for lane in Lane if lane in EDGES[source, target])
        lines.append(f"    {source} --> {target}: {lanes}")
    lines += [f"    {state} --> [*]" for state in State if state in TERMINAL]
    return "\n".join(lines) + "\n"


def _table() -> str:
    """The same edges to read and to search, one line a source."""
    lines = ["| from | to (lanes) |", "|---|---|"]
    order = list(State)
    edges = sorted(EDGES.items(), key=lambda edge: (order.index(edge[0][0]), order.index(edge[0][1])))
    for source, moves in groupby(edges, key=lambda edge: edge[0][0]):
        told = [f"`{target}` ({', '.join(lane for lane in Lane if lane in lanes)})" for (_, target), lanes in moves]
        lines.append(f"| `{source}` | {' · '.join(told)} |")
    assert {source for source, _ in EDGES} == OPEN
    return "\n".join(lines) + "\n"


def page() -> str:
    """The whole page, Markdown."""
    return f"{_HEAD}```mermaid\n{mermaid()}```\n\n{_table()}"


def write(path: Path = PAGE) -> None:
    """Write the page, making its folder where there is none."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write()
