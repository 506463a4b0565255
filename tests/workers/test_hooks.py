"""The callbacks' door: who may call back, and what is made of a body."""

import asyncio
import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from counterfoil.adapters.credentials import Credentials
from counterfoil.ledger.errors import LedgerUnavailable
from counterfoil.workers import hooks as hooks_module
from counterfoil.workers.bucket import Limit
from counterfoil.workers.hooks import MAX_BODY_BYTES, Hook, HooksApp
from counterfoil.workers.webhooks import secret_key, signed_headers

from .kit_peer import PATIENCE_S
from .kit_world import targets

SECRET = "s3cret-of-the-agent"
SIGNING = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BEARER = {"authorization": f"Bearer {SECRET}"}
PUSH = json.dumps({"statusUpdate": {"taskId": "t-1", "status": {"state": "TASK_STATE_COMPLETED"}}}).encode()


class Door:
    """The application with one hook, and a list of what it woke."""

    def __init__(self, *secrets: str, qps: float = 1.0, burst: int = 100, protocol: str = "a2a-1.0") -> None:
        self.now_s = 1000.0
        self.woken: list[tuple[str, Mapping[str, str | None]]] = []
        self.error: Exception | None = None
        self.app = HooksApp(
            {"agent": Hook(secrets or ("env:SECRET",), Limit(qps, burst, {}))},
            targets("agent", "silent", protocol=protocol),
            self._wake,
            Credentials(lambda: self.now_s, {"SECRET": SECRET, "SIGNING": SIGNING}),
            lambda: self.now_s,
        )
        self.now_s += burst / qps  # a bucket starts empty

    def _wake(self, target: str, hints: Mapping[str, str | None]) -> None:
        if self.error is not None:
            raise self.error
        self.woken.append((target, hints))

    def post(
        self,
        body: bytes = PUSH,
        headers: Mapping[str, str] = BEARER,
        path: str = "/hooks/agent",
        method: str = "POST",
        chunks: Sequence[bytes] = (),
    ) -> int:
        return asyncio.run(self.asked(body, headers, path, method, chunks))[0]

    async def asked(
        self,
        body: bytes = PUSH,
        headers: Mapping[str, str] = BEARER,
        path: str = "/hooks/agent",
        method: str = "POST",
        chunks: Sequence[bytes] = (),
    ) -> tuple[int, dict[str, str]]:
        waiting = list(chunks or (body,))
        told: list[Mapping[str, Any]] = []

        async def receive() -> Mapping[str, Any]:
            if not waiting:
                return {"type": "http.disconnect"}
            chunk = waiting.pop(0)
            return {"type": "http.request", "body": chunk, "more_body": bool(waiting)}

        async def send(message: Mapping[str, Any]) -> None:
            told.append(message)

        raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        await self.app({"type": "http", "method": method, "path": path, "headers": raw}, receive, send)
        start, end = told
        assert end["body"] == b""
        return start["status"], {name.decode(): value.decode() for name, value in start["headers"]}


# -- who may call back -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [BEARER, {"authorization": f"bearer  {SECRET}"}, {"x-a2a-notification-token": SECRET}],
    ids=["bearer", "any case", "the reference SDK's header"],
)
def test_a_callback_with_the_secret_wakes_the_task_that_it_names(headers: Mapping[str, str]) -> None:
    door = Door()
    assert door.post(headers=headers) == 204
    assert door.woken == [("agent", {"t-1": "completed"})]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": ""},
        {"authorization": "Bearer"},
        {"authorization": f"Basic {SECRET}"},
        {"authorization": f"Bearer {SECRET}x"},
        {"authorization": f"Bearer {SECRET[:-1]}"},
        {"authorization": "Bearer s\xe9cret"},
        {"x-a2a-notification-token": ""},
        {"webhook-signature": "v1,x"},
    ],
)
def test_a_callback_without_the_secret_is_refused_and_wakes_nobody(headers: Mapping[str, str]) -> None:
    door = Door()
    assert door.post(headers=headers) == 401
    assert door.woken == []


def test_a_target_without_a_hook_is_answered_like_a_wrong_secret() -> None:
    door = Door()
    for path in ("/hooks/silent", "/hooks/nobody"):
        assert door.post(path=path) == 401
    assert door.woken == []


def test_a_body_of_somebody_without_a_secret_is_not_read() -> None:
    door = Door()
    assert door.post(headers={}, chunks=[b"x"] * 10_000) == 401


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/", "POST", 404),
        ("/hooks/", "POST", 404),
        ("/hooks/agent/", "POST", 404),
        ("/hooks/../agent", "POST", 404),
        ("/hooks/agent", "GET", 405),
        ("/hooks/agent", "PUT", 405),
    ],
)
def test_there_is_one_verb_and_one_path(path: str, method: str, status: int) -> None:
    assert Door().post(path=path, method=method) == status


def signed(body: bytes, secret: str = SIGNING, **changes: str) -> dict[str, str]:
    return {**signed_headers("evt-1", 1_700_000_000, body, [secret_key(secret)]), **changes}


def test_a_callback_that_is_signed_as_standard_webhooks_asks_is_taken() -> None:
    door = Door("env:SIGNING")
    assert door.post(headers=signed(PUSH)) == 204
    both = signed(PUSH)["webhook-signature"]
    assert door.post(headers=signed(PUSH, **{"webhook-signature": f"v1,AAAA v2,x {both}"})) == 204
    assert len(door.woken) == 2


