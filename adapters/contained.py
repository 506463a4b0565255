"""Another package's adapter, kept from breaking anybody else: whatever it raises becomes the outcome that claims least.

An exception would end the loop of a worker, with every other target in it. A request with an effect that can't be built
becomes one that can't be sent: its row is given back and the operation ends with its budget.
"""

import logging
from collections.abc import Callable
from types import UnionType
from typing import TypeVar

from . import strict_json
from .contract import (
    Adapter,
    Call,
    Effect,
    Endpoint,
    Exchange,
    InputReply,
    RemoteTask,
    Reply,
    Request,
    Search,
)
from .outcomes import (
    Busy,
    CancelOutcome,
    Hint,
    LookupOutcome,
    Negotiated,
    Negotiation,
    NotOffered,
    Observation,
    Refused,
    ReplyOutcome,
    SubmitOutcome,
    Unclear,
)

CODE = "E_ADAPTER_BROKEN"
NOWHERE = "adapter-broken:"
"""A URL that no transport takes: not one byte leaves."""

T = TypeVar("T")

log = logging.getLogger(__name__)


class Contained:
    """The adapter with the same verbs. Stateless as it is itself."""

    def __init__(self, adapter: Adapter) -> None:
        self.profile = adapter.profile
        self._adapter = adapter

    # -- what only asks ------------------------------------------------------------------------------------------------

    def negotiate(self, endpoint: Endpoint, tool: str) -> Exchange[Negotiation]:
        return self._asked("negotiate", lambda a: _usable(a.negotiate(endpoint, tool)), Negotiation, _not_offered)

    def lookup(self, endpoint: Endpoint, search: Search) -> Exchange[LookupOutcome]:
        return self._asked("lookup", lambda a: a.lookup(endpoint, search), LookupOutcome, _unclear)

    def poll(self, endpoint: Endpoint, task: RemoteTask) -> Exchange[Observation]:
        return self._asked("poll", lambda a: a.poll(endpoint, task), Observation, _busy)

    def fetch(self, endpoint: Endpoint, task: RemoteTask) -> Exchange[Observation]:
        return self._asked("fetch", lambda a: a.fetch(endpoint, task), Observation, _busy)

    def end_session(self, endpoint: Endpoint, session: bytes) -> Exchange[None]:
        return self._asked("end_session", lambda a: a.end_session(endpoint, session), type(None), lambda _: None)

    def _asked(
        self, verb: str, ask: Callable[[Adapter], Exchange[T]], kinds: UnionType | type, broken: Callable[[str], T]
    ) -> Exchange[T]:
        try:
            outcome = yield from ask(self._adapter)
        except Exception as error:  # noqa: BLE001  whatever a stranger's code raises
            return broken(self._told(verb, error))
        return outcome if isinstance(outcome, kinds) else broken(self._told(verb, _no_outcome(outcome)))

    # -- effects -------------------------------------------------------------------------------------------------------

    def submit(self, endpoint: Endpoint, call: Call) -> Exchange[SubmitOutcome]:
        reply = yield self._effect("submit", lambda a: a.submit(endpoint, call), Effect.SUBMIT)
        return self.read_submit(endpoint, call, reply)

    def cancel(self, endpoint: Endpoint, task: RemoteTask) -> Exchange[CancelOutcome]:
        reply = yield self._effect("cancel", lambda a: a.cancel(endpoint, task), Effect.CANCEL)
        return self.read_cancel(endpoint, task, reply)

    def reply(self, endpoint: Endpoint, task: RemoteTask, reply: InputReply) -> Exchange[ReplyOutcome]:
        answer = yield self._effect("reply", lambda a: a.reply(endpoint, task, reply), Effect.ANSWER)
        return self.read_reply(endpoint, task, answer)

    def _effect(self, verb: str, ask: Callable[[Adapter], Exchange[T]], effect: Effect) -> Request:
        try:
            exchange = ask(self._adapter)
            request: object = next(exchange)
            exchange.close()
        except Exception as error:  # noqa: BLE001  as above; StopIteration is one: it asked for nothing
            self._told(verb, error)
        else:
            if isinstance(request, Request) and request.effect is effect:
                return request
            self._told(verb, TypeError("its first request has not the effect"))
        return Request("POST", NOWHERE, effect=effect)

    # -- what is read from bytes ---------------------------------------------------------------------------------------

    def read_submit(self, endpoint: Endpoint, call: Call, reply: Reply) -> SubmitOutcome:
        return self._read("read_submit", lambda a: a.read_submit(endpoint, call, reply), SubmitOutcome, _unclear)

    def read_cancel(self, endpoint: Endpoint, task: RemoteTask, reply: Reply) -> CancelOutcome:
        return self._read("read_cancel", lambda a: a.read_cancel(endpoint, task, reply), CancelOutcome, _unclear)

    def read_reply(self, endpoint: Endpoint, task: RemoteTask, reply: Reply) -> ReplyOutcome:
        return self._read("read_reply", lambda a: a.read_reply(endpoint, task, reply), ReplyOutcome, _unclear)

    def read_input(self, endpoint: Endpoint, task: RemoteTask, body: bytes) -> Observation:
        return self._read("read_input", lambda a: a.read_input(endpoint, task, body), Observation, _refused)

    def hints(self, reply: Reply) -> tuple[Hint, ...]:
        return self._read("hints", lambda a: tuple(a.hints(reply)), tuple, lambda _: ())

    def _read(self, verb: str, read: Callable[[Adapter], T], kinds: UnionType | type, broken: Callable[[str], T]) -> T:
        try:
            outcome = read(self._adapter)
        except Exception as error:  # noqa: BLE001  as above
            return broken(self._told(verb, error))
        return outcome if isinstance(outcome, kinds) else broken(self._told(verb, _no_outcome(outcome)))

    def _told(self, verb: str, error: Exception) -> str:
        """Say it with the traceback; the short form is for the journal and holds nothing that a server said."""
        log.error("%s: the adapter of %s failed in %s", CODE, self.profile.protocol, verb, exc_info=error)
        return f"the adapter of {self.profile.protocol} failed in {verb} ({type(error).__name__})"


def _usable(exchange: Exchange[Negotiation]) -> Exchange[Negotiation]:
    """Every contract is read from its descriptor. Raises TypeError, BadJson."""
    outcome = yield from exchange
    if isinstance(outcome, Negotiated) and not isinstance(strict_json.loads(outcome.descriptor), dict):
        raise TypeError("a descriptor is a JSON object")
    if isinstance(outcome, NotOffered):
        names: object = outcome.others or ()
        if not isinstance(names, tuple) or not all(isinstance(n, str) and strict_json.is_storable(n) for n in names):
            raise TypeError("the names of tools are a tuple of texts that can be stored")
    return outcome


def _no_outcome(value: object) -> TypeError:
    return TypeError(f"{type(value).__name__} is no outcome of it")


def _not_offered(why: str) -> Negotiation:
    return NotOffered(CODE, f"Not sent: {why}.")


def _unclear(why: str) -> Unclear:
    return Unclear(CODE, why)


def _busy(_why: str) -> Busy:
    return Busy(CODE)


def _refused(why: str) -> Refused:
    return Refused(CODE, why)
