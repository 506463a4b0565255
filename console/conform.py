"""`counterfoil conform`: transcripts through the real adapters, the real ledger and the real loop.

Only the wire is replaced: what a request would have been sent to is the transcript's server.
"""

import traceback
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from cryptography.fernet import Fernet

from ..ledger.errors import CounterfoilError
from ..workers.vault import Vault
from .conform_compare import differences
from .conform_ledger import ConformLedger, throw_away_ledger
from .conform_play import Play
from .conform_server import CaseBroken, Entry
from .conform_target import not_built
from .conform_transcript import Transcript, TranscriptRefused, load
from .exits import Exit
from .output import clean, print_json, say

OWN_CASES = Path(__file__).resolve().parents[1] / "tests" / "cases"
"""Of a checkout; an installed package has none."""


class Verdict(StrEnum):
    PASS = "PASS"  # noqa: S105  not a password
    FAIL = "FAIL"
    SKIP = "SKIP"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a case ended. `found`: what differs, or what is not built yet; `log`: what its server was asked."""

    transcript: Transcript
    verdict: Verdict
    found: tuple[str, ...] = ()
    log: Sequence[Entry] = ()

    def line(self) -> str:
        what = f"{self.verdict} {self.transcript.id} "
        match self.verdict:
            case Verdict.PASS:
                return what + self.transcript.title
            case Verdict.SKIP:
                return what + f"{self.found[0]} is not built yet"
            case Verdict.FAIL:
                return what + f"{self.transcript.title}: {'; '.join(self.found)}"

    def as_json(self) -> dict[str, object]:
        log = [{"at_ms": one.at_us / 1000, "on": one.on, "step": one.step} for one in self.log]
        case = {"id": self.transcript.id, "title": self.transcript.title, "verdict": self.verdict}
        return case | {"found": list(self.found), "log": log}


def run_conform(paths: Sequence[Path], *, only: Collection[str] = (), as_json: bool = False) -> Exit:
    """Play transcripts (without any: the checkout's own) and print one line a case. OK unless one fails.

    Raises TranscriptRefused, DevStackError, LedgerUnavailable, SchemaOutdated; then nothing was played.
    """
    transcripts = _chosen(paths, only)
    counts: Counter[Verdict] = Counter()
    for outcome in play_all(transcripts):
        counts[outcome.verdict] += 1
        if as_json:
            print_json(outcome.as_json())
        else:
            print(clean(outcome.line()), flush=True)
    summary = f"{counts[Verdict.PASS]} passed, {counts[Verdict.FAIL]} failed, {counts[Verdict.SKIP]} skipped"
    (say if as_json else print)(summary)
    return Exit.INTERNAL if counts[Verdict.FAIL] else Exit.OK


def _chosen(paths: Sequence[Path], only: Collection[str]) -> list[Transcript]:
    if not paths and not OWN_CASES.is_dir():
        raise TranscriptRefused("no transcripts were given.", next_step="Name files, or a folder of them.")
    transcripts = load(paths or [OWN_CASES])
    missing = sorted(set(only) - {one.id for one in transcripts})
    if missing:
        raise TranscriptRefused(f"there is no case {', '.join(missing)}.", next_step="Correct --only.")
    return [one for one in transcripts if not only or one.id in only]


def play_all(transcripts: Sequence[Transcript]) -> Iterator[Outcome]:
    """Each case in a fleet of its own, all of them on one database. Without one that can be played none is started."""
    if all(not_built(one) for one in transcripts):
        yield from (Outcome(one, Verdict.SKIP, (str(not_built(one)),)) for one in transcripts)
        return
    vault = Vault([Fernet.generate_key().decode()])
    with throw_away_ledger() as ledger:
        for number, transcript in enumerate(transcripts, 1):
            missing = not_built(transcript)
            if missing is not None:
                yield Outcome(transcript, Verdict.SKIP, (missing,))
            else:
                yield play_one(transcript, ledger, f"case-{number}-{transcript.id}", vault)


def play_one(transcript: Transcript, ledger: ConformLedger, fleet: str, vault: Vault) -> Outcome:
    """Play one case. A fault of ours fails the case and no other."""
    play: Play | None = None
    try:
        play = Play(transcript, ledger, fleet, vault)
        found = differences(transcript.expected, play.run())
    except (CaseBroken, CounterfoilError) as error:
        found = [str(error)]
    except Exception as error:  # noqa: BLE001  a case that breaks the loop is a finding, not the end of the run
        where = traceback.extract_tb(error.__traceback__)[-1]
        found = [f"{type(error).__name__} in {Path(where.filename).name}, line {where.lineno}: {error}"]
    verdict = Verdict.FAIL if found else Verdict.PASS
    return Outcome(transcript, verdict, tuple(found), play.story() if play is not None else ())
