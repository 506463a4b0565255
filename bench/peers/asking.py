"""How every peer asks the remote server: httpx with 64 connections, whoever waits for one waits outside of the pool.

The programs in this folder run in an environment of their own (`peers.lock`), which our package is not in. Each takes
`worker` (prints READY when it serves) or `produce COUNT RATE WORK_S NAME`.
"""

import asyncio
import os
from functools import cache
from typing import Any

import httpx

INTERVAL_S = 1.0
CONNECTIONS = 64
REMOTE_URL = os.environ["REMOTE_URL"]
DATABASE_URL = os.environ.get("PEER_DATABASE_URL", "")
BROKER_URL = os.environ.get("PEER_BROKER_URL", "")

_LIMITS = httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)


class Remote:
    """The three requests."""

    def __init__(self) -> None:
        self._client = httpx.AsyncClient(base_url=REMOTE_URL, limits=_LIMITS, timeout=60)
        self._places = asyncio.Semaphore(CONNECTIONS)

    async def submit(self, call: str, work_s: float) -> str:
        """Returns the job's id."""
        return str((await self._ask("POST", "/jobs", {"call": call, "work_s": work_s}))["id"])

    async def is_completed(self, job: str) -> bool:
        return bool((await self._ask("GET", f"/jobs/{job}"))["status"] == "completed")

    async def result(self, job: str) -> dict[str, Any]:
        return dict(await self._ask("GET", f"/jobs/{job}/result"))

    async def _ask(self, verb: str, path: str, body: dict[str, Any] | None = None) -> Any:
        async with self._places:
            return (await self._client.request(verb, path, json=body)).json()


@cache
def remote() -> Remote:
    """This process's one."""
    return Remote()
