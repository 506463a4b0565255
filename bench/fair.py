"""`make bench-fair`: what a target notices of its slow and its dead neighbour, and a cancel of polls that are far more
than its target takes.

The slow one answers each poll after five seconds. The dead one takes polls and answers none, as a server that hangs
with everything in flight. Neither is polled less for it: the fleet is to keep them to their share by itself.
"""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from ..ledger.client import Client
from . import fleet
from .contenders import COUNTERFOIL
from .field import BenchError, Field, Remote, field_on, start_remote
from .paced import measure
from .peers.work import Work
from .producer import TARGET
from .remote import INTERVAL_S
from .report import keep
from .rows import Row
from .serverlog import READINGS, ServerLog
from .servers import Servers, servers
from .statistics import percentile

PACED = Work(160)
WARM_UP = 20
SLOW, DEAD = "slow", "dead"
SLOW_S = 5.0
NEIGHBOURS = 200
"""In flight on each of the two."""

FOR_EVER_S = 3600.0
BESIDE_MAX_S = 0.15
"""By how much polls of the healthy target may be later beside the two, in the slowest percent."""

QPS = 50
AT_WORK = 300
"""Polls that are wanted each second: six times as many as the target takes."""

CANCELS = 100
CANCELS_A_SECOND = 4.0
"""Below the tenth of the rate that is kept for cancels by default."""

SETTLE_S = 8.0
"""Until every one was read once at the rate that the target takes, or is out where it is answered late."""

FIRST_BYTE_MAX_S = 1.0
"""SPEC section 9, of the slowest percent."""

SATURATED_MIN = 2.0
STARVED = 3.0
"""An operation is starved that waits for its next reading so many times as long as half of all do at most."""

PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Healthy:
    """The paced work on a target that answers at once."""

    row: Row
    late_s: Sequence[float]

    @property
    def late_p99_s(self) -> float:
        return percentile(self.late_s, 0.99)

    def line(self, when: str) -> str:
        return (
            f"healthy={when} settled={self.row.done} of={self.row.count} polls={len(self.late_s)}"
            f" late_p50_s={percentile(self.late_s, 0.5):.3f} late_p99_s={self.late_p99_s:.3f}"
            f" cpu_ms_per_op={self.row.per_operation('cpu_ms'):.2f}"
        )


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The slow one or the dead one, while the healthy one was measured."""

    name: str
    polls: int
    most_out: int
    """Requests that waited for its answer, at most at once."""
    second_submits: int

    def line(self) -> str:
        return f"{self.name}={NEIGHBOURS} polls_sent={self.polls} requests_out_max={self.most_out}"


@dataclass(frozen=True, slots=True)
class Saturated:
    """A target that wants more polls than it takes, and cancels meanwhile. Seconds."""

    polls_a_second: float
    waits_s: Mapping[str, Sequence[float]]
    """Of each call that was not cancelled, every pause between two readings, the ends of the window included."""
    first_bytes_s: Sequence[float]
    """Of each cancel that left, from the moment when it was committed."""
    confirmed_s: Sequence[float]
    """Of each that was seen to its end, from the same moment."""
    second_submits: int

    @classmethod
    def of(cls, log: ServerLog, calls: Sequence[str], asked_s: Mapping[str, float], until_s: float) -> "Saturated":
        """`asked_s`: call -> when its cancel was committed; the window is from the first of them until `until_s`."""
        from_s = min(asked_s.values())
        window = log.between(from_s, until_s)
        read_s: dict[str, list[float]] = {call: [] for call in calls if call not in asked_s}
        for at_s, what, call in window.lines:
            if what in READINGS and call in read_s:
                read_s[call].append(at_s)
        cancelled, ended = log.first("cancel"), log.first("end")
        return cls(
            polls_a_second=window.count(*READINGS) / (until_s - from_s),
            waits_s={
                call: [later - earlier for earlier, later in pairwise([from_s, *moments, until_s])]
                for call, moments in read_s.items()
            },
            first_bytes_s=[cancelled[call] - at_s for call, at_s in asked_s.items() if call in cancelled],
            confirmed_s=[ended[call] - at_s for call, at_s in asked_s.items() if call in ended],
            second_submits=log.second_submits,
        )

    @property
    def saturation(self) -> float:
        """How many polls were wanted, at least, for one that left: what was cancelled is not counted."""
        return len(self.waits_s) / INTERVAL_S / max(self.polls_a_second, 1e-9)

    @property
    def wait_p50_s(self) -> float:
        """Half of all readings came so soon after the one before; 0 where nothing was read twice."""
        return percentile([wait_s for waits_s in self.waits_s.values() for wait_s in waits_s[1:-1]], 0.5)

    @property
    def starved(self) -> int:
        return sum(max(waits_s) > STARVED * self.wait_p50_s for waits_s in self.waits_s.values())

    def line(self) -> str:
        waits_s = [max(waits_s) for waits_s in self.waits_s.values()]
        return (
            f"saturated qps={QPS} at_work={len(self.waits_s)} polls_a_second={self.polls_a_second:.1f}"
            f" wait_p50_s={self.wait_p50_s:.2f} longest_wait_p50_s={median(waits_s):.2f}"
            f" longest_wait_max_s={max(waits_s):.2f} cancel_first_byte_max_s={max(self.first_bytes_s):.3f}"
            f" cancel_confirmed_p99_s={percentile(self.confirmed_s, 0.99):.2f} confirmed={len(self.confirmed_s)}"
        )


@dataclass(frozen=True, slots=True)
class Fairness:
    """What the last line says."""

    healthy: Healthy
    beside: Healthy
    neighbours: Sequence[Neighbour]
    saturated: Saturated

    @property
    def second_submits(self) -> int:
        paced = self.healthy.row.second_submits + self.beside.row.second_submits
        return paced + self.saturated.second_submits + sum(one.second_submits for one in self.neighbours)

    @property
    def first_byte_p99_s(self) -> float:
        return percentile(self.saturated.first_bytes_s, 0.99)

    @property
    def good(self) -> bool:
        return (
            all(one.row.done == one.row.count for one in (self.healthy, self.beside))
            and self.beside.late_p99_s <= self.healthy.late_p99_s + BESIDE_MAX_S
            and self.saturated.saturation >= SATURATED_MIN
            and len(self.saturated.first_bytes_s) == CANCELS
            and self.first_byte_p99_s < FIRST_BYTE_MAX_S
            and not self.saturated.starved
            and not self.second_submits
        )

    def lines(self) -> list[str]:
        figures = {
            "healthy_late_p99_s": f"{self.healthy.late_p99_s:.3f}",
            "beside_late_p99_s": f"{self.beside.late_p99_s:.3f}",
            "cancel_first_byte_p50_s": f"{percentile(self.saturated.first_bytes_s, 0.5):.3f}",
            "cancel_first_byte_p99_s": f"{self.first_byte_p99_s:.3f}",
            "cancels": f"{len(self.saturated.first_bytes_s)}",
            "saturated": f"{self.saturated.saturation:.1f}",
            "starved": f"{self.saturated.starved}",
            "second_submits": f"{self.second_submits}",
        }
        return [
            self.healthy.line("alone"),
            self.beside.line("beside"),
            *(one.line() for one in self.neighbours),
            self.saturated.line(),
            " ".join(f"{name}={value}" for name, value in figures.items()),
        ]


def run_fair() -> bool:
    """Both measurements, a line each and the figures. Whether they are as they must be."""
    with servers() as both:
        healthy, beside, neighbours = _neighbours(both)
        both.new_database()
        fairness = Fairness(healthy, beside, neighbours, _saturated(both))
    keep("fair", fairness.lines())
    sys.stdout.write("\n".join(fairness.lines()) + "\n")
    return fairness.good


def _neighbours(both: Servers) -> tuple[Healthy, Healthy, list[Neighbour]]:
    """The same work twice: alone, and with the slow one and the dead one full."""
    with field_on(both) as field:
        remotes = {
            SLOW: start_remote(field.children, "--polls-after-s", f"{SLOW_S}", name=SLOW),
            DEAD: start_remote(field.children, "--polls-after-s", "inf", name=DEAD),
        }
        urls = {TARGET: field.remote.url, **{name: remote.url for name, remote in remotes.items()}}
        fleet.aim(field, *(fleet.target(name, url) for name, url in urls.items()))
        worker = fleet.start_worker(field)
        fleet.start_beat(field)
        fleet.wait_until_announced(field)
        fleet.hand_in(field, "warm", WARM_UP, 0.5)
        _must(field, "the first receipts", lambda: fleet.receipts(field, "warm-") == WARM_UP)
        alone = _healthy(field)
        for name, remote in remotes.items():
            _fill(field, name, remote)
        time.sleep(SETTLE_S)  # the fleet meets what it is to bear; only it knows
        beside = _healthy(field)
        found = [_neighbour(name, remote, beside) for name, remote in remotes.items()]
        worker.kill()  # else its stop waits for the dead one
        return alone, beside, found


def _healthy(field: Field) -> Healthy:
    row = measure(field, COUNTERFOIL, "paced", PACED)
    return Healthy(row, field.remote.log().lateness_s(fleet.bound_s(field, f"{row.name}-")))


def _fill(field: Field, name: str, remote: Remote) -> None:
    fleet.hand_in(field, name, NEIGHBOURS, FOR_EVER_S, to=name)
    _must(field, f"all of the {name} one are submitted", lambda: remote.counts().get("submit", 0) >= NEIGHBOURS)


def _neighbour(name: str, remote: Remote, beside: Healthy) -> Neighbour:
    log, now_s = remote.log(), time.time()
    polls = log.between(now_s - beside.row.used.at_s, now_s).count("poll")
    return Neighbour(name, polls, remote.counts()["most_out"], log.second_submits)


def _saturated(both: Servers) -> Saturated:
    """Everything at work on a target that took all submits, and takes a sixth of the polls from now on."""
    with field_on(both) as field:
        fleet.aim(field)
        first = fleet.start_worker(field)
        fleet.start_beat(field)
        fleet.wait_until_announced(field)
        calls = [f"held-{number}" for number in range(AT_WORK)]
        fleet.hand_in(field, "held", AT_WORK, FOR_EVER_S)
        _must(field, "all are at work", lambda: len(fleet.bound_s(field, "held-")) == AT_WORK)
        first.process.terminate()
        first.process.wait(PATIENCE_S)
        fleet.aim(field, fleet.target(TARGET, field.remote.url, limits=f"qps: {QPS}, burst: {QPS}"))
        fleet.start_worker(field, name="second")
        time.sleep(SETTLE_S)  # the bucket is empty, all wait for their turn
        asked_s = _cancel(field, calls[:: AT_WORK // CANCELS][:CANCELS])
        until_s = time.time()
        _must(field, "all cancels are over", lambda: fleet.receipts(field, "held-") == CANCELS)
        return Saturated.of(field.remote.log(), calls, asked_s, until_s)


def _cancel(field: Field, calls: Sequence[str]) -> dict[str, float]:
    """Ask for them at a steady pace. Call -> when its cancel was committed, in Unix seconds."""
    client = Client(field.servers.database_url)
    asked_s, began_s = {}, time.monotonic()
    try:
        for number, call in enumerate(calls):
            time.sleep(max(0.0, began_s + number / CANCELS_A_SECOND - time.monotonic()))
            client.cancel(call)
            asked_s[call] = time.time()
    finally:
        client.close()
    return asked_s


def _must(field: Field, claim: str, holds: Callable[[], bool]) -> None:
    if not field.wait(claim, holds, PATIENCE_S):
        raise BenchError(f"nothing is measured: not within {PATIENCE_S:.0f} s: {claim}")
