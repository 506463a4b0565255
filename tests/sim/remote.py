"""The simulated tool server: what really happened, whatever we believe. Its log is the auditor's oracle.

Three kinds by what a second create with one key does and what a lookup says:
  unique   the first task is returned again; the lookup knows it
  finds    a second task is made; the lookup answers truly (the "lookup without dedupe")
  bounded  as `finds`; no request comes later than its owner promises
  blind    a second task is made; there is nothing to look up
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

INTERVAL_MS = 1000
TTL_MS = 600_000


@dataclass(frozen=True)
class Course:
    """How a task goes: when it is over after its creation, as what, and what is odd about it."""

    runs_s: float = 1.6
    end: str = "completed"
    at_once: bool = False
    """Over before the call is answered; the answer is the result."""
    result: str = "good"
    """good | none | broken (it breaks the schema) | error (`isError`)"""
    keeps_s: float = math.inf
    """How long the server remembers it once it is over."""
    asks_s: float = math.inf
    """When it asks for input after its creation; it goes on by itself two seconds before its end, or when it was
    answered, and is over (or asks again) two seconds after that."""
    questions: int = 1
    """How many it asks, one after the other; each answer is worked on for two seconds."""
    asks_first: bool = False
    """It asks before there is a task; the next leg of the call makes it."""
    obeys: bool = True
    """Whether a cancel stops it. A server of 2025 says `cancelled` all the same."""
    overwritten: bool = False
    """It says that it was cancelled, and then that it is completed."""
    submit_error: int = 0
    """JSON-RPC error in place of the answer, although it runs; of those that prove that nothing ran it doesn't."""
    hostile: bool = False
    """Its words can't be stored as they come: NUL and half a surrogate pair."""
    word: str = "working"
    """What it is called while it runs."""
    expected: str | None = None
    """The receipt's outcome where nothing goes wrong; None where a person is asked, or where it hangs on more."""

    def may_follow(self, course: "Course", status: str) -> bool:
        """For a task that has run on that course so far."""
        if status == "input_required":
            return self.asks_s == course.asks_s
        return status == "working" and not (self.at_once or self.submit_error)


COURSES: dict[str, Course] = {
    "completes": Course(expected="succeeded"),
    "completes slowly": Course(runs_s=14.0, expected="succeeded"),
    "completes whatever we ask": Course(runs_s=6.0, obeys=False, expected="succeeded"),
    "is over at once": Course(runs_s=0.0, at_once=True, expected="succeeded"),
    "fails": Course(end="failed", expected="failed"),
    "has a tool error": Course(result="error", expected="failed"),
    "is cancelled by its server": Course(end="cancelled", expected="cancelled"),
    "never ends": Course(runs_s=math.inf),
    "is forgotten": Course(keeps_s=1.5),
    "has no result": Course(result="none"),
    "breaks its schema": Course(result="broken"),
    "asks and goes on by itself": Course(runs_s=7.0, asks_s=1.5, expected="succeeded"),
    "asks for ever": Course(runs_s=math.inf, asks_s=1.5),
    "says cancelled and completes": Course(runs_s=3.0, obeys=False, overwritten=True),
    "ignores cancels": Course(runs_s=25.0, obeys=False, expected="succeeded"),
    "asks after a while": Course(runs_s=math.inf, asks_s=4.0),
    "completes late": Course(runs_s=18.0, expected="succeeded"),
    "asks twice": Course(runs_s=math.inf, asks_s=1.5, questions=2),
    "asks before it begins": Course(asks_first=True),
    "is refused": Course(submit_error=-32601),
    "runs behind an internal error": Course(submit_error=-32603),
    "runs behind invalid params": Course(submit_error=-32602),
    "speaks in tongues": Course(runs_s=40.0, hostile=True, expected="succeeded"),
    "has a strange word": Course(word="pondering", expected="succeeded"),
}
NOTHING_RAN = frozenset({-32600, -32601})


