"""DBOS: each poll is a checkpointed step and each pause a durable sleep; with `onestep` the whole loop is one step."""

import asyncio
import os
import sys

from asking import DATABASE_URL, INTERVAL_S, remote
from dbos import DBOS, DBOSClient
from work import Work, moments, ready, wait_for_begin, wait_for_end

ONE_STEP = os.environ.get("PEER_VARIANT") == "onestep"
URL = DATABASE_URL.replace("postgresql://", "postgresql+psycopg://")
QUEUE = "bench"
VERSION = "1"


@DBOS.step()
async def submit(call: str, work_s: float) -> str:
    return await remote().submit(call, work_s)


@DBOS.step()
async def is_completed(job: str) -> bool:
    return await remote().is_completed(job)


@DBOS.step()
async def wait(job: str) -> None:
    while True:
        await asyncio.sleep(INTERVAL_S)
        if await remote().is_completed(job):
            return


@DBOS.step()
async def result(job: str) -> dict[str, object]:
    return await remote().result(job)


@DBOS.workflow()
async def operation(call: str, work_s: float) -> dict[str, object]:
    job = await submit(call, work_s)
    if ONE_STEP:
        await wait(job)
        return await result(job)
    while True:
        await DBOS.sleep_async(INTERVAL_S)
        if await is_completed(job):
            return await result(job)


async def serve() -> None:
    DBOS(
        config={
            "name": "bench",
            "system_database_url": URL,
            "log_level": "ERROR",
            "application_version": VERSION,
            "sys_db_pool_size": 20,
        }
    )
    DBOS.launch()
    await DBOS.register_queue_async(QUEUE, polling_interval_sec=0.2)
    ready()
    await asyncio.Event().wait()


def produce(work: Work, name: str) -> None:
    client = DBOSClient(system_database_url=URL)
    wait_for_begin()
    for number in moments(work):
        call = f"{name}-{number}"
        options = {"queue_name": QUEUE, "workflow_name": "operation", "workflow_id": call, "app_version": VERSION}
        client.enqueue(options, call, work.work_s)
    wait_for_end()


if __name__ == "__main__":
    if sys.argv[1] == "worker":
        asyncio.run(serve())
    else:
        produce(*Work.read(sys.argv[2:]))
