"""Restate: one durable handler; submit, each poll and the result are steps, the pauses are durable sleeps.

Its server is a program from npm (RESTATE_SERVER); it is started beside the handlers, so that both count as the worker.
"""

import asyncio
import logging
import os
import socket
import subprocess
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

import httpx
import restate
from asking import INTERVAL_S, remote
from hypercorn.asyncio import serve as serve_http
from hypercorn.config import Config
from work import Work, moments_async, ready, wait_for_begin, wait_for_end

service = restate.Service("operation")
PORT_FILE = Path(os.environ.get("RESTATE_PORT_FILE", "restate.port"))
READY_TRIES = 120


async def submit(call: str, work_s: float) -> str:
    return await remote().submit(call, work_s)


async def is_completed(job: str) -> bool:
    return await remote().is_completed(job)


async def result(job: str) -> dict[str, object]:
    return await remote().result(job)


@service.handler()
async def run(context: restate.Context, asked: dict[str, object]) -> dict[str, object]:
    job = await context.run_typed("submit", submit, call=str(asked["call"]), work_s=float(str(asked["work_s"])))
    while True:
        await context.sleep(timedelta(seconds=INTERVAL_S))
        if await context.run_typed("poll", is_completed, job=job):
            return await context.run_typed("result", result, job=job)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def serve() -> None:
    logging.disable(logging.WARNING)
    ingress, admin, node, handlers = (free_port() for _ in range(4))
    settings = {
        "RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{ingress}",
        "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{admin}",
        "RESTATE_BIND_ADDRESS": f"127.0.0.1:{node}",
        "RESTATE_DISABLE_TELEMETRY": "true",
        "RESTATE_WORKER__INVOKER__CONCURRENT_INVOCATIONS_LIMIT": "4000",
        "RUST_LOG": "warn",
    }
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(  # noqa: ASYNC220  nothing else runs yet
            [os.environ["RESTATE_SERVER"], "--base-dir", folder],
            env=os.environ | settings,
            stdout=sys.stderr,
        )
        try:
            config = Config()
            config.bind = [f"127.0.0.1:{handlers}"]
            config.h2_max_concurrent_streams = 4000
            serving = asyncio.create_task(serve_http(restate.app([service]), config))
            await register(admin, handlers)
            PORT_FILE.write_text(str(ingress))  # noqa: ASYNC240  nothing else runs yet
            ready()
            await serving
        finally:
            server.kill()


async def register(admin: int, handlers: int) -> None:
    """Tell the server where the handlers are, as soon as it hears."""
    async with httpx.AsyncClient(timeout=20) as client:
        for _ in range(READY_TRIES):
            try:
                answer = await client.post(
                    f"http://127.0.0.1:{admin}/deployments", json={"uri": f"http://127.0.0.1:{handlers}", "force": True}
                )
            except httpx.HTTPError:
                await asyncio.sleep(0.5)
                continue
            if answer.is_success:
                return
            await asyncio.sleep(0.5)
    raise SystemExit("restate's server does not take the handlers")


async def produce(work: Work, name: str) -> None:
    port = PORT_FILE.read_text()  # noqa: ASYNC240  nothing else runs yet
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        wait_for_begin()
        async for number in moments_async(work):
            asked = {"call": f"{name}-{number}", "work_s": work.work_s}
            (await client.post("/operation/run/send", json=asked)).raise_for_status()
        wait_for_end()


if __name__ == "__main__":
    asyncio.run(serve() if sys.argv[1] == "worker" else produce(*Work.read(sys.argv[2:])))
