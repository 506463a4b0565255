"""What happens to a case from outside: people, producers, other workers, and the things that go wrong."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..ledger import epochs
from ..ledger.errors import StaleEpoch
from ..ledger.states import Lane
from ..ledger.work import Item
from .conform_server import CaseBroken
from .conform_transcript import ActorStep
from .conform_worker import Worker

if TYPE_CHECKING:
    from .conform_play import Play

_LANES = {"status": Lane.POLL, "result": Lane.FETCH, "cancel": Lane.CANCEL}


def act(play: "Play", actor: ActorStep, worker: Worker | None) -> None:
    """Do what the step says. `worker`: whose request triggered it. Raises CaseBroken where it makes no sense."""
    ACTORS[actor.do](play, actor, worker)


def can_act(play: "Play", actor: ActorStep) -> bool:
    """Whether the moment of this step has come, its trigger given."""
    return actor.do != "answer_input" or play.is_asked(actor.facts["round"])


def _answer_input(play: "Play", actor: ActorStep, _worker: Worker | None) -> None:
    play.answer(actor.facts["round"], actor.facts["content"])


def _cancel(play: "Play", _actor: ActorStep, _worker: Worker | None) -> None:
    play.cancel()


def _advance_clock(play: "Play", actor: ActorStep, _worker: Worker | None) -> None:
    play.move_to(play.now_us + actor.facts["ms"] * 1000)


def _input_deadline(play: "Play", _actor: ActorStep, _worker: Worker | None) -> None:
    """Nobody answers the question that is open until its time is up."""
    ends_us = play.ledger.input_ends_us(play.operation_id)
    if ends_us is None:
        raise CaseBroken("input_deadline: no question is open")
    play.move_to(ends_us)


def _worker_crash(play: "Play", _actor: ActorStep, worker: Worker | None) -> None:
    """Another one is there at once; what the first one held it gets when the lease has run out."""
    assert worker is not None, "the transcript is checked: a crash has a trigger"
    worker.die()
    play.add_worker()


def _redeliver(play: "Play", actor: ActorStep, _worker: Worker | None) -> None:
    """A request again by a worker that had claimed before; a submit by its message and its wake-up."""
    lane = _LANES.get(actor.facts["what"])
    if lane is None:
        play.hand_in()
        play.wake(Lane.SUBMIT)
        return
    play.redeliver(lane)


def _bump_epoch(play: "Play", _actor: ActorStep, _worker: Worker | None) -> None:
    epochs.bump(play.ledger.database, play.fleet, "transcript")
    play.add_worker()


def _stale_commit(play: "Play", _actor: ActorStep, _worker: Worker | None) -> None:
    """A worker of an older epoch tries to write. The fence refuses it, or the case shows that it did not."""
    oldest = play.workers[0]
    if oldest.epoch == play.workers[-1].epoch:
        raise CaseBroken("stale_commit: no worker is of an older epoch")
    try:
        oldest.transitions.apply([Item(play.operation_id, Lane.POLL)])
    except StaleEpoch:
        return
    raise CaseBroken("stale_commit: the write of an older epoch was not refused")


def _notify(play: "Play", actor: ActorStep, _worker: Worker | None) -> None:
    play.push(actor.facts["json"])


def _token_expires(play: "Play", _actor: ActorStep, _worker: Worker | None) -> None:
    play.server.token_expired = True


ACTORS: dict[str, Callable[["Play", ActorStep, Worker | None], None]] = {
    "answer_input": _answer_input,
    "cancel": _cancel,
    "advance_clock": _advance_clock,
    "input_deadline": _input_deadline,
    "worker_crash": _worker_crash,
    "redeliver": _redeliver,
    "bump_epoch": _bump_epoch,
    "stale_commit": _stale_commit,
    "notify": _notify,
    "token_expires": _token_expires,
}
