"""Sessions of servers as this process knows them: opened once, by id, from what the ledger keeps sealed."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Protocol
from uuid import UUID

MAX_KNOWN = 4096


class SessionKeeper(Protocol):
    """Where sessions come from when they are not known: the ledger, and the keys that open what it holds."""

    def load(self, ids: Iterable[UUID]) -> Mapping[UUID, bytes]: ...


class Sessions:
    """A cache by id. A session never changes, so it can't be wrong; it is read by the loop and by the database
    thread."""

    def __init__(self, keeper: SessionKeeper) -> None:
        self._keeper = keeper
        self._known: OrderedDict[UUID, bytes] = OrderedDict()
        self._lock = Lock()

    def learn(self, session_id: UUID, session: bytes) -> None:
        with self._lock:
            self._known[session_id] = session
            while len(self._known) > MAX_KNOWN:
                self._known.popitem(last=False)

    def preload(self, ids: Iterable[UUID | None]) -> None:
        """Open what a claim's rows will need, in one query (for the database thread)."""
        with self._lock:
            missing = {session_id for session_id in ids if session_id is not None and session_id not in self._known}
        if missing:
            for session_id, session in self._keeper.load(missing).items():
                self.learn(session_id, session)

    def get(self, session_id: UUID | None) -> bytes | None:
        """The session, None for an operation without one. Asks the keeper only if a claim did not preload it."""
        if session_id is None:
            return None
        self.preload([session_id])
        with self._lock:
            return self._known.get(session_id)
