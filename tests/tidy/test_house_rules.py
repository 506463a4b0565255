"""The rules of the house that no stock linter knows."""

import ast
import re
import sys
from pathlib import Path

import pytest

import counterfoil
from counterfoil.ledger import migrate

ROOT = Path(__file__).resolve().parents[2]

CELERY_TIMERS = re.compile(r"countdown *=|(?<![_a-z])eta *=|\.retry\(|autoretry_for")

# Which packages of others each ground floor may import, with the files that may import more.
ALLOWED = {
    "ledger": (
        {"pydantic", "sqlalchemy", "psycopg", "rfc8785"},
        {"migrations": {"alembic", "counterfoil"}, "migrate.py": {"alembic"}},
    ),
    "adapters": (
        {"pydantic", "mcp_types"},
        {"wire_aiohttp.py": {"aiohttp", "certifi"}, "wire_httpx.py": {"httpx"}},
    ),
}


def python_files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def imports(path: Path) -> set[str]:
    """Return the top names of what a file imports absolutely."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            names.add(node.module)
    return {name.partition(".")[0] for name in names}


def test_time_lives_in_the_ledger_and_never_in_celery() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in [*python_files("workers", "console"), ROOT / "beat_schedule.py"]
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if CELERY_TIMERS.search(line)
    ]
    assert found == []


@pytest.mark.parametrize("floor", sorted(ALLOWED))
def test_a_ground_floor_imports_only_what_it_may(floor: str) -> None:
    everywhere, special = ALLOWED[floor]
    found = {}
    for path in python_files(floor):
        top = path.relative_to(ROOT / floor).parts[0]
        foreign = imports(path) - set(sys.stdlib_module_names) - everywhere - special.get(top, set())
        if foreign:
            found[str(path.relative_to(ROOT))] = foreign
    assert found == {}


def test_the_schedule_is_data_only() -> None:
    assert imports(ROOT / "beat_schedule.py") <= set(sys.stdlib_module_names)


def test_the_front_door_is_sorted_and_everything_in_it_opens() -> None:
    names = list(counterfoil.__all__)
    assert names == sorted(names)
    assert [name for name in names if getattr(counterfoil, name) is None] == []


def test_the_tables_and_the_migrations_say_the_same(database: str) -> None:
    assert migrate.check(database) == []
