"""Driving an exchange to its outcome."""

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any

import pytest

from counterfoil.adapters.contract import (
    MAX_REQUESTS_PER_EXCHANGE,
    Answered,
    Effect,
    Reply,
    Request,
)
from counterfoil.adapters.wire import run


def drive(exchange: Generator[Request, Reply, str]) -> Coroutine[Any, Any, str]:
    async def send(request: Request) -> Reply:
        return Answered(200, {}, request.body)

    return run(exchange, send)


def test_an_exchange_is_driven_to_its_outcome() -> None:
    def two() -> Generator[Request, Reply, str]:
        first = yield Request("GET", "http://h/", body=b"a")
        second = yield Request("GET", "http://h/", body=b"b")
        assert isinstance(first, Answered)
        assert isinstance(second, Answered)
        return (first.body + second.body).decode()

    assert asyncio.run(drive(two())) == "ab"


@pytest.mark.parametrize(
    ("effects", "why"), [(None, f"more than {MAX_REQUESTS_PER_EXCHANGE}"), (Effect.SUBMIT, "second effect")]
)
def test_an_exchange_without_end_or_with_two_effects_is_stopped(effects: Effect | None, why: str) -> None:
    closed = []

    def endless() -> Generator[Request, Reply, str]:
        try:
            while True:
                yield Request("GET", "http://h/", effect=effects)
        finally:
            closed.append(True)

    with pytest.raises(RuntimeError, match=why):
        asyncio.run(drive(endless()))
    assert closed
