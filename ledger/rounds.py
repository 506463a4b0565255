"""Input rounds: one question of a tool to a person each (SPEC section 4).

A round is `open` until a person replied, `replied` until the reply is on its way, `sent` once the server took it,
`unclear` when nobody knows whether it did, and `closed` when the task was seen past it.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

RoundState: TypeAlias = Literal["open", "replied", "sent", "unclear", "closed"]

MAX_ROUNDS = 50
"""A tool that asks without an end must not fill the ledger."""

REPLY_SENDS = 3
"""How often one reply may be sent, where the profile lets it be sent again at all."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. `key` is the round's identity: the server's own key, or the digest of session, request id and
    parameters. `params` is exact JSON; `schema_digest` is taken over its schema's RFC 8785 text."""

    key: str
    method: str
    params: bytes
    schema_digest: bytes
    reply_to: str = ""


@dataclass(frozen=True, slots=True)
class Round:
    """One round as `decide()` sees it."""

    number: int
    key: str
    state: RoundState
    sends: int = 0
    leg: int = 1
    """Keys are unique within a leg: a task asks in its call's last one."""

    @property
    def waits(self) -> bool:
        """The task has not been seen past it."""
        return self.state != "closed"