@pytest.mark.parametrize(
    "headers",
    [
        signed(b"another body"),
        signed(PUSH, **{"webhook-id": "evt-2"}),
        signed(PUSH, **{"webhook-timestamp": "1700000001"}),
        signed(PUSH, **{"webhook-timestamp": "01700000000"}),
        signed(PUSH, **{"webhook-timestamp": "soon"}),
        signed(PUSH, **{"webhook-signature": "v1,"}),
        signed(PUSH, "whsec_" + "A" * 40),
    ],
)
def test_a_signature_over_anything_else_is_none(headers: Mapping[str, str]) -> None:
    door = Door("env:SIGNING")
    assert door.post(headers=headers) == 401


def test_while_a_secret_is_rotated_either_will_do() -> None:
    door = Door("env:SIGNING", "env:SECRET")
    assert [door.post(), door.post(headers=signed(PUSH))] == [204, 204]


def test_a_secret_that_can_not_be_had_is_the_operators_fault_and_stays_unsaid(
    caplog: pytest.LogCaptureFixture,
) -> None:
    door = Door("env:MISSING")
    assert door.post() == 503
    assert "callbacks of agent can't be judged: E_CREDENTIAL: the variable MISSING" in caplog.text
    assert SECRET not in caplog.text


# -- what is made of it ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"task": {"id": ""}}', b"\xff" * 100, b"[" * 5000])
def test_a_body_that_names_no_task_is_taken_and_wakes_nobody(body: bytes) -> None:
    door = Door()
    assert door.post(body) == 204
    assert door.woken == []


@pytest.mark.parametrize(
    ("protocol", "body", "woken"),
    [
        ("http-202", {"id": "job-7", "status": "succeeded"}, {"job-7": "succeeded"}),
        ("aip-151", {"name": "operations/7", "done": True}, {"operations/7": None}),
        # no callback of this protocol exists
        ("mcp-2026-07-28", {"method": "notifications/tasks", "params": {"taskId": "t-1"}}, None),
    ],
)
def test_the_adapter_of_the_target_says_what_a_body_names(
    protocol: str, body: object, woken: Mapping[str, str | None] | None
) -> None:
    door = Door(protocol=protocol)
    assert door.post(json.dumps(body).encode(), BEARER | {"host": "hooks.example.com"}) == 204
    assert [set(hints) for _, hints in door.woken] == ([] if woken is None else [set(woken)])


def test_a_body_over_the_cap_is_not_taken_whether_its_length_is_told_or_not() -> None:
    door = Door()
    assert door.post(headers=BEARER | {"content-length": str(MAX_BODY_BYTES + 1)}) == 413
    assert door.post(headers=BEARER | {"content-length": "-1"}) == 413
    assert door.post(chunks=[b"x" * MAX_BODY_BYTES, b"x"]) == 413
    assert door.woken == []


def test_a_body_in_pieces_is_one_body() -> None:
    door = Door()
    assert door.post(chunks=[PUSH[:7], b"", PUSH[7:]]) == 204
    assert len(door.woken) == 1


def test_a_body_that_ends_half_way_wakes_nobody() -> None:
    door = Door()

    async def cut() -> int:
        status: list[int] = []
        messages = iter([{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}])

        async def receive() -> Mapping[str, Any]:
            return next(messages)

        async def send(message: Mapping[str, Any]) -> None:
            status.append(message.get("status", 0))

        raw = [(name.encode(), value.encode()) for name, value in BEARER.items()]
        await door.app({"type": "http", "method": "POST", "path": "/hooks/agent", "headers": raw}, receive, send)
        return status[0]

    assert asyncio.run(cut()) == 400
    assert door.woken == []


def test_a_sender_that_drips_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks_module, "BODY_S", 0.05)
    door = Door()

    async def drip() -> int:
        status: list[int] = []

        async def receive() -> Mapping[str, Any]:
            await asyncio.Event().wait()
            raise AssertionError

        async def send(message: Mapping[str, Any]) -> None:
            status.append(message.get("status", 0))

        raw = [(name.encode(), value.encode()) for name, value in BEARER.items()]
        await door.app({"type": "http", "method": "POST", "path": "/hooks/agent", "headers": raw}, receive, send)
        return status[0]

    assert asyncio.run(drip()) == 408


def test_the_rate_is_capped_for_those_who_bear_the_secret_and_nobody_else_uses_it_up() -> None:
    door = Door(qps=1.0, burst=2)
    assert [door.post(headers={}) for _ in range(5)] == [401] * 5
    assert [door.post() for _ in range(2)] == [204, 204]
    status, headers = asyncio.run(door.asked())
    assert (status, headers["retry-after"]) == (429, "1")
    door.now_s += 1.0
    assert door.post() == 204
    assert len(door.woken) == 3


def test_a_ledger_that_is_away_lets_the_sender_come_again() -> None:
    door = Door()
    door.error = LedgerUnavailable("gone")
    assert door.post() == 503
    door.error = None
    assert door.post() == 204


def test_only_so_many_callbacks_are_with_the_ledger_at_a_time() -> None:
    """Ten come at once while the ledger is slow; the others wait for their place, and all are answered."""
    door, gate, inside = Door(), threading.Event(), threading.Semaphore(0)
    most, now, lock = [0], [0], threading.Lock()

    def slow(_target: str, _hints: Mapping[str, str | None]) -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        inside.release()
        assert gate.wait(PATIENCE_S)
        with lock:
            now[0] -= 1

    door.app._wake = slow

    async def ten() -> list[int]:
        asked = [asyncio.create_task(door.asked()) for _ in range(10)]
        for _ in range(hooks_module.AT_ONCE):
            assert await asyncio.to_thread(inside.acquire, timeout=PATIENCE_S)
        gate.set()
        return [status for status, _ in await asyncio.gather(*asked)]

    assert asyncio.run(ten()) == [204] * 10
    assert most[0] == hooks_module.AT_ONCE
