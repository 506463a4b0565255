"""What a code or a state means, as `counterfoil explain` tells it."""

from collections.abc import Iterator
from difflib import get_close_matches

from ..ledger.errors import InputRefused
from ..ledger.states import EDGES, TERMINAL, Lane, State
from .codes import SECTIONS, Entry, Section, all_codes

STATES = {
    State.SUBMITTING: "Handed in. Before the intent is committed nothing was sent; after it the answer is awaited.",
    State.SUBMISSION_UNKNOWN: "The answer to the submit is lost. Nothing is sent again: a lookup by key, a late answer "
    "or a person says what became of it.",
    State.NOT_FOUND_SAFE: "A lookup proved that the first attempt was never created: the same key may be sent again.",
    State.WORKING: "The server returned a task that can be queried, and works.",
    State.INPUT_REQUIRED: "The tool asks a question; a person has until the deadline to answer.",
    State.CANCEL_REQUESTED: "A cancel was asked for. It is a request: the server's word ends it.",
    State.TERMINAL_OBSERVED: "The server said that it is over. A status is not a result.",
    State.FETCHING_RESULT: "The result is fetched and checked before there is a receipt.",
    State.ACCEPTED: "Over: there is a receipt, and its outcome says how it ended.",
    State.CANCELLED_ACCEPTED: "Over: cancelled, and nothing that comes later makes it a success.",
    State.REFUSED: "Over: refused before anything was sent.",
}


def explain(word: str) -> list[tuple[str, str]]:
    """What a code or a state means, as names and values. Raises InputRefused that names the nearest."""
    wanted = word.strip().upper()
    for section in SECTIONS:
        for entry in section.entries:
            if wanted in entry.codes:
                return list(_told(wanted, section, entry))
    if wanted in STATES:
        return list(_state(State(wanted)))
    near = get_close_matches(wanted[:64], [*all_codes(), *STATES], n=1, cutoff=0.5)
    raise InputRefused(
        f"there is no code or state {word[:64]!r}." + (f" Did you mean {near[0]}?" if near else ""),
        next_step="docs/errors.md lists the codes, docs/states.md the states.",
    )


def _told(code: str, section: Section, entry: Entry) -> Iterator[tuple[str, str]]:
    yield "code", code
    yield "where", section.title
    if entry.outcome:
        yield "outcome", entry.outcome
    yield "means", entry.means
    if entry.then:
        yield "do next", entry.then


def _state(state: State) -> Iterator[tuple[str, str]]:
    yield "state", state
    yield "means", STATES[state]
    moves = [(target, lanes) for (source, target), lanes in EDGES.items() if source is state]
    for target, lanes in moves:
        by = "a verdict" if lanes == {Lane.DOOR} and target is State.ACCEPTED else _lanes(lanes)
        yield "goes to", f"{target} by {by}"
    if state in TERMINAL:
        yield "goes to", "nowhere: it absorbs"


def _lanes(lanes: frozenset[Lane]) -> str:
    return ", ".join(lane for lane in Lane if lane in lanes)
