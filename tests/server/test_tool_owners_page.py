"""The page for tool owners: its examples run as they stand."""

import re
from pathlib import Path
from typing import Any

import pytest

from .kit import call, lookup, new_key, serving

PAGE = (Path(__file__).parents[2] / "docs" / "tool-owners.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=["fastmcp", "mcp"])
def test_an_example_of_the_page_is_short_and_runs_each_key_once(
    example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sum(bool(line) for line in example.splitlines()) < 15
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(example, "tool-owners.md", "exec", dont_inherit=True), names)
    key = new_key()
    with serving(names["server"]) as url:
        tasks = "TasksExtension" in names
        first = call(url, "generate_report", {"month": "2026-10"}, key=key, tasks=tasks)
        assert call(url, "generate_report", {"month": "2026-10"}, key=key, tasks=tasks) == first
        found = lookup(url, key, "generate_report")
    if tasks:
        assert found["taskId"] == first["result"]["taskId"]
    else:
        assert found["result"]["content"] == [{"type": "text", "text": "the report of 2026-10"}]
    assert (tmp_path / "keys.sqlite3").stat().st_mode & 0o777 == 0o600


def test_the_page_names_every_code_a_keyed_call_is_refused_with() -> None:
    sources = (Path(__file__).parents[2] / "server" / "errors.py").read_text()
    codes = set(re.findall(r'"(E_[A-Z_]+)"', sources))
    assert codes == set(re.findall(r"E_[A-Z_]+", PAGE))
