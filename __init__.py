"""Counterfoil: a long-running tool call, settled once.

>>> from counterfoil import Client
>>> receipt = Client().call("reports", "generate_report", {"month": "2026-10"}, call_node_id="run-42/step-3")
>>> print(receipt.outcome, receipt.result)

Opening this door loads nothing: names are fetched when first asked for, so a producer's service never imports
Celery, and the ledger can be used without the fleet.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .ledger.client import Call, Client
    from .ledger.errors import (
        CallNodeConflict,
        CounterfoilError,
        CreateStopped,
        InputRefused,
        LedgerUnavailable,
        NoSuchOperation,
        StillRunning,
    )
    from .ledger.notices import Notice
    from .ledger.records import Case, Ready, Receipt, ToolOperation

__version__ = "0.1.0"

__all__ = [
    "Call",
    "CallNodeConflict",
    "Case",
    "Client",
    "CounterfoilError",
    "CreateStopped",
    "InputRefused",
    "LedgerUnavailable",
    "NoSuchOperation",
    "Notice",
    "Ready",
    "Receipt",
    "StillRunning",
    "ToolOperation",
    "__version__",
]

_HOMES = {
    "ledger.client": ("Call", "Client"),
    "ledger.errors": (
        "CallNodeConflict",
        "CounterfoilError",
        "CreateStopped",
        "InputRefused",
        "LedgerUnavailable",
        "NoSuchOperation",
        "StillRunning",
    ),
    "ledger.notices": ("Notice",),
    "ledger.records": ("Case", "Ready", "Receipt", "ToolOperation"),
}


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f".{home}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