@dataclass
class Task:
    """One remote operation."""

    id: str
    key: str
    number: int
    born_s: float
    course: Course
    arguments: str
    cancelled_s: float = math.inf
    answers: list[float] = field(default_factory=list)
    """When it was answered."""
    heard: list[str] = field(default_factory=list)
    """(A2A) Ids of the messages that were sent to it."""
    delivered: int = 0
    """(2025) How many questions its streams have brought; no other stream ever does."""

    @property
    def answered_s(self) -> float:
        """When it had all its answers."""
        return self.answers[-1] if len(self.answers) >= self.course.questions else math.inf

    @property
    def over_s(self) -> float:
        """When it is over by its own course."""
        return min(self.born_s + self.course.runs_s, self.answered_s + 2.0)

    @property
    def completes_s(self) -> float:
        """From when on its status says so, where it ever does."""
        cancelled = self.cancelled_s < self.over_s and not self.course.overwritten
        return math.inf if cancelled or self.course.end != "completed" else self.over_s

    @property
    def waits(self) -> list[tuple[float, float]]:
        """From when to when it waits for each of its answers, by its own course."""
        begins = [self.born_s + self.course.asks_s, *(at_s + 2.0 for at_s in self.answers)][: self.course.questions]
        until_s = min(self.over_s - 2.0, self.cancelled_s)
        ends = [*self.answers, until_s][: len(begins)]
        return list(zip(begins, ends, strict=True))

    @property
    def question(self) -> str:
        """The name of what it asks, or would ask next."""
        return f"{self.number}-{len(self.answers) + 1}"

    def status(self, now_s: float) -> str:
        if now_s >= min(self.cancelled_s, self.over_s):
            cancelled = self.cancelled_s < self.over_s and not (self.course.overwritten and now_s >= self.over_s)
            return "cancelled" if cancelled else self.course.end
        if any(since_s <= now_s < until_s for since_s, until_s in self.waits):
            return "input_required"
        return self.course.word

    def ran_to_its_end(self, now_s: float) -> bool:
        """Whether the work was done, whatever the status says."""
        stopped = self.cancelled_s < self.over_s and self.course.obeys
        return self.course.end == "completed" and now_s >= self.over_s and not stopped

    def forgotten(self, now_s: float) -> bool:
        return now_s > min(self.over_s, self.cancelled_s) + self.course.keeps_s


@dataclass(frozen=True)
class Heard:
    """One request as the server has it in its log."""

    at_s: float
    method: str
    request_id: str
    key: str | None = None
    task: str | None = None
    processed: bool = True
    refused_credential: bool = False


@dataclass(frozen=True)
class Reply:
    """What came as the answer to a question. `asked`: it still waited for one."""

    at_s: float
    task: str
    question: str
    content: str
    asked: bool


@dataclass
class Server:
    """Everything at the other end. `course_of` is asked at each creation for (key, how many with that key)."""

    kind: str
    tag: str
    course_of: Callable[[str, int], Course]
    tasks: list[Task] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    asking: set[str] = field(default_factory=set)
    """Keys whose call was answered with a question before there was a task."""
    answered: set[str] = field(default_factory=set)
    remembers_s: float = math.inf
    """How long a key is remembered after the first call with it."""
    blocks: bool = False
    """A call is answered when it is over."""
    replies: list[Reply] = field(default_factory=list)
    log: list[Heard] = field(default_factory=list)
    said: list[tuple[float, int | None, bytes]] = field(default_factory=list)
    """(when, task's number, body) of each answer: what digests are compared with."""
    not_found: list[tuple[float, str]] = field(default_factory=list)
    """(when, task id) of each answer that denied a task."""
    sessions: int = 0
    sometimes: set[str] = field(default_factory=set)

    def with_key(self, key: str) -> list[Task]:
        return [task for task in self.tasks if task.key == key]

    def create(self, now_s: float, key: str, arguments: str, *, reuse: bool = False) -> Task | str | None:
        """A call arrives. None: refused, nothing runs. A text: answer first; it is the state that the next leg brings.
        `reuse`: an id that another task has already."""
        first_s = min((heard.at_s for heard in self.log if heard.key == key and heard.processed), default=now_s)
        made = self.with_key(key) if now_s - first_s < self.remembers_s else []
        if made and self.kind == "unique":
            self.sometimes.add("a key was answered with its first task")
            return made[0]
        if key in self.refused:
            return None
        if key in self.asking:
            return f"state of {key}"
        course = self.course_of(key, len(made))
        if course.submit_error in NOTHING_RAN:
            self.refused.add(key)
            return None
        if course.asks_first and key not in self.answered:
            self.asking.add(key)
            return f"state of {key}"
        if made:
            self.sometimes.add("a server made a second task for a key")
        number = len(self.tasks) + 1
        # A reused id hides the older task at the server; both stay in our memory.
        id_ = self.tasks[0].id if reuse and self.tasks else f"task-{self.tag}-{number}"
        self.tasks.append(Task(id_, key, number, now_s, course, arguments))
        return self.tasks[-1]

    def reply(self, now_s: float, task: Task, question: str, content: str) -> None:
        """Somebody's answer arrives."""
        asked = task.status(now_s) == "input_required" and question == task.question
        self.replies.append(Reply(now_s, task.id, question, content, asked))
        if asked:
            task.answers.append(now_s)

    def find(self, task_id: str) -> Task | None:
        return next((task for task in reversed(self.tasks) if task.id == task_id), None)

    def cancel(self, now_s: float, task: Task, *, at_once: bool) -> None:
        """A cancel arrives. `at_once`: the status moves before the answer (2025), whether the work stops or not."""
        if task.status(now_s) in ("completed", "failed", "cancelled"):
            return
        if at_once:
            task.cancelled_s = now_s
        elif task.course.obeys or task.course.overwritten:
            task.cancelled_s = now_s + 0.5
