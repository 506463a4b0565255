"""What really happened in a run, as plain values: the server's own log, what left over the wire, and what workers had
in
their hands. The auditor's other side."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from . import ledgerdb
from .network import FAULTS, Sending
from .remote import Task
from .spoken import Told

if TYPE_CHECKING:
    from .world import World

CALM = ("move ", "course ", "clock of ", "start")
"""Names of choices that are no trouble."""


@dataclass(frozen=True)
class TaskFact:
    """One remote operation. `end`: succeeded | failed | cancelled (by its server) | "" (none of these)."""

    id: str
    number: int
    key: str
    arguments: str
    end: str
    said_cancelled: bool
    expected: str | None
    completes_s: float
    """From when on its status says so."""
    waits: tuple[tuple[float, float], ...]
    """From when to when it waited for each answer."""


@dataclass(frozen=True)
class SentFact(Sending):
    """One effect whose first byte left. `excused`: the server said that it did not process it."""

    excused: bool


@dataclass(frozen=True)
class HeldFact:
    """An answer to an effect that a worker had. `survived`: it wasn't killed with the answer in its hands."""

    worker: str
    token: str
    body: bytes
    at_s: float
    survived: bool


@dataclass(frozen=True)
class BumpFact:
    """What stood in the ledger when a bump had committed."""

    epoch: int
    at_s: float
    journal: dict[str, int]
    intents: frozenset[str]


@dataclass(frozen=True)
class StopFact:
    """New operations were stopped: the intents there were at its begin and at its end."""

    what: str
    since: frozenset[str]
    until: frozenset[str]


@dataclass(frozen=True)
class Record:
    server: str
    base: datetime
    end_s: float
    finished: bool
    calm: bool
    stopped: bool
    lost_commits: bool
    lookups: tuple[tuple[float, str], ...]
    stopped_between: tuple[StopFact, ...]
    qps: float
    burst: float
    tasks: tuple[TaskFact, ...]
    said: tuple[tuple[float, int | None, bytes], ...]
    sent: tuple[SentFact, ...]
    held: tuple[HeldFact, ...]
    told: tuple[tuple[str, float, Told], ...]
    """(worker, when, what) of each word of a task that a worker heard and did not die with."""
    faults: frozenset[str]
    """Kinds of what went wrong with messages."""
    requests: tuple[tuple[float, int, str], ...]
    departures: tuple[float, ...]
    bumps: tuple[BumpFact, ...]
    stale_leases: tuple[str, ...]
    leases: tuple[str, ...]
    deadlocks: tuple[str, ...]
    not_found: tuple[tuple[float, str], ...]
    refused_credentials: int
    read: tuple[tuple[float, str], ...]
    """(when, task) of each reading that the server answered."""
    verdicts: tuple[tuple[str, int, str], ...]
    replied: tuple[tuple[str, int, str], ...]
    """(operation, round, who) of each reply that a person was told is taken."""
    acceptances: tuple[tuple[str, str], ...]
    """(operation, word of `accept_terminal`) of each end that a worker wanted to be accepted."""
    failed_over_s: float
    replies: tuple[tuple[float, str, str, str, bool], ...]
    told_producers: tuple[tuple[int, str], ...]
    acted_upon: tuple[tuple[str, str], ...]


def record(world: "World") -> Record:
    """Everything that the auditor may know of a run, beside its tables."""
    dead = world.crashed_before | {worker.name for worker in world.workers if worker.crashed}
    limit = next(iter(world.targets.limits.values()))
    return Record(
        server=world.server.kind,
        base=datetime.fromisoformat(ledgerdb.BASE),
        end_s=world.now_s,
        finished=world.finished,
        calm=not world.crashed_before and all(_calm(name) for name in world.choices.made),
        stopped=any(worker.was_held_up for worker in world.workers),
        lost_commits=any("loses" in name for name in world.choices.made),
        lookups=tuple((heard.at_s, heard.key) for heard in world.server.log if heard.method == "lookup" and heard.key),
        stopped_between=tuple(world.stopped_between),
        qps=limit.qps,
        burst=limit.burst,
        tasks=tuple(_task(task, world) for task in world.server.tasks),
        said=tuple(world.server.said),
        sent=tuple(_sent(world)),
        held=tuple(
            HeldFact(held.worker, held.token, held.body, held.at_s, held.worker not in dead)
            for held in world.answers_held
        ),
        told=tuple(one for one in world.told if one[0] not in dead and one[1] >= world.failed_over_s),
        faults=frozenset(
            FAULTS[value - 1] for name, value in world.choices.made.items() if name.startswith("fault of ")
        ),
        requests=tuple(world.network.requests),
        departures=tuple(world.network.departures),
        bumps=tuple(world.bumps),
        stale_leases=tuple(world.stale_leases),
        leases=tuple(world.leased.violations),
        deadlocks=tuple(world.loom.deadlocks) if world.loom is not None else (),
        not_found=tuple(world.server.not_found),
        refused_credentials=sum(heard.refused_credential for heard in world.server.log),
        read=tuple(
            (heard.at_s, heard.task)
            for heard in world.server.log
            if heard.method == "tasks/get" and heard.task and heard.processed
        ),
        verdicts=tuple(world.verdicts),
        replied=tuple(world.replied),
        acceptances=tuple(world.acceptances),
        failed_over_s=world.failed_over_s,
        replies=tuple((one.at_s, one.task, one.question, one.content, one.asked) for one in world.server.replies),
        told_producers=tuple(world.answers_to_producers),
        acted_upon=tuple(world.acted_upon),
    )


def _calm(name: str) -> bool:
    return name.startswith(CALM) or name.startswith("when op") or name.endswith(": way")


def _task(task: Task, world: "World") -> TaskFact:
    status, course = task.status(world.now_s), task.course
    if status == "failed" or (status == "completed" and course.result == "error"):
        end = "failed"
    elif status == "completed" and course.result == "good":
        end = "succeeded"
    else:
        end = "cancelled" if course.end == "cancelled" and world.now_s >= task.over_s else ""
    return TaskFact(
        id=task.id,
        number=task.number,
        key=task.key,
        arguments=task.arguments,
        end=end,
        said_cancelled=(task.cancelled_s < task.over_s and task.cancelled_s <= world.now_s) or status == "cancelled",
        expected=world.family.expected(course),
        completes_s=task.completes_s,
        waits=tuple(task.waits),
    )


def _sent(world: "World") -> list[SentFact]:
    excused = world.network.not_processed
    return [SentFact(**vars(sent), excused=sent.token in excused) for sent in world.network.sent]
