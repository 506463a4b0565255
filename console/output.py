"""What a command prints: data on stdout, one table or one JSON object a line; everything else on stderr."""
# ruff: noqa: PLC0415 - heavy imports wait until they are needed: `--help` takes 0.2 s instead of 1 s

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated

import typer


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"


Output = Annotated[Format, typer.Option("--output", "-o", metavar="table|json", help="json: one object a line.")]


def say(text: str) -> None:
    """Tell a person something that is not the command's data."""
    print(clean(text, keep="\n"), file=sys.stderr, flush=True)


def clean(text: str, keep: str = "") -> str:
    """Text safe for a terminal: servers choose parts of it, so escape sequences and bidi marks become visible."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


def print_json(value: Mapping[str, object]) -> None:
    """One object, one line, in ASCII."""
    print(json.dumps(value, separators=(",", ":"), allow_nan=False), flush=True)


def print_facts(facts: Iterable[tuple[str, object]]) -> None:
    """Names and values, one pair a line; what is None is left out."""
    known = [(name, clean(str(value))) for name, value in facts if value is not None]
    width = max(len(name) for name, _ in known)
    for name, value in known:
        print(f"{name:<{width}}  {value}", flush=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Aligned columns. In a pipe nothing is cut, so that what is found can be used."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text("-" if cell is None else clean(str(cell))) for cell in row))
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(
            console.width, console.measure(table, options=console.options.update(max_width=10_000)).maximum
        )
    console.print(table)
