"""Traces: the operation's own trace holds its submit, whatever is asked later links to it, and off means off."""

import json
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from counterfoil.adapters.contract import Answered, NoAnswer, Request, Sent
from counterfoil.ledger.client import Client
from counterfoil.ledger.states import Lane
from counterfoil.workers import actions as act
from counterfoil.workers import telemetry
from counterfoil.workers.drive import Drive
from counterfoil.workers.jobs import Pace
from counterfoil.workers.settings import Settings, SettingsError
from counterfoil.workers.telemetry import OtelTracing, check_otel, make_tracing
from counterfoil.workers.traces import submit_span, traceparent

from .kit_peer import PATIENCE_S, GatedBucket, serving
from .kit_world import targets

OPERATION = uuid.UUID("0193a0f0-0000-7000-8000-000000000001")


@pytest.fixture
def spans() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracing(spans: InMemorySpanExporter) -> Iterator[OtelTracing]:
    made = OtelTracing(SimpleSpanProcessor(spans), "main")
    yield made
    made.close()


def test_a_call_is_one_trace_and_each_poll_a_linked_root(
    database: str, tracing: OtelTracing, spans: InMemorySpanExporter
) -> None:
    client = Client(database)
    with serving() as peer:
        heard: list[Any] = []
        answer = peer.tasks.answer

        def listening(request: Request) -> Answered:
            message = json.loads(request.body)
            if message["method"] == "tools/call":
                heard.append(message["params"]["_meta"]["traceparent"])
            return answer(request)

        peer.tasks.answer = listening  # type: ignore[method-assign]
        drive = Drive(
            database,
            targets("a", url=peer.url),
            GatedBucket(),
            pace=Pace(),
            ended=lambda _: None,
            tracing=tracing,
        )
        drive.start()
        try:
            operation = client.submit("a", "work", {}, call_node_id="n")
            drive.kick(Lane.SUBMIT, "a")
            polled = threading.Event()
            for _ in range(int(PATIENCE_S / 0.05)):
                if any(span.name == "counterfoil.poll" for span in spans.get_finished_spans()):
                    break
                polled.wait(0.05)  # real time: a poll comes at the server's pace
        finally:
            assert drive.stop(PATIENCE_S)
            client.close()
    found = spans.get_finished_spans()
    (submit,) = [span for span in found if span.name == "counterfoil.submit" and not span.links]
    assert submit.context.trace_id == operation.id.int
    assert submit.context.span_id == submit_span(operation.id, 1)
    assert submit.parent is None
    assert heard == [traceparent(operation.id, 1)]
    assert submit.attributes is not None
    assert submit.attributes["counterfoil.operation_id"] == str(operation.id)
    assert submit.attributes["http.response.status_code"] == 200
    (poll, *_) = [span for span in found if span.name == "counterfoil.poll"]
    assert poll.parent is None
    assert poll.context.trace_id != submit.context.trace_id
    assert [(link.context.trace_id, link.context.span_id) for link in poll.links] == [
        (submit.context.trace_id, submit.context.span_id)
    ]
    assert "counterfoil.negotiate" in {span.name for span in found}


def sending(lane: Lane, effect: Any = None) -> act.Send:
    about = act.About(OPERATION, lane, "work", 1)
    return act.Send(1, "a", "", Request("POST", "http://127.0.0.1:1/", effect=effect), about)


def test_the_request_carries_the_context_of_its_own_span(tracing: OtelTracing, spans: InMemorySpanExporter) -> None:
    with tracing.span(sending(Lane.POLL)) as span:
        ((name, value),) = span.request.headers
        span.answered(Answered(200))
    (finished,) = spans.get_finished_spans()
    assert (name, value.split("-")[1]) == ("traceparent", f"{finished.context.trace_id:032x}")
    assert finished.kind is SpanKind.CLIENT


@pytest.mark.parametrize("reply", [Answered(503), NoAnswer(Sent.MAYBE, "cut")], ids=["503", "no answer"])
def test_what_did_not_work_is_an_error(
    tracing: OtelTracing, spans: InMemorySpanExporter, reply: Answered | NoAnswer
) -> None:
    with tracing.span(sending(Lane.POLL)) as span:
        span.answered(reply)
    (finished,) = spans.get_finished_spans()
    assert finished.status.status_code is StatusCode.ERROR


def test_a_request_that_broke_off_ends_its_span(tracing: OtelTracing, spans: InMemorySpanExporter) -> None:
    with pytest.raises(RuntimeError), tracing.span(sending(Lane.POLL)):
        raise RuntimeError("the transport broke")
    (finished,) = spans.get_finished_spans()
    assert finished.attributes is not None
    assert finished.attributes["error.type"] == "RuntimeError"


def test_the_context_is_the_same_in_every_process_and_another_one_for_another_attempt() -> None:
    assert traceparent(OPERATION, 1) == f"00-{OPERATION.hex}-{submit_span(OPERATION, 1):016x}-01"
    assert traceparent(OPERATION, 1) == traceparent(uuid.UUID(OPERATION.hex), 1)
    assert submit_span(OPERATION, 1) != submit_span(OPERATION, 2)


def test_off_nothing_of_it_is_made_and_nothing_is_imported() -> None:
    """By us: redis-py imports the SDK by itself where it finds one."""
    assert make_tracing(Settings()) is None
    code = "import sys, counterfoil.workers.telemetry; print([n for n in sys.modules if n.startswith('opentelemetry')])"
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert told.stdout == "[]\n"


def test_on_and_not_installed_is_told_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "find_spec", lambda _: None)
    check_otel(Settings())
    with pytest.raises(SettingsError, match="counterfoil\\[otel\\]") as caught:
        check_otel(Settings(otel=True))
    assert caught.value.code == "E_EXTRA"
