"""What a protocol (with a tool's policy) promises. The loop asks the profile, never the protocol's name."""

from dataclasses import dataclass
from enum import StrEnum


class Lookup(StrEnum):
    """How a lost submit may be found again (SPEC section 7)."""

    NONE = "none"
    BY_KEY = "by_key"
    CLIENT_CHOSEN_ID = "client_chosen_id"
    REPLAY = "replay"


class Absence(StrEnum):
    """Why "not found by key" is a proof that a late first request does no harm (SPEC section 7)."""

    UNIQUE = "unique"
    CLOSES = "closes"
    BOUNDED = "bounded"


class ReplyReplay(StrEnum):
    """Whether a reply to an input round may be sent again after a lost answer (SPEC section 4)."""

    SAFE = "safe"
    READ_FIRST = "read_first"
    NEVER = "never"


class BucketScope(StrEnum):
    TARGET = "target"
    CREDENTIAL = "credential"


@dataclass(frozen=True, slots=True)
class Profile:
    """The facts of one protocol version that decisions hang on.

    `definite_codes` reject an attempt for certain; `not_processed_statuses` are HTTP statuses that prove the request
    was not run (operators may add a gateway's); `cancel_is_evidence`: the answer to a cancel is a terminal fact;
    `result_separate`: a completed task's result needs one more read; `settle_s`: how long after the last `send_by` a
    lookup's absence counts; `sessions`: tasks are bound to a session that has to be kept; `sync`: a call blocks
    until it is over (it needs a published bound and runs in the lane `sync`); `declares`: keys of the targets file in
    which the operator says what nobody else can (none: the server is asked); `lookup_tool`: what a target names as
    `lookup.tool` where its server's owner promises an answer by key ("": the protocol has no such question).
    """

    protocol: str
    lookup: Lookup
    absence: Absence | None
    definite_codes: frozenset[int]
    not_processed_statuses: frozenset[int]
    can_cancel: bool
    cancel_is_evidence: bool
    reply_replay: ReplyReplay
    result_separate: bool
    watches_input: bool
    settle_s: float
    bucket_scope: BucketScope
    sessions: bool = False
    sync: bool = False
    declares: frozenset[str] = frozenset()
    lookup_tool: str = ""
