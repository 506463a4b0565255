"""What a campaign has seen so far."""

import json
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# States that are rare and must have been reached by a whole campaign: one that never was says that the simulator has
# gone
# blind there.
REQUIRED = (
    "a call that asks before it begins",
    "a call that asks for ever",
    "a call that breaks its schema",
    "a call that completes whatever we ask",
    "a call that is cancelled by its server",
    "a call that is forgotten",
    "a call that is refused",
    "a call that never ends",
    "a call that says cancelled and completes",
    "a call that asks twice",
    "a call that runs behind an internal error",
    "a call that runs behind invalid params",
    "a call that speaks in tongues",
    "a commit's outcome was lost",
    "a consumer acted upon a receipt",
    "a key was answered with its first task",
    "a lookup found",
    "a lookup missed",
    "a request arrived after its sender had given up",
    "a request timed out",
    "a server made a second task for a key",
    "a stopped client's transaction was ended",
    "a wake-up was lost",
    "an order: uniform",
    "an order: sticky",
    "an order: PCT of depth 2",
    "an order: PCT of depth 3",
    "an order: PCT of depth 4",
    "three calls at once",
    "a worker found its epoch over",
    "a worker was stopped",
    "begun: answer kept",
    "begun: asked",
    "begun: cancel answered",
    "begun: cancel asked",
    "begun: cancel sent",
    "begun: intent open",
    "begun: over",
    "begun: sent",
    "begun: unknown",
    "begun: working",
    "begun: working, its worker dead",
    "send_by had passed at the first byte",
    "the bucket was wiped",
    "the database failed over",
    "ended as ACCEPTED succeeded",
    "ended as ACCEPTED failed",
    "ended as ACCEPTED cancelled",
    "ended as ACCEPTED abandoned",
    "ended as CANCELLED_ACCEPTED cancelled",
    "ended as REFUSED refused",
    "a second attempt was made",
    "a case: E_SUBMISSION_UNKNOWN",
    "a case: E_TWO_OPERATIONS",
    "a case: E_TASK_ID_REUSED",
    "a case: E_CANCEL_UNCONFIRMED",
    "a case: E_WAIT_BUDGET_EXHAUSTED",
    "a case: E_RESULT_MISSING",
    "a case: E_RESULT_SCHEMA",
    "a case: E_OPERATION_UNKNOWN",
    "a case: E_STATUS_REGRESSED",
    "a case: E_LATE_COMPLETION_AFTER_CANCEL",
    "a case: E_LATE_ANSWER",
)

PAIRS = 1500
"""Pairs of kinds of moves that followed each other: they flatten out, and fewer say that something is not tried."""


@dataclass
class Tally:
    """Thread-safe counts."""

    traces: dict[str, set[str]] = field(default_factory=lambda: {"A": set(), "B": set()})
    """Distinct orderings by tier."""
    runs: Counter[str] = field(default_factory=Counter)
    moves: int = 0
    waits: dict[str, int] = field(default_factory=dict)
    reached: Counter[str] = field(default_factory=Counter)
    pairs: set[tuple[str, str]] = field(default_factory=set)
    failed: list[dict[str, Any]] = field(default_factory=list)
    began_s: float = field(default_factory=time.perf_counter)
    _before: int = 0
    """Runs of another day."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, tier: str, family: str, who: str, said: dict[str, Any]) -> None:
        with self._lock:
            self.traces[tier].update(said["traces"])
            self.runs[tier] += said["runs"]
            self.runs[f"{tier} {family}"] += said["runs"]
            self.moves += said["moves"]
            self.waits[who] = said["waits"]
            self.reached.update(said["reached"])
            self.pairs.update((one, other) for one, other in said["pairs"])
            if said["failed"] is not None:
                self.failed.append(said["failed"])

    @property
    def missing(self) -> list[str]:
        """Rare states that were never reached."""
        return [what for what in REQUIRED if not self.reached[what]]

    @property
    def per_s(self) -> float:
        return (self.runs["A"] + self.runs["B"] - self._before) / max(time.perf_counter() - self.began_s, 1e-9)

    # -- a campaign that goes on another day -------------------------------------------------------------------------

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        with self._lock:
            kept = {
                "runs": dict(self.runs),
                "moves": self.moves,
                "reached": dict(self.reached),
                "pairs": sorted(self.pairs),
            }
            for tier, traces in self.traces.items():
                (folder / f"traces_{tier}.bin").write_bytes(b"".join(map(bytes.fromhex, sorted(traces))))
            (folder / "tally.json").write_text(json.dumps(kept))

    def load(self, folder: Path) -> None:
        if not (folder / "tally.json").exists():
            return
        kept = json.loads((folder / "tally.json").read_text())
        self.runs, self.moves, self.reached = Counter(kept["runs"]), kept["moves"], Counter(kept["reached"])
        self.pairs = {(one, other) for one, other in kept["pairs"]}
        self._before = self.runs["A"] + self.runs["B"]
        for tier in self.traces:
            packed = (folder / f"traces_{tier}.bin").read_bytes()
            self.traces[tier] = {packed[at : at + 8].hex() for at in range(0, len(packed), 8)}
