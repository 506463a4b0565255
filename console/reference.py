"""The pages of docs/ that say what the program knows: `python -m counterfoil.console.reference` writes them.

docs/errors.md whole; in docs/targets.md and docs/cli.md what stands between `<!-- generated: NAME -->` and
`<!-- end -->`. A test keeps them in step.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from typer.core import TyperGroup
from typer.main import get_command

from ..ledger.housekeeping import KEPT_DAYS
from ..workers.metrics import FAMILIES, counted
from ..workers.target_keys import Key, all_keys
from .codes import SECTIONS, Section
from .exits import MEANS

DOCS = Path(__file__).parent.parent / "docs"

_BLOCK = re.compile(r"(<!-- generated: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)

_ERRORS_HEAD = """\
# Codes
Every error, refusal and case of Counterfoil bears a stable code. Texts may change, codes don't. `counterfoil explain
E_CODE` says what stands here. Made from `console/codes.py` by `python -m counterfoil.console.reference`; a test keeps
it in step.
"""


def pages() -> Iterator[tuple[Path, str]]:
    """Each page with what it should hold."""
    yield DOCS / "errors.md", _ERRORS_HEAD + "".join(f"\n## {s.title}\n{_section(s)}" for s in SECTIONS)
    for name, blocks in _BLOCKS.items():
        page = DOCS / name
        yield page, _with(blocks, page.read_text(encoding="utf-8"))


def _with(blocks: Mapping[str, Callable[[], str]], text: str) -> str:
    return _BLOCK.sub(lambda found: f"{found[1]}{blocks[found[2]]()}{found[3]}", text)


def _section(section: Section) -> str:
    outcomes = any(entry.outcome for entry in section.entries)
    steps = any(entry.then for entry in section.entries)
    columns = ["code", *(["outcome"] if outcomes else []), "means", *(["do next"] if steps else [])]
    rows = (
        [
            ", ".join(f"`{code}`" for code in entry.codes),
            *([entry.outcome] if outcomes else []),
            entry.means,
            *([entry.then] if steps else []),
        ]
        for entry in section.entries
    )
    return _table(columns, rows) + (f"\n{section.note}\n" if section.note else "")


def _keys(*where: str) -> str:
    return _table(("key", "takes", "default", "means"), (_key_row(key) for key in all_keys() if key.where in where))


def _key_row(key: Key) -> list[str]:
    return [f"`{key.name}`", key.kind, key.default, key.means]


def _exits() -> str:
    return _table(("exit code", "means"), ([str(int(code)), words] for code, words in MEANS.items()))


def _commands() -> str:
    from .cli import program  # noqa: PLC0415  the program itself, which has no need of this module

    def below(command: object, path: str) -> Iterator[list[str]]:
        if isinstance(command, TyperGroup):
            for name, child in command.commands.items():
                yield from below(child, f"{path} {name}")
        else:
            yield [f"`{path.strip()}`", str(getattr(command, "help", "")).strip().partition("\n")[0]]

    return _table(("command", "does"), below(get_command(program()), ""))


def _metrics() -> str:
    gauges = (
        (f"`counterfoil_{x.name}`", "gauge", ", ".join(f"`{label}`" for label in x.labels), x.means) for x in FAMILIES
    )
    counts = (
        (f"`{metric.name}{'_total' if metric.type == 'counter' else ''}`", metric.type, labels, metric.documentation)
        for metric, labels in counted()
    )
    return _table(("metric", "kind", "labels", "means"), (*gauges, *counts))


def _kept() -> str:
    rows = ((f"`{kind}`", "for ever" if days is None else f"{days} days") for kind, days in KEPT_DAYS.items())
    return _table(("kind", "kept after its end"), rows)


_BLOCKS: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "targets.md": {
        "keys-of-a-target": lambda: _keys("a target"),
        "keys-of-both": lambda: _keys("a target or a tool"),
        "keys-of-a-tool": lambda: _keys("a tool"),
    },
    "cli.md": {"exit-codes": _exits, "commands": _commands},
    "operate/signals.md": {"metrics": _metrics},
    "operate/housekeeping.md": {"kept": _kept},
}


def _table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(columns)
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def write() -> None:
    """Write every page."""
    for path, text in pages():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
