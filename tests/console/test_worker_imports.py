"""What a worker holds in memory: what its targets and settings need, and nothing of what others might."""

import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import environment_of

TARGETS = """
targets:
  jobs: {url: 'http://127.0.0.1:9', protocol: http-202, routes: {submit: POST /jobs, status: 'GET /jobs/{id}'},
    statuses: {working: [running], completed: [completed]}}
"""

# The command itself, up to the moment in which Celery would fork its children.
UNTIL_THE_FORK = """
import sys
from celery.worker import WorkController
from counterfoil.console.cli import main

WorkController.start = lambda worker: print(*sys.modules)
sys.argv = ["counterfoil", "worker"]
main()
"""


@pytest.fixture
def loaded(database: str, broker: str, tmp_path: Path) -> set[str]:
    """The modules of a worker with one target, which speaks http-202."""
    (tmp_path / "targets.yaml").write_text(TARGETS)
    settings = environment_of(DATABASE_URL=database, BROKER_URL=broker, TARGETS_FILE=str(tmp_path / "targets.yaml"))
    command = [sys.executable, "-P", "-c", UNTIL_THE_FORK]
    told = subprocess.run(command, env=settings, cwd=tmp_path, capture_output=True, text=True, check=True)
    return set(told.stdout.split())


def test_a_worker_loads_what_it_needs_before_the_fork_and_nothing_that_only_others_need(loaded: set[str]) -> None:
    """Before the fork, since what children load each for themselves is not shared. The megabytes are what the import
    of each costs a process."""
    assert loaded >= {"aiohttp", "psycopg", "sqlalchemy.dialects.postgresql.psycopg", "counterfoil.workers.tasks"}
    assert loaded.isdisjoint(
        {
            "alembic",  # 6, with mako and pygments: migrations
            "celery.beat",  # 0.4, with its schedules: beat
            "celery.bin.celery",  # 10, with prompt_toolkit: Celery's command line and its shell
            "counterfoil.console.commands_calls",  # 1.6, with all other commands
            "cryptography.fernet",  # 7: sessions of servers, at rest
            "httpx",  # 6, with rich and pygments: webhooks
            "jsonschema_rs",  # 4: schemas of tools
            "mcp",
            "mcp_types",
            "prometheus_client",
            "pydantic_settings",  # 3
            "rich",
            "sqlalchemy.orm",
            "uvicorn",
        }
    )


def test_a_worker_loads_the_adapters_that_its_targets_name_and_no_other(loaded: set[str]) -> None:
    protocols = {"a2a", "aip151", "http202", "mcp_2025_11_25", "mcp_2026_07_28", "mcp_sync"}
    ours = {name.rpartition(".")[2] for name in loaded if name.startswith("counterfoil.adapters.")}
    assert ours & protocols == {"http202"}
