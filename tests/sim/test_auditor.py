"""Each check of the simulator's auditor can fail."""

from dataclasses import replace
from typing import Any

import pytest

from .auditor import CHECKS, audit
from .doctored import DOCTORS
from .facts import Facts
from .lawful import RECORD, lawful


def test_a_lawful_run_is_not_accused() -> None:
    assert audit(Facts(lawful()), RECORD) == []


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_each_check_sees_what_it_is_for(check: Any) -> None:
    tables = lawful()
    changes = DOCTORS[check.__name__](tables) or {}
    assert audit(Facts(tables), replace(RECORD, **changes), [check])


def test_nothing_is_made_wrong_for_a_check_that_is_gone() -> None:
    assert DOCTORS.keys() == {check.__name__ for check in CHECKS}
