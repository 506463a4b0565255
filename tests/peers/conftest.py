"""Peers that are not Python are tried where they are there; what is not there is told at the end of the run."""

import shutil

import pytest

from counterfoil.tests.fleet.conftest import fleet, server

__all__ = ["fleet", "server"]

NODE_TESTS = [
    "test_check_everything.py",
    "test_input_round_everything.py",
    "test_node_producer.py",
    "test_server_everything.py",
]
collect_ignore = [] if shutil.which("node") else NODE_TESTS


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for name in collect_ignore:
        terminalreporter.write_line(f"NOT TRIED: tests/peers/{name}: there is no `node` on the PATH.", yellow=True)
