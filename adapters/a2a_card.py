"""A2A 1.0: where an agent's card is, and what it says of a skill. Pure functions; hostile cards included."""

from collections.abc import Sequence
from difflib import get_close_matches
from urllib.parse import urlsplit

from . import strict_json
from .contract import Answered
from .fields import MAX_WORD_CHARS, items, member, word
from .outcomes import Negotiated, NotOffered
from .strict_json import BadJson, Json

PROTOCOL = "a2a-1.0"
VERSION = "1.0"
BINDING = "JSONRPC"
WELL_KNOWN = "/.well-known/agent-card.json"

MAX_URL_CHARS = 200
"""Of a URL that a message repeats."""

MAX_PLACES = 4
"""An agent may live below a path, with its card beside it, or at the root of its host."""

_PART: dict[str, Json] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "data": {},
        "url": {"type": "string"},
        "raw": {"type": "string"},
        "filename": {"type": "string"},
        "mediaType": {"type": "string"},
        "metadata": {"type": "object"},
    },
    "oneOf": [{"required": [content]} for content in ("text", "data", "url", "raw")],
    "additionalProperties": False,
}

PARTS_SCHEMA: dict[str, Json] = {
    "anyOf": [
        _PART,
        {
            "type": "object",
            "properties": {"parts": {"type": "array", "items": _PART, "minItems": 1}},
            "required": ["parts"],
            "additionalProperties": False,
        },
    ]
}
"""What may be said to an agent: one part, or `{"parts": […]}`. The protocol has no schema for a skill's input."""


def places(url: str) -> list[str]:
    """Where the card of the agent at `url` may be, the nearest first. Only within its own origin."""
    parts = urlsplit(url)
    steps = [step for step in parts.path.split("/") if step]
    paths = ["/".join(["", *steps[:count]]) for count in range(len(steps), -1, -1)]
    nearest = paths[: MAX_PLACES - 1] + paths[MAX_PLACES - 1 :][-1:]
    return [f"{parts.scheme}://{parts.netloc}{path}{WELL_KNOWN}" for path in nearest]


def read(answer: Answered) -> dict[str, Json] | None:
    """A card; None for anything else."""
    if answer.status != 200:
        return None
    try:
        card = strict_json.loads(answer.body)
    except BadJson:
        return None
    return card if isinstance(card, dict) else None


def objection(card: dict[str, Json], server: str, url: str) -> NotOffered | None:
    """Why this agent can't be spoken to in this version; None: it can.

    A card is written for the public address, which need not be the one that we were given. Where it names ours, what it
    says of that counts; we never go to an address that only the card knows.
    """
    offered = [one for one in items(card.get("supportedInterfaces")) if isinstance(one, dict)]
    here = [one for one in offered if one.get("url") == url]
    spoken = [one for one in here or offered if _is_ours(one)]
    if not spoken:
        named = ", ".join(_named(one) for one in (here or offered)[:8])
        return _unsupported(server, f"its card offers {named or 'no interface'}, not {BINDING} {VERSION}")
    elsewhere = None if here else _elsewhere(spoken, url)
    if elsewhere is not None:
        return _unsupported(server, f"its card names {elsewhere}; give that URL, if it is the agent that you mean")
    if all(one.get("tenant") not in (None, "") for one in spoken):
        return _unsupported(server, "its card asks for a tenant in every request, which this adapter doesn't send")
    for extension in items(member(card, "capabilities", "extensions")):
        if member(extension, "required") is True:
            uri = word(member(extension, "uri"))
            return _unsupported(server, f"its card requires the extension {uri!r}, which this adapter doesn't know")
    return None


def _elsewhere(spoken: Sequence[dict[str, Json]], url: str) -> str | None:
    """Where the interface is, if all of them are at our own origin and none of them is what we were given: what
    answers there is something else. Of another origin nobody can say, since there may be a proxy in between."""
    named = [place for one in spoken if isinstance(place := one.get("url"), str)]
    ours = urlsplit(url)
    if any(one.rstrip("/") == url.rstrip("/") for one in named):
        return None
    same = [one for one in named if one.startswith(f"{ours.scheme}://{ours.netloc}/")]
    return strict_json.storable(same[0], MAX_URL_CHARS) if same and len(same) == len(spoken) else None


def has_more(card: dict[str, Json]) -> bool:
    """Whether the agent shows another card to those who bring a credential."""
    return member(card, "capabilities", "extendedAgentCard") is True


def skill(card: dict[str, Json], tool: str) -> dict[str, Json] | None:
    """The skill of that id; None where the card has none."""
    found = (one for one in items(card.get("skills")) if isinstance(one, dict) and one.get("id") == tool)
    return next(found, None)


def agreed(card: dict[str, Json], found: dict[str, Json], server: str) -> Negotiated | NotOffered:
    """The outcome for a skill that `skill` gave. Its descriptor is what our arguments are checked against."""
    unstorable = strict_json.find_unstorable(found)
    if unstorable is not None:
        why = f"the card of {server} holds a text that can't be stored, at {unstorable[:200]} of the skill"
        return NotOffered("E_TOOL_UNKNOWN", f"Not sent: {why}. Ask its owner to mend it.")
    schema = strict_json.dumps(PARTS_SCHEMA)
    descriptor = strict_json.dumps({"name": found["id"], "inputSchema": PARTS_SCHEMA, "skill": found})
    return Negotiated(PROTOCOL, descriptor, word(card.get("version")), schema, None)


def unknown(cards: Sequence[dict[str, Json]], tool: str, server: str) -> NotOffered:
    """No such skill on any of these cards of one agent. The message names near ones."""
    ids = (member(one, "id") for card in cards for one in items(card.get("skills")))
    others = tuple(dict.fromkeys(one for one in ids if isinstance(one, str) and strict_json.is_storable(one)))
    near = ", ".join(get_close_matches(tool[:64], [one for one in others[:1000] if len(one) <= MAX_WORD_CHARS], n=3))
    hint = f" Near names: {near}." if near else ""
    return NotOffered("E_TOOL_UNKNOWN", f"Not sent: the card of {server} has no skill {tool}.{hint}", others)


def missing(server: str, asked: int) -> NotOffered:
    """There is no card at any of the places."""
    return _unsupported(server, f"no agent card was found ({asked} places, the nearest {WELL_KNOWN} first)")


def _is_ours(interface: dict[str, Json]) -> bool:
    return interface.get("protocolBinding") == BINDING and interface.get("protocolVersion") == VERSION


def _named(interface: dict[str, Json]) -> str:
    return f"{word(interface.get('protocolBinding')) or '?'} {word(interface.get('protocolVersion')) or '?'}"


def _unsupported(server: str, why: str) -> NotOffered:
    return NotOffered("E_CAPABILITY_UNSUPPORTED", f"Not sent: {server} does not speak {PROTOCOL}: {why}.")
