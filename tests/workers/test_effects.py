"""What is kept of an answer to an effect: enough to be read again as it was read first."""

import json
import uuid

import pytest

from counterfoil.adapters.contract import KEPT_HEADERS, MAX_HEADER_CHARS, Answered
from counterfoil.adapters.http202 import Http202
from counterfoil.adapters.outcomes import TaskStarted, Unclear
from counterfoil.ledger.intents import IntentRequest
from counterfoil.ledger.policy import Policy
from counterfoil.ledger.states import Lane
from counterfoil.tests.adapters.kit_http import CALL, jobs
from counterfoil.workers.effects import evidence

HANDLES = ("location", "operation-location", "azure-asyncoperation")
ENDPOINT = jobs({"routes": {"submit": "POST /jobs"}}, preset="azure")
ADAPTER = Http202()
POLICY = Policy(protocol="http-202")


def kept(reply: Answered) -> Answered:
    """The answer as another worker gets it from the ledger."""
    intent = IntentRequest(
        uuid.uuid4(), "submit", Lane.SUBMIT, uuid.uuid4(), uuid.uuid4(), 1, 0, POLICY, POLICY.digest(), "http-202"
    )
    answer = evidence(intent, reply)
    return Answered(answer.status, json.loads(answer.headers), answer.body)


@pytest.mark.parametrize("header", HANDLES)
def test_a_handle_that_stands_in_a_header_alone_is_kept_with_the_answer(header: str) -> None:
    """An OGC server answers 201, Location and `null`; without the header that is a result at once, and none."""
    reply = Answered(202, {header: "/jobs/j-1", "retry-after": "3", "set-cookie": "session=secret"}, b"")
    read = ADAPTER.read_submit(ENDPOINT, CALL, kept(reply))
    assert isinstance(read, TaskStarted)
    assert read == ADAPTER.read_submit(ENDPOINT, CALL, reply)
    assert kept(reply).headers.keys() <= set(KEPT_HEADERS)


def test_a_place_too_long_to_keep_is_left_out_and_never_cut() -> None:
    """A URL that was cut would be another one."""
    reply = Answered(202, {"location": "/" + "x" * MAX_HEADER_CHARS, "retry-after": "3"}, b"")
    assert kept(reply).headers == {"retry-after": "3"}
    assert isinstance(ADAPTER.read_submit(ENDPOINT, CALL, kept(reply)), Unclear)
