"""Declared APIs, their answers, and how an exchange goes."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from counterfoil.adapters import presets
from counterfoil.adapters.contract import Answered, Call, Endpoint, Exchange, RemoteTask, Reply, Request, Search

T = TypeVar("T")

BASE = "http://127.0.0.1:1"
KEY = "6f1c3f5e-0000-8000-8000-000000000000"
CALL = Call("report", b'{"month":"2026-10"}', KEY, 60.0, made_at_s=1_764_410_400.0)
SEARCH = Search("report", KEY, 1, "")

JOBS: Mapping[str, Any] = {
    "routes": {
        "submit": "POST /jobs",
        "status": "GET /jobs/{id}",
        "result": "GET /jobs/{id}/result",
        "cancel": "POST /jobs/{id}/cancel",
        "lookup": "GET /jobs?key={key}",
    },
    "key": {"header": "Idempotency-Key", "reused_statuses": [422]},
}
"""A job API with a route for everything; its words are those of the preset `plain`."""

REPORTS: Mapping[str, Any] = {
    "routes": {"submit": "POST /v1/reports:generate", "lookup": "GET /v1/operations?filter=requestId={key}"},
    "key": {"body": "requestId"},
}


def jobs(*layers: Mapping[str, Any], preset: str | None = "plain", url: str = BASE, **more: Any) -> Endpoint:
    """A target of `http-202`."""
    api = presets.declared("http-202", preset, *(layers or (JOBS,))).text()
    return Endpoint("reports", url, max_response_bytes=2000, api=api, **more)


def without(*routes: str) -> Mapping[str, Any]:
    """A layer over JOBS that takes routes away."""
    return {"routes": dict.fromkeys(routes)}


def reports(*layers: Mapping[str, Any], url: str = BASE, **more: Any) -> Endpoint:
    """A target of `aip-151`."""
    api = presets.declared("aip-151", None, *(layers or (REPORTS,))).text()
    return Endpoint("reports", url, max_response_bytes=2000, api=api, **more)


def says(status: int, value: object = None, **headers: str) -> Answered:
    """A JSON answer; header names with `_` for `-`."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Answered(status, {"content-type": "application/json"} | named, json.dumps(value).encode())


def bare(status: int, body: bytes = b"", **headers: str) -> Answered:
    return Answered(status, {name.replace("_", "-"): text for name, text in headers.items()}, body)


def run(exchange: Exchange[T], *replies: Reply) -> tuple[T, Sequence[Request]]:
    """The outcome, and what was asked for it; each request is answered with the next reply."""
    sent: list[Request] = []
    left = iter(replies)
    try:
        sent.append(next(exchange))
        while True:
            sent.append(exchange.send(next(left, None) or _asked_for_more(sent[-1])))
    except StopIteration as stop:
        assert len(sent) == len(replies), "an answer was left over"
        outcome: T = stop.value
        return outcome, sent


def _asked_for_more(request: Request) -> Reply:
    raise AssertionError(f"asked for more: {request.method} {request.url}")


def task(task_id: str = "j-1", **more: Any) -> RemoteTask:
    return RemoteTask(task_id, **more)
