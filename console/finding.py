"""One thing that `counterfoil doctor` looked at."""

from dataclasses import dataclass
from enum import StrEnum

from ..ledger.errors import CounterfoilError


class Health(StrEnum):
    OK = "OK"
    WARN = "WARN"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at and what was found. `remedy` is empty where all is well."""

    name: str
    health: Health
    found: str
    remedy: str = ""


def failed(name: str, error: CounterfoilError) -> Finding:
    """An error as a finding, with what it says to do next."""
    remedy = error.next_step or f"`counterfoil explain {error.code}` says what to do."
    return Finding(name, Health.FAIL, f"{error.code}: {error.message}", remedy)
