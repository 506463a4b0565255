"""A probe as people and scripts see it: words for each tool, and the lines of a targets file to pin."""

import shutil
import textwrap
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from .output import clean
from .probe import Attempt, Probe, Tool
from .targets_file import snippet
from .trouble import DECLARE
from .words import LABELS, tool_words

_WIDTH = 100
_NAMES_SHOWN = 12

_Group: TypeAlias = tuple[str, str, tuple[tuple[str, str], ...]]
"""What tools have in common: the protocol, why they can't be called, their words."""

EXAMPLE = {
    "protocol": "http-202",
    "preset": "plain",
    "tools": {
        "generate_report": {
            "routes": {
                "submit": "POST /reports",
                "status": "GET /reports/{id}",
                "cancel": "DELETE /reports/{id}",
                "lookup": "GET /reports?key={key}",
            },
            "key": {"header": "Idempotency-Key"},
            "lookup": {"absence": "unique"},
        }
    },
}
"""What to write for an HTTP API, where nothing was recognised: to be changed into what the API says of itself."""


def as_json(url: str, probe: Probe, entry: Mapping[str, object] | None) -> dict[str, object]:
    """One object, `check.v1`. `entry`: the proposed target as the targets file would hold it."""
    trouble = probe.trouble
    return {
        "format": "check.v1",
        "url": url,
        "ok": is_good(probe),
        "error": trouble and {"code": trouble.code, "message": trouble.message, "next_step": trouble.next_step},
        "protocols": [
            {
                "protocol": attempt.target.protocol,
                "spoken": attempt.code is None,
                "code": attempt.code,
                "why": attempt.why,
                "tools": len(attempt.tools),
                "callable": len(attempt.offered),
                "left_out": attempt.left_out,
                "lists": attempt.lists,
                "heard": attempt.heard and attempt.heard.said,
            }
            for attempt in probe.attempts
        ],
        "proposed": entry and entry["protocol"],
        "target": entry,
        "tools": [_tool_json(tool, attempt) for tool, attempt in judged(probe)],
    }


def is_good(probe: Probe) -> bool:
    """Whether a tool can be called."""
    return probe.proposed is not None and bool(probe.proposed.offered)


def _tool_json(tool: Tool, attempt: Attempt) -> dict[str, object]:
    words = tool_words(tool, attempt.target, keyed=_keyed(attempt)) if tool.offered else None
    protocol = attempt.target.protocol if tool.offered else None
    return {"name": tool.name, "protocol": protocol, "code": tool.code, "why": tool.why, "words": words}


def _keyed(attempt: Attempt) -> bool:
    return any(tool.name == attempt.profile.lookup_tool and tool.offered for tool in attempt.tools)


def judged(probe: Probe) -> list[tuple[Tool, Attempt]]:
    """Each tool once: under the proposed protocol, else under the first that can call it, else under the first."""
    spoken = [attempt for attempt in probe.attempts if attempt.tools]
    if probe.proposed is not None:
        spoken.sort(key=lambda attempt: attempt is not probe.proposed)
    found: dict[str, tuple[Tool, Attempt]] = {}
    for attempt in spoken:
        for tool in attempt.tools:
            known = found.get(tool.name)
            if known is None or (tool.offered and not known[0].offered):
                found[tool.name] = (tool, attempt)
    return list(found.values())


def show_server(url: str, probe: Probe, entry: Mapping[str, object] | None, name: str) -> None:
    """What is known of a URL; then what to pin, or how to declare what nobody can be asked for."""
    show(url, probe, entry)
    if entry is not None:
        print(f"\nIn targets.yaml:\n\n{snippet(name, entry)}", end="")
        if probe.proposed is not None and probe.proposed.target.objection("") is not None:
            print("    # sync_bound_s: the longest that a call takes, its owner knows; calls are refused without it")
    elif any(attempt.profile.declares for attempt in probe.attempts) or (
        probe.trouble is not None and probe.trouble.code == "E_NOT_MCP"
    ):
        print()
        _print_wrapped(f"{DECLARE} Such an entry could be:", "", "")
        print(f"\n{snippet(name, {'url': url, **EXAMPLE})}", end="")


def show(url: str, probe: Probe, entry: Mapping[str, object] | None = None) -> None:
    """Protocols, then the tools, those that are told alike together."""
    print(clean(url))
    width = max(16, *(len(attempt.target.protocol) + 2 for attempt in probe.attempts))
    for attempt in probe.attempts:
        proposed = ", proposed" if entry and attempt.target.protocol == entry["protocol"] else ""
        _print_fact(attempt.target.protocol, f"{_told(attempt)}{proposed}", width)
    for (protocol, why, words), names in _grouped(probe).items():
        other = (
            f" (with a target of `protocol: {protocol}`)" if entry and protocol not in ("", entry["protocol"]) else ""
        )
        print()
        _print_wrapped(f"{_listed(names)}{other}", "", "")
        if why:
            _print_fact("not callable", why, 16)
        for label, sentence in words:
            _print_fact(LABELS[label], sentence, 16)


def _told(attempt: Attempt) -> str:
    if attempt.code is not None:
        return f"no: {attempt.why or attempt.code}"
    if attempt.tells_none:
        return "yes, but it doesn't say which tools it has: name one (--tool NAME, or under `tools:` of the target)"
    if not attempt.tools:
        return "yes, but it offers no tool"
    whys = {tool.why for tool in attempt.tools}
    if not attempt.offered and len(whys) == 1:
        return f"no: {whys.pop()}"
    more = f" ({attempt.left_out} more were not looked at: --tool NAME)" if attempt.left_out else ""
    spoken = "declared" if attempt.profile.declares else "yes"
    heard = "" if attempt.heard is None else f". {attempt.heard.said}"
    return f"{spoken}, {len(attempt.offered)} of {len(attempt.tools)} tools{more}{heard}"


def _grouped(probe: Probe) -> dict[_Group, list[str]]:
    groups: dict[_Group, list[str]] = {}
    for tool, attempt in judged(probe):
        if tool.offered:
            words = tool_words(tool, attempt.target, keyed=_keyed(attempt))
            key: _Group = (attempt.target.protocol, "", tuple(words.items()))
        else:
            key = ("", f"{tool.code}: {tool.why}{_nowhere_else(tool, probe)}", ())
        groups.setdefault(key, []).append(tool.name)
    return groups


def _nowhere_else(tool: Tool, probe: Probe) -> str:
    """A server may list a tool for some clients only: a hint at another protocol would lead nowhere."""
    without = [
        attempt.target.protocol
        for attempt in probe.attempts
        if attempt.tools and not attempt.left_out and tool.name not in {other.name for other in attempt.tools}
    ]
    return f" Under {' and '.join(without)} the server doesn't list it." if without else ""


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return ", ".join(clean(name[:128]) for name in names[:_NAMES_SHOWN]) + more


def _print_fact(label: str, text: str, width: int) -> None:
    _print_wrapped(clean(text), f"  {label:<{width}}", " " * (width + 2))


def _print_wrapped(text: str, first: str, rest: str) -> None:
    width = min(_WIDTH, shutil.get_terminal_size((_WIDTH, 24)).columns)
    print(textwrap.fill(text, max(width, 40), initial_indent=first, subsequent_indent=rest, break_on_hyphens=False))
