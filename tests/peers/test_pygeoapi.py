"""pygeoapi, a real server of OGC API Processes, through the whole loop with the preset `ogc` alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from counterfoil.ledger.states import Lane

from .kit_loop import PATIENCE_S, Loop, Server, serving

ARGUMENTS: dict[str, object] = {"inputs": {"month": "2026-10"}}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving("pygeoapi_server.py", tmp_path) as made:
        yield made


@pytest.fixture
def loop(server: Server, database: str) -> Iterator[Loop]:
    with Loop(database, url=server.url, protocol="http-202", preset="ogc") as made:
        yield made


def test_a_job_is_submitted_read_and_its_result_fetched(loop: Loop, server: Server) -> None:
    loop.submit("slow", ARGUMENTS)
    loop.until("it works", lambda: server.effects() == ["began 2026-10"])
    loop.until("its job is known", lambda: loop.client.get("node").state == "WORKING")
    server.release()
    receipt = loop.client.wait("node", timeout_s=PATIENCE_S)
    assert (receipt.outcome, receipt.result) == ("succeeded", {"id": "report", "value": "2026-10"})
    assert server.effects() == ["began 2026-10", "done 2026-10"]


def test_a_dismissed_job_works_on_and_a_case_asks_for_its_effects(loop: Loop, server: Server) -> None:
    """The answer to the dismissal says `dismissed`, the job is gone at once, and its worker comes to its end."""
    loop.submit("slow", ARGUMENTS)
    loop.until("it works", lambda: server.effects() == ["began 2026-10"])
    loop.until("its job is known", lambda: loop.client.get("node").state == "WORKING")
    loop.client.cancel("node")
    loop.kick(Lane.CANCEL)
    receipt = loop.client.wait("node", timeout_s=PATIENCE_S)
    assert (receipt.outcome, receipt.effects_possible) == ("cancelled", True)
    (case,) = loop.client.get("node").cases
    assert (case.kind, case.closed_at) == ("EFFECT_RECONCILIATION_REQUIRED", None)
    server.release()
    loop.until("the dismissed job came to its end", lambda: server.effects()[1:] == ["done 2026-10"])
    assert loop.client.receipt("node") == receipt
