"""PgQueuer: each poll that finds the job at work asks to be run again a second later."""

import asyncio
import json
import logging
import sys
from datetime import timedelta

import asyncpg
from asking import DATABASE_URL, INTERVAL_S, remote
from pgqueuer import PgQueuer, Queries, RetryRequested
from pgqueuer.models import Job
from work import Work, moments_async, ready, wait_for_begin, wait_for_end


async def serve() -> None:
    logging.disable(logging.CRITICAL)
    pool = await asyncpg.create_pool(DATABASE_URL, min_size=2, max_size=10)
    queries = Queries.from_asyncpg_pool(pool)
    await queries.install()
    queue = PgQueuer.from_asyncpg_pool(pool)

    @queue.entrypoint("start")
    async def start(job: Job) -> None:
        asked = json.loads(job.payload)
        remote_id = await remote().submit(asked["call"], asked["work_s"])
        await queries.enqueue("poll", remote_id.encode(), execute_after=timedelta(seconds=INTERVAL_S))

    @queue.entrypoint("poll")
    async def poll(job: Job) -> None:
        remote_id = job.payload.decode()
        if not await remote().is_completed(remote_id):
            raise RetryRequested(delay=timedelta(seconds=INTERVAL_S))
        await remote().result(remote_id)

    ready()
    await queue.run(batch_size=50, dequeue_timeout=timedelta(seconds=0.25))


async def produce(work: Work, name: str) -> None:
    pool = await asyncpg.create_pool(DATABASE_URL, min_size=1, max_size=2)
    queries = Queries.from_asyncpg_pool(pool)
    wait_for_begin()
    async for number in moments_async(work):
        asked = {"call": f"{name}-{number}", "work_s": work.work_s}
        await queries.enqueue("start", json.dumps(asked).encode())
    wait_for_end()


if __name__ == "__main__":
    asyncio.run(serve() if sys.argv[1] == "worker" else produce(*Work.read(sys.argv[2:])))
