"""Docket: each poll is a task that is scheduled a second later (`docket_peer.py`), or, with `loop`, one task sleeps."""

import asyncio
import os
import sys
from datetime import UTC, datetime, timedelta

from asking import BROKER_URL, INTERVAL_S, remote
from docket import CurrentDocket, Docket, Worker
from work import Work, moments_async, ready, wait_for_begin, wait_for_end

# redis-py's pool raises beyond 100 connections, and a worker with 3,000 tasks died of that.
URL = f"{BROKER_URL}?max_connections=20000"
LOOP = os.environ.get("PEER_VARIANT") == "loop"


async def start(call: str, work_s: float, docket: Docket = CurrentDocket()) -> None:  # noqa: B008  its own way to inject
    job = await remote().submit(call, work_s)
    if not LOOP:
        await _later(docket, call, job, 1)
        return
    while True:
        await asyncio.sleep(INTERVAL_S)
        if await remote().is_completed(job):
            break
    await remote().result(job)


async def poll(call: str, job: str, number: int, docket: Docket = CurrentDocket()) -> None:  # noqa: B008
    if await remote().is_completed(job):
        await remote().result(job)
    else:
        await _later(docket, call, job, number + 1)


async def _later(docket: Docket, call: str, job: str, number: int) -> None:
    when = datetime.now(UTC) + timedelta(seconds=INTERVAL_S)
    await docket.add(poll, when=when, key=f"{call}/{number}")(call, job, number)


async def serve() -> None:
    async with Docket(name="bench", url=URL) as docket:
        docket.register(start)
        docket.register(poll)
        async with Worker(docket, concurrency=3000 if LOOP else 100) as worker:
            ready()
            await worker.run_forever()


async def produce(work: Work, name: str) -> None:
    async with Docket(name="bench", url=URL) as docket:
        docket.register(start)
        wait_for_begin()
        async for number in moments_async(work):
            await docket.add(start, key=f"{name}-{number}")(f"{name}-{number}", work.work_s)
        wait_for_end()


if __name__ == "__main__":
    asyncio.run(serve() if sys.argv[1] == "worker" else produce(*Work.read(sys.argv[2:])))
