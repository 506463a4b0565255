"""The bare loops, nothing durable: what the same requests cost a program that forgets everything when it ends.

`python -m counterfoil.bench.bare httpx|aiohttp COUNT RATE WORK_S NAME`, with the server's URL in REMOTE_URL.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import aiohttp
import httpx

from .peers.work import Work, moments_async, wait_for_begin, wait_for_end

CONNECTIONS = 64
INTERVAL_S = 1.0

Ask: TypeAlias = Callable[[str, str, dict[str, Any] | None], Awaitable[Any]]
"""(verb, path, JSON body) -> what the answer's JSON says."""


async def operation(ask: Ask, call: str, work_s: float) -> None:
    """Submit, poll a second apart, fetch the result."""
    job = await ask("POST", "/jobs", {"call": call, "work_s": work_s})
    while True:
        await asyncio.sleep(INTERVAL_S)
        if (await ask("GET", f"/jobs/{job['id']}", None))["status"] == "completed":
            break
    await ask("GET", f"/jobs/{job['id']}/result", None)


async def all_operations(ask: Ask, work: Work, name: str) -> None:
    loop = asyncio.get_running_loop()
    running = [
        loop.create_task(operation(ask, f"{name}-{number}", work.work_s)) async for number in moments_async(work)
    ]
    await asyncio.gather(*running)


async def with_httpx(work: Work, name: str) -> None:
    limits = httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
    # The pool walks everybody who waits in it at each request (27 ms an operation at 2,000 waiters), so they wait here.
    places = asyncio.Semaphore(CONNECTIONS)
    async with httpx.AsyncClient(base_url=os.environ["REMOTE_URL"], limits=limits, timeout=60) as client:

        async def ask(verb: str, path: str, body: dict[str, Any] | None) -> Any:
            async with places:
                return (await client.request(verb, path, json=body)).json()

        await all_operations(ask, work, name)


async def with_aiohttp(work: Work, name: str) -> None:
    connector = aiohttp.TCPConnector(limit=CONNECTIONS)
    async with aiohttp.ClientSession(os.environ["REMOTE_URL"], connector=connector) as session:

        async def ask(verb: str, path: str, body: dict[str, Any] | None) -> Any:
            async with session.request(verb, path, json=body) as answer:
                return await answer.json()

        await all_operations(ask, work, name)


LOOPS = {"httpx": with_httpx, "aiohttp": with_aiohttp}


def main() -> None:
    work, name = Work.read(sys.argv[2:])
    wait_for_begin()
    asyncio.run(LOOPS[sys.argv[1]](work, name))
    wait_for_end()


if __name__ == "__main__":
    main()
