"""What goes wrong: each fault happens at the server, once or twice, and then the server is well again."""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a request asks for, whatever its protocol."""

    SUBMIT = "submit"
    STATUS = "status"
    CANCEL = "cancel"
    LOOKUP = "lookup"
    OTHER = "other"


class Act(StrEnum):
    """What happens instead of the answer. What the request asks for is done first, but for REFUSED and KILLED_FIRST."""

    LOST = "the connection ends without an answer"
    LATE = "the answer comes after the client's timeout"
    CUT = "the body ends half-way"
    REFUSED = "429 with Retry-After, and nothing is done"
    UNAVAILABLE = "503 with Retry-After"
    NOT_FOUND = "404"
    ERROR_200 = "200 with an error inside"
    KILLED = "the client's process is killed"


@dataclass(frozen=True)
class Fault:
    """`on` and `times`: which requests it meets, the first so many of them. `with_result`: only an answer that would
    hand the result out. `ending`: how the work ends, where it doesn't end well."""

    name: str
    words: str
    on: Kind | None = None
    act: Act | None = None
    times: int = 1
    with_result: bool = False
    ending: str = "completed"
    cancels: bool = False
    work_s: float = 1.5
    patience_s: float | None = None
    """How long the caller lets the client wait in all, where the client takes such a bound."""

    @property
    def kills(self) -> bool:
        return self.act is Act.KILLED


LATE_S = 4.0
TIMEOUT_S = 2.0
"""The timeout that every client is given where an answer is late; their own are between 5 s and 300 s."""
RETRY_AFTER_S = 2

FAULTS = [
    Fault("none", "nothing goes wrong"),
    Fault("submit-lost", "the answer to the submit is lost", Kind.SUBMIT, Act.LOST),
    Fault("submit-late", "the answer to the submit comes after the timeout (2 s)", Kind.SUBMIT, Act.LATE),
    Fault("submit-429", "the submit is answered 429, Retry-After 2, and nothing was done", Kind.SUBMIT, Act.REFUSED),
    Fault("submit-503", "the submit is answered 503, Retry-After 2, and the work began", Kind.SUBMIT, Act.UNAVAILABLE),
    Fault("submit-error-200", "the submit is answered 200 with an error inside", Kind.SUBMIT, Act.ERROR_200),
    Fault("killed-submitting", "the process is killed before the submit's answer", Kind.SUBMIT, Act.KILLED),
    Fault("killed-waiting", "the process is killed between the submit and the first poll", Kind.STATUS, Act.KILLED),
    Fault("poll-404", "a poll is answered 404: not yet to be seen", Kind.STATUS, Act.NOT_FOUND),
    Fault("poll-429", "two polls are answered 429, Retry-After 2", Kind.STATUS, Act.REFUSED, times=2),
    Fault("poll-503", "two polls are answered 503, Retry-After 2", Kind.STATUS, Act.UNAVAILABLE, times=2),
    Fault("poll-cut", "a poll's body is cut", Kind.STATUS, Act.CUT),
    Fault("poll-error-200", "a poll is answered 200 with an error inside", Kind.STATUS, Act.ERROR_200),
    Fault("result-lost", "the answer with the result is lost", Kind.STATUS, Act.LOST, with_result=True),
    Fault("result-missing", "it says completed, and there is no result", ending="empty"),
    Fault("unknown-end", "it ends with a word that the protocol does not have", ending="unknown", patience_s=10.0),
    Fault("terminal-changed", "it says failed once, and completed ever after", ending="changed"),
    Fault("cancel-then-success", "a cancel is acknowledged, and the work completes", cancels=True, work_s=10.0),
]
BY_NAME = {fault.name: fault for fault in FAULTS}
