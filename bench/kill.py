"""`make bench-kill`: a worker ended by SIGKILL with everything in flight, another one a second later.

Twice: on a target with a lookup, where everything must settle and nothing be submitted twice; and on one without, where
what was out at the kill is a person's to judge: settled and cases together must be all. There the kill comes in the
middle of the submits, so that some are out.
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
    """Both runs, a line each. Whether both came out as they must."""
    outcomes = [_killed(lookup=True, at=COUNT), _killed(lookup=False, at=COUNT // 2)]
    lines = [outcome.line() for outcome in outcomes]
    keep("kill", lines)
    sys.stdout.write("\n".join(lines) + "\n")
    return all(outcome.good for outcome in outcomes)


def _killed(*, lookup: bool, at: int) -> Outcome:
    """`at`: how many submits the server has seen when the kill comes."""
    # Answers that take a while keep submits out, so that a kill among them meets some.
    slow = () if at == COUNT else ("--answer-after-s", "0.3")
    with servers() as both, field_on(both, *slow) as field:
        fleet.aim(field, fleet.target(TARGET, field.remote.url, lookup=lookup))
        first = fleet.start_worker(field)
        fleet.start_beat(field)
        fleet.wait_until_announced(field)
        fleet.hand_in(field, "killed", COUNT, 8.0)
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
