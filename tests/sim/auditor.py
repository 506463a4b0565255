"""The judge of a run: written from docs/spec.md alone, with no line of the product in it.

It reads the simulated server's log, the wire's log of what left and the tables. Each check is one sentence of the
specification; what it yields are violations.
"""

from collections.abc import Iterable
from inspect import isfunction

from . import audit_cancels, audit_lives, audit_questions, audit_receipts, audit_sends
from .case import Case, Check
from .facts import Facts
from .record import Record

CHECKS: tuple[Check, ...] = tuple(
    check
    for module in (audit_receipts, audit_sends, audit_questions, audit_cancels, audit_lives)
    for name, check in vars(module).items()
    if isfunction(check) and check.__module__ == module.__name__ and not name.startswith("_")
)
"""Every public function of these modules, in their order."""


def audit(facts: Facts, record: Record, checks: Iterable[Check] = CHECKS) -> list[str]:
    """Every violation, as a sentence."""
    case = Case(facts, record)
    return [f"{check.__name__}: {found}" for check in checks for found in check(case)]
