"""Procrastinate: each poll that finds the job at work fails and is retried a second later."""

import asyncio
import logging
import sys

from asking import DATABASE_URL, INTERVAL_S, remote
from procrastinate import App, PsycopgConnector, RetryStrategy
from work import Work, moments_async, ready, wait_for_begin, wait_for_end

app = App(connector=PsycopgConnector(conninfo=DATABASE_URL, max_size=10))


class StillRunningError(Exception):
    """Ask again."""


@app.task(name="start", queue="bench")
async def start(call: str, work_s: float) -> None:
    job = await remote().submit(call, work_s)
    await poll.configure(schedule_in={"seconds": int(INTERVAL_S)}).defer_async(job=job)


@app.task(name="poll", queue="bench", retry=RetryStrategy(wait=int(INTERVAL_S), retry_exceptions=[StillRunningError]))
async def poll(job: str) -> None:
    if not await remote().is_completed(job):
        raise StillRunningError
    await remote().result(job)


async def serve() -> None:
    logging.disable(logging.CRITICAL)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        ready()
        await app.run_worker_async(
            queues=["bench"], concurrency=50, fetch_job_polling_interval=0.25, install_signal_handlers=False
        )


async def produce(work: Work, name: str) -> None:
    async with app.open_async():
        wait_for_begin()
        async for number in moments_async(work):
            await start.defer_async(call=f"{name}-{number}", work_s=work.work_s)
        wait_for_end()


if __name__ == "__main__":
    asyncio.run(serve() if sys.argv[1] == "worker" else produce(*Work.read(sys.argv[2:])))
