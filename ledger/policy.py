"""What is pinned for an operation at its first intent: the tool's policy and what the protocol promises (SPEC
section 1).

A policy edited in the targets file reaches new operations only: a lookup that was declared after a submit would
otherwise call "absent" what never carried a key.
"""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from .digest import canonical_json, sha256

Seconds = float


class Policy(BaseModel):
    """Limits and promises for one tool of one target, in the words of SPEC. Durations in seconds, sizes in bytes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    protocol: str
    wait_budget_s: Seconds = Field(3600.0, gt=0, le=30 * 86400)
    on_budget: Literal["reconcile", "cancel"] = "reconcile"
    poll_min_s: Seconds = Field(1.0, gt=0)
    poll_max_s: Seconds = Field(300.0, gt=0)
    poll_default_s: Seconds = Field(5.0, gt=0)
    send_by_s: Seconds = Field(10.0, gt=0, le=60)
    answer_by_s: Seconds = Field(60.0, gt=0)
    max_attempts: int = Field(2, ge=1, le=2)
    not_found_asks: int = Field(3, ge=1)
    auth_tries: int = Field(3, ge=1)
    cancel_confirm_s: Seconds = Field(60.0, gt=0)
    cancel_sends: int = Field(3, ge=1)
    input_deadline_s: Seconds = Field(7200.0, gt=0)
    on_input_deadline: Literal["cancel", "reconcile"] = "cancel"
    input_watch_s: Seconds = Field(60.0, ge=0)
    effects: bool = True
    effect_case: Literal["always", "on_evidence"] = "on_evidence"
    on_unknown: Literal["reconcile", "abandon"] = "reconcile"
    on_unknown_after_s: Seconds = Field(900.0, gt=0)
    max_result_bytes: int = Field(1024 * 1024, gt=0)
    empty_result: bool = False
    can_cancel: bool = True
    cancel_is_evidence: bool = False
    result_separate: bool = False
    sync: bool = False
    """The call blocks until it is over: it runs in the lane `sync`, and `answer_by_s` is its published bound."""
    lookup: Literal["none", "by_key", "client_chosen_id", "replay"] = "none"
    lookup_tool: str = ""
    """The read-only tool that is asked by key, where the protocol itself has no such question."""
    api: str = ""
    """What the operator declared of the tool's own API (JSON text), where the protocol leaves that to him: routes,
    words, and how the key travels."""
    absence: Literal["unique", "closes", "bounded"] | None = None
    bounded_allowed: bool = False
    key_lifetime_s: Seconds = Field(0.0, ge=0, le=366 * 86400)
    """How long the server remembers a key, from the first intent on; 0: it promises nothing."""
    reply_replay: Literal["safe", "read_first", "never"] = "never"
    require_answer: bool = False
    """A question that closes without our answer asks a person (SPEC section 4)."""
    four_eyes: bool = False
    """The principal that asked for the call may not answer its questions."""
    cancel_stops: bool = False
    """The owner's word that a confirmed cancel stops the work."""
    audit_s: Seconds = Field(300.0, ge=0, le=30 * 86400)
    """How long after a won cancel the task is still looked at now and then (SPEC section 5); 0: not at all."""
    settle_s: Seconds = Field(5.0, ge=0)
    url: str = ""
    credential: str = ""
    """The reference (`env:…`, `file:…`, `exec:…`), never the secret: a lookup counts only in the scope that
    submitted."""

    @model_validator(mode="after")
    def _abandons_only_what_changes_nothing(self) -> Self:
        if self.on_unknown == "abandon" and self.effects:
            raise ValueError("on_unknown: abandon is for tools without effects (effects: false)")
        return self

    @property
    def asks_by_key(self) -> bool:
        """Whether a lost submit is looked up by a read: by its key, or under the id that the key is."""
        return self.lookup in ("by_key", "client_chosen_id")

    def clamp_poll_s(self, told_ms: int | None) -> float:
        """The pause before the next read, in seconds: the server's last word or the default, inside [min, max] (SPEC
        section 3)."""
        wanted_s = self.poll_default_s if told_ms is None else told_ms / 1000.0
        return min(max(wanted_s, self.poll_min_s), self.poll_max_s)

    def canonical(self) -> bytes:
        """RFC 8785 text, the bytes that are pinned and digested."""
        return canonical_json(self.model_dump(mode="json"))

    def digest(self) -> bytes:
        return sha256(self.canonical())
