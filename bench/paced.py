"""Operations at a steady rate, or all at once: the same work for every contender, on one remote server."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import count

import psutil

from .field import BenchError, Field
from .meter import tree_cpu_s, tree_rss_bytes
from .peers.work import Work
from .rows import Row

TAIL_S = 1.0
"""After the last result what settles it is still on its way (the flush of a batch, the receipt)."""

PATIENCE_S = 60.0

_serial = count(1)


def _nothing(_field: Field) -> AbstractContextManager[None]:
    return nullcontext()


@dataclass(frozen=True, slots=True)
class Contender:
    """Something that does the work.

    `producer` is the command that hands operations in; COUNT RATE WORK_S NAME are added to it. `running` starts what
    must run beside it, warm, and ends it. `workers` name the processes of it whose memory counts.
    """

    name: str
    producer: Sequence[str]
    running: Callable[[Field], AbstractContextManager[None]] = _nothing
    workers: tuple[str, ...] = ("producer",)
    environment: Mapping[str, str] = field(default_factory=dict)


def measure(on: Field, contender: Contender, mode: str, work: Work) -> Row:
    """One run, from the first submit to the last result. What `running` starts is running."""
    name = f"{contender.name.replace(' ', '-')}-{next(_serial)}"
    producer = on.prepare(
        name, (*contender.producer, str(work.count), str(work.rate), str(work.work_s), name), **contender.environment
    )
    on.meter.watch("producer", producer.pid)
    on.remote.reset()
    before, busy_s = on.meter.start(), _others_s(on)
    on.begin(producer)

    def all_done() -> bool:
        if producer.has_ended():
            raise BenchError(f"{contender.name} ended too soon:\n{producer.log_tail(20)}")
        return on.remote.counts().get("result", 0) >= work.count

    on.wait(f"{contender.name}: {work.count} results", all_done, work.lasts_s + PATIENCE_S)
    time.sleep(TAIL_S)  # what is measured goes on for a moment, and nothing tells from outside when it is over
    busy_s = _others_s(on) - busy_s
    used = on.meter.stop().since(before)
    rss_bytes = [size for worker in contender.workers for size in tree_rss_bytes(on.meter.pid(worker))]
    producer.kill()
    on.meter.forget("producer")
    return Row.of(
        contender.name,
        mode,
        name=name,
        count=work.count,
        work_s=work.work_s,
        log=on.remote.log(),
        used=used,
        rss_bytes=rss_bytes,
        foreign_cpu_share=max(0.0, 1 - used.total_cpu_s / busy_s) if busy_s else 0.0,
    )


def _others_s(on: Field) -> float:
    """CPU of the whole machine but for the remote server and this process."""
    times = psutil.cpu_times()
    return float(times.user + times.system) - tree_cpu_s(on.remote.child.pid) - time.process_time()
