"""`check` against the npm reference server of MCP 2025-11-25."""

from pathlib import Path

from counterfoil.tests.peers.test_server_everything import everything, script

from .check_page import hold_in_step

__all__ = ["everything", "script"]


def test_the_words_about_server_everything_are_those_of_the_page(everything: str, tmp_path: Path) -> None:
    hold_in_step("everything", everything, tmp_path)
