"""What is done to a world from outside, and when."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from counterfoil.ledger.states import Lane
from counterfoil.workers import actions as act
from counterfoil.workers.engine import SERVED

from .moves import KEY_MARGIN_S, SERVER_MEMORY
from .network import FAULTS
from .remote import COURSES, Course
from .worker import Worker

if TYPE_CHECKING:
    pass


class Shocks:
    """The part of a World that plans and does what nobody in it asked for."""

    def memory(self) -> dict[str, Any]:
        """All that is to be remembered beside the tables, as plain values."""
        server = self.server
        return {
            "now_s": self.now_s,
            "ids": self.ids.count,
            "started": self._started,
            "born": self._born,
            "server": {name: getattr(server, name) for name in SERVER_MEMORY},
            "network": self.network.memory(),
            "held": self.answers_held,
            "crashed": {worker.name for worker in self.workers if worker.crashed},
        }

    def remember(self, memory: dict[str, Any]) -> None:
        """Go on from there; what comes of the tasks is chosen anew."""
        self.now_s = memory["now_s"]
        self.ids.resume(memory["ids"])
        self._started, self._born = memory["started"], memory["born"]
        server = self.server
        for name, value in memory["server"].items():
            setattr(server, name, value)
        self.network.remember(memory["network"])
        self.answers_held, self.crashed_before = memory["held"], memory["crashed"]
        for number, task in enumerate(server.tasks, 1):
            if self.protocol == "mcp-sync":
                continue
            later = [
                name for name in self.family.courses if COURSES[name].may_follow(task.course, task.status(self.now_s))
            ]
            drawn = self.choices.pick(f"course of task {number}", len(later), 0.75) if later else 0
            if drawn:
                task.course = COURSES[later[drawn]]

    # -- running -----------------------------------------------------------------------------------------------------

    def fault(self, name: str, kinds: Sequence[str]) -> str:
        """What happens to a message, "" for nothing."""
        if self.forced.get(name) in kinds:
            self.goes_wrong(self.forced[name])
            return self.forced[name]
        own = self.family.faults
        if own and not name.startswith(self.family.faults_of):
            return ""
        numbers = [FAULTS.index(kind) + 1 for kind in kinds if not own or kind in own]
        drawn = self.choices.fault(
            f"fault of {name}", numbers, len(FAULTS) + 1, self.family.fault_chance if own else 0.0
        )
        kind = FAULTS[drawn - 1] if drawn else ""
        if kind not in kinds:
            return ""
        self.goes_wrong(kind)
        return kind

    def late_s(self, name: str) -> float:
        if self.server.kind == "bounded":  # its owner promises: before `send_by` and the settle window are over
            policy = next(iter(self.targets._targets.values())).policy("work")
            return policy.send_by_s + policy.settle_s - 2.0
        late_s = self.family.late_s
        if self.family.remembers_s < math.inf:
            # What is on its way for longer than the margin may outlive its key, whoever judged it when it left.
            late_s = [one for one in late_s if one < KEY_MARGIN_S]
        return late_s[self.choices.pick(name, len(late_s))]

    def _course_of(self, key: str, made: int) -> Course:
        courses = self.family.courses
        self._born += 1
        drawn = courses[self.choices.pick(f"course {self._born}", len(courses), 0.75)]
        self.tell(f"    the call {drawn}")
        self.sometimes(f"a call that {drawn}")
        return COURSES[drawn]

    def _beat(self) -> None:
        """The real plan, and wake-ups that may get lost, doubled or to the wrong worker."""
        living = [worker for worker in self.workers if worker.running]
        if not living:
            return
        planner = living[0].performer
        self.db.tell_time()
        due = planner.store.plan(SERVED, ahead_s=1.0, limit=20)
        for one in sorted(due, key=lambda due: (due.lane, due.target)):
            self._kick(one.lane, one.target, living)

    def _kick(self, lane: Lane, target: str, living: list[Worker]) -> None:
        self._kicks += 1
        if self.choices.pick(f"kick {self._kicks} is lost", 2, 0.05):
            self.tell(f"    ! the wake-up for {lane} is lost")
            self.sometimes("a wake-up was lost")
            return
        way = self.choices.pick(f"kick {self._kicks}: way", len(living) + 1, 0.3)
        for worker in living if way == len(living) else [living[(self._kicks + way) % len(living)]]:
            worker.take(act.Kick(lane, target))
