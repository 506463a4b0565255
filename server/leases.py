"""Signs of life for the keys whose requests run in this process."""

import logging
import threading

from .records import LEASE_S
from .store import Store, StoreError

_LOG = logging.getLogger(__name__)


class Leases:
    """Renews what is held, from a thread of its own: a tool that blocks the event loop must not look dead.

    The thread lives while anything is held.
    """

    def __init__(self, store: Store, *, lifetime_s: float, every_s: float = LEASE_S / 3) -> None:
        self._store = store
        self._lifetime_s = lifetime_s
        self._every_s = every_s
        self._held: dict[str, int] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def hold(self, name: str, version: int) -> None:
        """Renew this version of a key until it is dropped."""
        with self._changed:
            self._held[name] = version
            if self._thread is None:
                self._thread = threading.Thread(target=self._renew, name="counterfoil-keys", daemon=True)
                self._thread.start()

    def drop(self, name: str) -> None:
        """Renew it no more."""
        with self._changed:
            del self._held[name]
            self._changed.notify_all()

    def _renew(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: not self._held, timeout=self._every_s)
                if not self._held:
                    self._thread = None
                    return
                held = list(self._held.items())
            for name, version in held:
                try:
                    self._store.renew(name, version=version, lifetime_s=self._lifetime_s)
                except StoreError as error:
                    _LOG.warning("a running call's submission key could not be renewed: %s", error)
