"""What a keyed call is refused with: JSON-RPC errors whose `data.code` says which."""

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, MISSING_REQUIRED_CLIENT_CAPABILITY

TASKS_EXTENSION = "io.modelcontextprotocol/tasks"


def key_invalid() -> MCPError:
    """The key is no UUID text. Running unkeyed instead would break a promise that the caller relies on."""
    return _refusal(INVALID_PARAMS, "E_KEY_INVALID", "the submission key must be a UUID, as 36 characters")


def key_reused() -> MCPError:
    """The key stands for another request: another tool, other arguments, or another answer to its questions."""
    return _refusal(
        INVALID_PARAMS,
        "E_KEY_REUSED_DIFFERENT_REQUEST",
        "this submission key was used with another request; nothing ran for this one",
    )


def key_unsure() -> MCPError:
    """The key was taken and no outcome was kept: the server died meanwhile, or the answer was too large to keep."""
    return _refusal(
        INTERNAL_ERROR,
        "E_KEY_UNSURE",
        "this call was begun and its outcome was not kept; it isn't run again, a person has to look",
    )


def store_down() -> MCPError:
    """The keys can't be read or written, so nothing runs. What the store said goes to the server's log only."""
    return _refusal(
        INTERNAL_ERROR, "E_KEY_STORE", "the store of submission keys does not answer; nothing ran for this request"
    )


def tasks_undeclared() -> MCPError:
    """The first call became a task, and this request does not declare that its client understands one (SEP-2663)."""
    return MCPError(
        MISSING_REQUIRED_CLIENT_CAPABILITY,
        f"the first call with this submission key became a task; declare {TASKS_EXTENSION}",
        {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}},
    )


def _refusal(code: int, word: str, message: str) -> MCPError:
    return MCPError(code, f"{word}: {message}", {"code": word})
