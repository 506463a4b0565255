"""`make bench-kill`: a worker ended by SIGKILL with everything in flight, another one a second later.

On a target with a lookup everything must settle and nothing be submitted twice: once with all submits at the server,
and once, the harder one, with the kill in the middle of them. What was out then is looked up when `send_by` (10 s) and
the settle window (5 s) are over, so not sooner than 14 s after the restart; what the dead worker had claimed and not
sent is sent when its lease is over. Then a third time without a lookup, where what was out is a person's to judge:
settled and cases together must be all.
"""

import sys
import time
from dataclasses import dataclass

from . import fleet
from .field import Field, field_on
from .producer import TARGET
from .report import keep
from .servers import servers

COUNT = 300
WORK_S = 5.0
"""As in every measurement here: five polls a second apart."""

SUBMITS_AFTER_S = 0.3
"""How late the server answers a submit where the kill comes among them: so late that it meets some."""

RUNS = ((True, COUNT), (True, COUNT // 2), (False, COUNT // 2))
"""(whether the target has a lookup, how many submits the server has seen when the kill comes)"""

RESTART_S = 1.0
SETTLED_WITHIN_S = 15.0
PATIENCE_S = 90.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of all operations."""

    lookup: bool
    submitted_at_kill: int
    settled: int
    cases: int
    second_submits: int
    took_s: float
    """From the restart until all were settled or a case."""

    @property
    def good(self) -> bool:
        if self.settled + self.cases != COUNT or self.second_submits:
            return False
        return not self.lookup or (self.cases == 0 and self.took_s <= SETTLED_WITHIN_S)

    def line(self) -> str:
        return (
            f"lookup={'yes' if self.lookup else 'no'} submitted_at_kill={self.submitted_at_kill} settled={self.settled}"
            f" cases={self.cases} second_submits={self.second_submits} all_after_s={self.took_s:.1f}"
        )


def run_kill() -> bool:
    """The three runs, a line each. Whether all came out as they must."""
    outcomes = [_killed(lookup=lookup, at=at) for lookup, at in RUNS]
    lines = [outcome.line() for outcome in outcomes]
    keep("kill", lines)
    sys.stdout.write("\n".join(lines) + "\n")
    return all(outcome.good for outcome in outcomes)


def _killed(*, lookup: bool, at: int) -> Outcome:
    slow = () if at == COUNT else ("--submits-after-s", str(SUBMITS_AFTER_S))
    with servers() as both, field_on(both, *slow) as field:
        fleet.aim(field, fleet.target(TARGET, field.remote.url, lookup=lookup))
        first = fleet.start_worker(field)
        fleet.start_beat(field)
        fleet.wait_until_announced(field)
        fleet.hand_in(field, "killed", COUNT, WORK_S)
        field.wait("submits are out", lambda: field.remote.counts().get("submit", 0) >= at, PATIENCE_S)
        submitted = field.remote.counts()["submit"]
        first.kill()
        time.sleep(RESTART_S)  # as long as a supervisor takes
        restarted_s = time.monotonic()
        fleet.start_worker(field, name="second")
        field.wait("all are settled or a case", lambda: sum(_ends(field)) >= COUNT, PATIENCE_S)
        took_s = time.monotonic() - restarted_s
        settled, cases = _ends(field)
        return Outcome(lookup, submitted, settled, cases, field.remote.log().second_submits, took_s)


def _ends(field: Field) -> tuple[int, int]:
    """How many have a receipt, and how many of the others an open case."""
    query = """
        SELECT count(*) FILTER (WHERE t.id IS NOT NULL),
            count(*) FILTER (WHERE t.id IS NULL AND EXISTS (
                SELECT FROM counterfoil.reconciliation_case AS c WHERE c.operation_id = o.id AND c.closed_at IS NULL))
        FROM counterfoil.operation AS o LEFT JOIN counterfoil.terminal_receipt AS t ON t.operation_id = o.id
    """
    settled, cases = fleet.ask(field, query)[0]
    return int(settled), int(cases)
