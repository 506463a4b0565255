"""A probe as people and scripts see it: words for each tool, and the lines of a targets file to pin."""

import shutil
import textwrap
from collections.abc import Mapping, Sequence

from .output import clean
from .probe import Attempt, Probe, Tool
from .targets_file import snippet
from .words import KEYED, LABELS, tool_words

_WIDTH = 100
_NAMES_SHOWN = 12


def as_json(url: str, probe: Probe, entry: Mapping[str, object] | None) -> dict[str, object]:
    """One object, `check.v1`. `entry`: the proposed target as the targets file would hold it."""
    trouble = probe.trouble
    return {
        "format": "check.v1",
        "url": url,
        "ok": entry is not None,
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
            }
            for attempt in probe.attempts
        ],
        "proposed": entry and entry["protocol"],
        "target": entry,
        "tools": [_tool_json(tool, attempt) for tool, attempt in judged(probe)],
    }


def _tool_json(tool: Tool, attempt: Attempt) -> dict[str, object]:
    words = tool_words(tool, attempt.target, keyed=_keyed(attempt)) if tool.offered else None
    protocol = attempt.target.protocol if tool.offered else None
    return {"name": tool.name, "protocol": protocol, "code": tool.code, "why": tool.why, "words": words}


def _keyed(attempt: Attempt) -> bool:
    return any(tool.name == KEYED and tool.offered for tool in attempt.tools)


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


def show(url: str, probe: Probe, entry: Mapping[str, object] | None, name: str) -> None:
    """Protocols, then the tools, those that are told alike together, then what to pin."""
    print(clean(url))
    for attempt in probe.attempts:
        proposed = ", proposed" if entry and attempt.target.protocol == entry["protocol"] else ""
        _print_fact(attempt.target.protocol, f"{_told(attempt)}{proposed}", 16)
    for group, words in _grouped(probe).items():
        protocol, why = group[:2]
        other = (
            f" (with a target of `protocol: {protocol}`)" if entry and protocol not in ("", entry["protocol"]) else ""
        )
        print()
        _print_wrapped(f"{_listed(words)}{other}", "", "")
        if why:
            _print_fact("not callable", why, 16)
        for label, sentence in zip(LABELS.values(), group[2:], strict=False):
            _print_fact(label, sentence, 16)
    if entry is not None:
        print(f"\nIn targets.yaml:\n\n{snippet(name, entry)}", end="")
        if probe.proposed is not None and probe.proposed.target.objection("") is not None:
            print("    # sync_bound_s: the longest that a call takes, its owner knows; calls are refused without it")


def _told(attempt: Attempt) -> str:
    if attempt.code is not None:
        return f"no: {attempt.why or attempt.code}"
    if not attempt.tools:
        return "yes, but it offers no tool"
    whys = {tool.why for tool in attempt.tools}
    if not attempt.offered and len(whys) == 1:
        return f"no: {whys.pop()}"
    more = f" ({attempt.left_out} more were not looked at: --tool NAME)" if attempt.left_out else ""
    return f"yes, {len(attempt.offered)} of {len(attempt.tools)} tools{more}"


def _grouped(probe: Probe) -> dict[tuple[str, ...], list[str]]:
    """(protocol, why it can't be called, sentences…) -> names."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for tool, attempt in judged(probe):
        if tool.offered:
            key = (attempt.target.protocol, "", *tool_words(tool, attempt.target, keyed=_keyed(attempt)).values())
        else:
            key = ("", f"{tool.code}: {tool.why}{_nowhere_else(tool, probe)}")
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
