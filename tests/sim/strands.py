"""Tier B: statements of transactions, one at a time."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from .moves import (
    IDLE_S,
    Move,
)

if TYPE_CHECKING:
    from .statements import Strand


class Strands:
    """The part of a World in which every statement is a move."""

    def execute(self, name: str, work: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """A transaction. Tier A: at once and whole; tier B: statement by statement, between those of others."""
        self.db.tell_time()
        self._peeked = None
        self._epoch_then[name] = self.bumps[-1].epoch if self.bumps else 0
        if self.loom is None:
            try:
                done = work()
            except Exception as error:  # noqa: BLE001  whoever wanted it judges
                done = error
            then(done)
            return
        while self.loom.strand(name).phase != "idle":
            name += " too"
        strand = self.loom.strand(name)
        self._running.append((strand, self.serial(), then))
        strand.start(work)
        self._done()

    def open_gate(self) -> None:
        """Whoever stood at it goes on to his statement's end at once, which may commit: real time must not decide who
        sees that."""
        assert self.loom is not None
        self.loom.open_gate()
        self._peeked = None
        self._done()

    def _statements(self) -> Iterable[Move]:
        for strand, since, _ in self._running:
            owner = next((worker for worker in self.workers if strand.name.startswith(f"{worker.name} ")), None)
            if strand.phase == "ready" and (owner is None or owner.running):
                yield Move(since, strand.name, strand.about, partial(self._resume, strand), owner.name if owner else "")

    def _resume(self, strand: "Strand") -> None:
        self.db.tell_time()
        self._peeked = None
        if strand.name.startswith("bumper") and strand.about == "COMMIT":
            self._before_bump = self._snapshot()
        strand.resume()
        self._done()

    def _done(self) -> None:
        """Whoever is through hands over what came of it; whoever has got his lock may go on."""
        assert self.loom is not None
        self.loom.look()
        for one in [one for one in self._running if one[0].phase == "done"]:
            self._running.remove(one)
            good, result = one[0].take_result()
            one[2](result if good or isinstance(result, Exception) else None)

    def _end_idle_transactions(self, next_s: float) -> bool:
        """A stopped client holds its locks for two seconds at most: then the database ends it."""
        assert self.loom is not None
        ended = False
        for strand, _, _ in self._running:
            idle_s = next_s - strand.paused_at_s
            if strand.phase == "ready" and strand.in_transaction and idle_s >= IDLE_S and not strand.cut_off:
                assert strand.connection is not None
                strand.cut_off = True
                self.loom.terminate(strand.connection)
                self.sometimes("a stopped client's transaction was ended")
                ended = True
        self._done()
        return ended
