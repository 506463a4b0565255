"""The server of a transcript: takes each request to the first step that may answer it, and keeps the books."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

from ..adapters.contract import Answered, NoAnswer, Request, Sent
from ..adapters.sse import is_stream
from .conform_dialect import Asked, Dialect
from .conform_ledger import START
from .conform_transcript import ServerStep, Transcript

SPARE_REQUESTS = 100
"""What a case may need beside the polls that its wait budget allows."""


class CaseBroken(Exception):
    """The case can't be played to its end. The text is what its line says."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A request on its way to its answer: the step (None: the server answers by itself) and its how-manieth use."""

    asked: Asked
    step: ServerStep | None
    date: str
    count: int = 1


@dataclass(slots=True)
class Entry:
    """A line of the server's log. Moments on the virtual clock; `answered_us` None while it is out."""

    at_us: int
    kind: str | None
    on: str
    step: str | None
    answered_us: int | None = None


class TranscriptServer:
    """Steps with their uses left, and what was asked so far. `key`: the submission key, which steps write as `$key`."""

    def __init__(self, transcript: Transcript, dialect: Dialect, key: str) -> None:
        self._dialect = dialect
        self._steps = transcript.server
        self._key = key
        policy = transcript.policy
        self._most = SPARE_REQUESTS + policy["totalWaitMs"] // max(policy["pollMinMs"], 1)
        self._uses: Counter[str] = Counter()
        self.log: list[Entry] = []
        self.effects = 0
        self.keys: set[str] = set()
        self.token_expired = False

    # -- taking a request ----------------------------------------------------------------------------------------------

    def take(self, request: Request, now_us: int) -> tuple[Taken, Entry]:
        """Find the step for a request and count both. Raises CaseBroken for one that no step expects."""
        if len(self.log) >= self._most:
            raise CaseBroken(f"more than {self._most} requests, which is more than its wait budget has polls")
        asked = self._dialect.read(request)
        step = self._next(asked)
        if step is None and not self._answers_itself(asked):
            raise CaseBroken(f"unexpected request: {asked.on}")
        date = format_datetime(START + timedelta(microseconds=now_us), usegmt=True)
        entry = Entry(now_us, asked.kind, asked.on, None if step is None else step.id)
        self.log.append(entry)
        if asked.key is not None:
            self.keys.add(asked.key)
        if step is None:
            return Taken(asked, None, date), entry
        self._check(asked, step)
        self._uses[step.id] += 1
        self.effects += step.creates
        return Taken(asked, step, date, self._uses[step.id]), entry

    def _next(self, asked: Asked) -> ServerStep | None:
        """The first step of this kind with uses left. An expired token is refused by the server itself, unless the
        transcript tells how."""
        steps = (step for step in self._steps if _with_key(step.on, self._key) == asked.on)
        open_steps = (step for step in steps if step.times is None or self._uses[step.id] < step.times)
        step = next(open_steps, None)
        if self.token_expired and (step is None or step.respond.get("status") != 401):
            return None
        return step

    def _answers_itself(self, asked: Asked) -> bool:
        return self.token_expired or self._dialect.handshake(asked) is not None

    def _check(self, asked: Asked, step: ServerStep) -> None:
        for name, wanted in step.match.items():
            if name not in asked.view or not _fits(asked.view[name], wanted, self._key):
                found = str(asked.view.get(name, "nothing"))[:100]
                raise CaseBroken(f"{asked.on} does not match step {step.id}: {name} is {found}, expected {wanted}")

    # -- answering it --------------------------------------------------------------------------------------------------

    def answer(self, taken: Taken, request: Request) -> Answered | NoAnswer:
        """What comes back over the wire, within the bounds that the request set. A server that has a clock says what
        time it is: a wait until a date is counted from there."""
        step = taken.step
        if step is not None and step.drop is not None:
            return NoAnswer(Sent.MAYBE, f"the connection was lost ({step.drop})")
        reply = self._reply(taken)
        if reply.status == 401:
            self.token_expired = False  # whoever hears it resolves the credential anew
        reply = replace(reply, headers={"date": taken.date} | dict(reply.headers))
        return _as_read(reply, request)

    def _reply(self, taken: Taken) -> Answered:
        if taken.step is not None:
            return self._dialect.answer(taken.asked, _with_key(taken.step.respond, self._key))
        own = None if self.token_expired else self._dialect.handshake(taken.asked)
        return own or Answered(401, {"www-authenticate": "Bearer"})

    # -- the books -----------------------------------------------------------------------------------------------------

    def counts(self) -> Mapping[str, int]:
        """Requests by kind. Only a handshake beyond the first is counted."""
        counts = Counter(entry.kind for entry in self.log if entry.kind is not None)
        counts["handshake"] = max(counts["handshake"] - 1, 0)
        return dict(counts)

    def gaps_ms(self) -> Mapping[str, float]:
        """Step -> the least time from one of its answers to the next status request."""
        gaps_ms: dict[str, float] = {}
        for index, entry in enumerate(self.log):
            if entry.step is None or entry.answered_us is None:
                continue
            later = (one.at_us for one in self.log[index + 1 :] if one.kind == "status")
            asked_us = next((at_us for at_us in later if at_us >= entry.answered_us), None)
            if asked_us is not None:
                gap_ms = (asked_us - entry.answered_us) / 1000
                gaps_ms[entry.step] = min(gap_ms, gaps_ms.get(entry.step, gap_ms))
        return gaps_ms


def _fits(found: Any, wanted: Any, key: str) -> bool:
    """Whether `wanted` is a subset of what was found. `$key`: the submission key, `$any`: anything."""
    if wanted == "$any":
        return True
    if wanted == "$key":
        return bool(found == key)
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(
            name in found and _fits(found[name], value, key) for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        same_length = isinstance(found, list) and len(found) == len(wanted)
        return same_length and all(_fits(one, other, key) for one, other in zip(found, wanted, strict=True))
    return bool(found == wanted)


def _with_key(value: Any, key: str) -> Any:
    """The same with `$key` put in."""
    if isinstance(value, str):
        return value.replace("$key", key)
    if isinstance(value, Mapping):
        return {name: _with_key(item, key) for name, item in value.items()}
    if isinstance(value, list):
        return [_with_key(item, key) for item in value]
    return value


def _as_read(reply: Answered, request: Request) -> Answered | NoAnswer:
    """An answer as our wire hands it on: a stream up to the event that was waited for, nothing over the cap."""
    if request.until is not None and is_stream(reply.headers):
        reply = replace(reply, body=_until(reply.body, request.until))
    if len(reply.body) > request.max_bytes:
        why = f"the answer is larger than {request.max_bytes} bytes"
        return NoAnswer(Sent.MAYBE, why, reply.body[: request.max_bytes])
    return reply


def _until(stream: bytes, until: Callable[[bytes], bool]) -> bytes:
    """The events (one `data` line each, as the dialect writes them) up to the one that was waited for."""
    heard = b""
    for event in stream.split(b"\n\n")[:-1]:
        heard += event + b"\n\n"
        if until(event.partition(b"data: ")[2]):
            break
    return heard
