"""A transcript's `tool` and `policy` as a target and its policy, and what of a transcript this release can play."""

from collections.abc import Mapping
from typing import Any

from ..adapters.mcp_lookup import TOOL as LOOKUP_TOOL
from ..workers.targets import Target, Targets
from .adhoc import target_of
from .conform_dialect import Dialect
from .conform_http import AIP_KEY, HTTP_KEY, STATUSES, HttpDialect
from .conform_mcp import McpDialect
from .conform_transcript import Transcript

URL = "http://127.0.0.1:1"
"""Never connected to: the wire ends at the transcript."""

READ_DEADLINE_S = 120.0
"""The longest that a targets file allows: an answer's delay is the transcript's own."""

_STATELESS = {"mcp-2025-11-25": False, "mcp-2026-07-28": True}
_KEYS = {"http-202": HTTP_KEY, "aip-151": AIP_KEY}
"""How the submission key travels. It always does; `keyLookup: none` only means that nobody may ask by it."""


def not_built(transcript: Transcript) -> str | None:
    """What a transcript needs and this release does not have; None: it can be played."""
    if transcript.protocol not in _STATELESS | _KEYS:
        return f"protocol {transcript.protocol}"
    return None


def dialect_of(transcript: Transcript) -> Dialect:
    if transcript.protocol in _KEYS:
        return HttpDialect(transcript.tool, _KEYS[transcript.protocol])
    return McpDialect(transcript.tool, stateless=_STATELESS[transcript.protocol])


def targets_of(transcript: Transcript, name: str) -> Targets:
    """The one target of a case. Each case has its own: transcripts name the same task ids again and again, and an open
    operation's task is nobody else's."""
    return Targets({name: _target(transcript, name)})


def _target(transcript: Transcript, name: str) -> Target:
    tool, policy = transcript.tool, transcript.policy
    entry: dict[str, object] = {
        "url": URL,
        "protocol": _protocol(transcript),
        "deadline_s": READ_DEADLINE_S,
        "qps": float(policy["maxQps"]),
        "burst": 1,
        "wait_budget_s": policy["totalWaitMs"] / 1000,
        "on_budget": policy["onBudget"],
        "poll": {
            "min_s": policy["pollMinMs"] / 1000,
            "max_s": policy["pollMaxMs"] / 1000,
            "default_s": policy["defaultPollMs"] / 1000,
        },
        "not_found_asks": policy["notFoundChecks"],
        "cancel_confirm_s": policy["cancelConfirmMs"] / 1000,
        "max_result_bytes": policy["maxResultBytes"],
        "effects": tool["sideEffects"],
        "effect_case": "on_evidence",
        "can_cancel": tool.get("canCancel", True),
        "empty_result": tool.get("emptyResultAllowed", False),
        "input_watch_s": 0.0,
        "audit_s": 0.0,
    }
    if "inputDeadlineMs" in policy:
        entry["input_deadline_s"] = policy["inputDeadlineMs"] / 1000
    if tool.get("syncBoundMs") is not None:
        entry["sync_bound_s"] = tool["syncBoundMs"] / 1000
    return target_of(name, entry | (_declared(transcript) if transcript.protocol in _KEYS else _lookup(tool)))


def _protocol(transcript: Transcript) -> str:
    """What an operator pins: a tool that takes no task, with a published bound, is called without one (SPEC section
    1)."""
    tool = transcript.tool
    takes_tasks = tool.get("taskSupport", "absent") in ("required", "optional")
    if _STATELESS.get(transcript.protocol) is False and not takes_tasks and tool.get("syncBoundMs") is not None:
        return "mcp-sync"
    return transcript.protocol


def _declared(transcript: Transcript) -> dict[str, object]:
    """The API of a tool. A look-up route counts only where the transcript says that there is a look-up."""
    tool, protocol = transcript.tool, transcript.protocol
    asks = tool["keyLookup"] == "query"
    routes = {name: route for name, route in tool["routes"].items() if name != "lookup" or asks}
    entry: dict[str, object] = {"routes": routes, "key": dict(_KEYS[protocol])}
    if protocol == "http-202":
        entry["statuses"] = STATUSES
    return entry | ({"lookup": {"absence": "unique"}} if asks else _lookup(tool))


def _lookup(tool: Mapping[str, Any]) -> dict[str, object]:
    """How a lost submit may be found by its key."""
    match tool["keyLookup"]:
        case "query":
            return {"lookup": {"tool": LOOKUP_TOOL, "absence": "unique"}}
        case "replay":
            return {"lookup": {"replay": True}}
        case _:
            return {}
