"""Plain Celery: each poll is a task that retries itself a second later; with `ledger` every step also writes a row."""

import os
import sys
from functools import cache

import httpx
import psycopg
from asking import BROKER_URL, CONNECTIONS, DATABASE_URL, INTERVAL_S, REMOTE_URL
from celery import Celery, Task
from celery.signals import worker_ready
from psycopg_pool import ConnectionPool
from work import Work, moments, ready, wait_for_begin, wait_for_end

LEDGER = os.environ.get("PEER_VARIANT") == "ledger"
TABLE = "CREATE TABLE operation (call text PRIMARY KEY, state text, polls int DEFAULT 0, result text)"

app = Celery("bench", broker=BROKER_URL.replace("/0", "/3"), backend=BROKER_URL.replace("/0", "/4"))
app.conf.update(
    task_acks_late=True,
    worker_prefetch_multiplier=4,
    task_default_queue="bench",
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
    worker_enable_remote_control=False,
    worker_redirect_stdouts=False,
)


@cache
def client() -> httpx.Client:
    limits = httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
    return httpx.Client(base_url=REMOTE_URL, limits=limits, timeout=60)


@cache
def pool() -> ConnectionPool[psycopg.Connection]:
    return ConnectionPool(DATABASE_URL, min_size=1, max_size=8, kwargs={"autocommit": True}, open=True)


def write(statement: str, *values: object) -> None:
    if LEDGER:
        with pool().connection() as connection:
            connection.execute(statement, values)


@app.task(name="start")
def start(call: str, work_s: float) -> None:
    write("INSERT INTO operation (call, state) VALUES (%s, 'SUBMITTING') ON CONFLICT DO NOTHING", call)
    job = client().post("/jobs", json={"call": call, "work_s": work_s}).json()["id"]
    write("UPDATE operation SET state = 'WORKING' WHERE call = %s", call)
    poll.apply_async((call, job), countdown=INTERVAL_S)


@app.task(name="poll", bind=True, max_retries=None)
def poll(self: Task, call: str, job: str) -> dict[str, object]:
    if client().get(f"/jobs/{job}").json()["status"] != "completed":
        write("UPDATE operation SET polls = polls + 1 WHERE call = %s", call)
        raise self.retry(countdown=INTERVAL_S)
    result: dict[str, object] = client().get(f"/jobs/{job}/result").json()
    write("UPDATE operation SET state = 'ACCEPTED', result = %s WHERE call = %s", str(result["value"]), call)
    return result


@worker_ready.connect
def _ready(**_: object) -> None:
    ready()


def produce(work: Work, name: str) -> None:
    if LEDGER:
        pool().close()
    wait_for_begin()
    for number in moments(work):
        start.apply_async((f"{name}-{number}", work.work_s))
    wait_for_end()


if __name__ == "__main__":
    if sys.argv[1] == "worker":
        if LEDGER:
            with psycopg.connect(DATABASE_URL, autocommit=True) as connection:
                connection.execute(TABLE)
        flags = ("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "ERROR")
        app.worker_main(["--quiet", "worker", "--queues", "bench", "--pool", "prefork", "--concurrency", "4", *flags])
    else:
        produce(*Work.read(sys.argv[2:]))
