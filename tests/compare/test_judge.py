"""What a run is called, from the server's log and from what the client said of it."""

import json
import urllib.request
from http.client import HTTPException
from typing import Any

import pytest

from .dialects import Aip151
from .faults import BY_NAME
from .judge import Verdict, judge
from .service import Operation, Run, Service


def run_of(fault: str, *rows: int, met: int = 1) -> Run:
    run = Run("x", Aip151(), BY_NAME[fault], dedupes=True, met=met)
    run.operations += [Operation(f"op-{number}", number, 0.0) for number in rows]
    return run


@pytest.mark.parametrize(
    ("run", "end", "verdict"),
    [
        (run_of("none", 1001), {"end": "returned", "value": {"rows": 1001}}, Verdict.SETTLED),
        (run_of("submit-lost", 1001, 1002), {"end": "returned", "value": {"rows": 1002}}, Verdict.SECOND),
        (run_of("submit-lost", 1001), {"end": "raised", "why": "ConnectionError"}, Verdict.LOST),
        (run_of("submit-429"), {"end": "raised", "why": "TooManyRequests"}, Verdict.TOLD),
        (run_of("submit-error-200", 1001), {"end": "returned", "value": {"error": "x"}}, Verdict.WRONG),
        (run_of("result-missing", 1001), {"end": "returned", "value": None}, Verdict.WRONG),
        (run_of("poll-404", 1001), None, Verdict.HANGS),
        (run_of("poll-404", 1001), {"end": "asks", "why": "E_X"}, Verdict.ASKS),
        (run_of("poll-404", 1001, met=0), {"end": "returned", "value": {"rows": 1001}}, Verdict.NOT_MET),
        (run_of("cancel-then-success", 1001), {"end": "not offered"}, Verdict.NOT_MET),
        (run_of("cancel-then-success", 1001), {"end": "raised", "why": "Failed"}, Verdict.LOST),
        (run_of("cancel-then-success", 1001), {"end": "cancelled", "why": None, "case": "E_X"}, Verdict.ASKS),
        (run_of("cancel-then-success", 1001), {"end": "cancelled", "why": None, "case": None}, Verdict.LOST),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_end_has_its_word(run: Run, end: dict[str, Any] | None, verdict: Verdict) -> None:
    assert judge(run, end).verdict is verdict


def test_a_fault_happens_once_and_the_log_counts_what_arrived() -> None:
    """The answer is lost, the work began: the same request id finds it, and makes no other."""
    run = Run("x", Aip151(), BY_NAME["submit-lost"], dedupes=True)

    def submit(request_id: str) -> Any:
        body = json.dumps({"requestId": request_id}).encode()
        with urllib.request.urlopen(urllib.request.Request(f"{service.url(run)}/v1/reports:generate", body)) as answer:
            return json.loads(answer.read())["name"]

    with Service([run]) as service:
        with pytest.raises((HTTPException, OSError)):
            submit("one")
        assert submit("one").endswith("/op-1")
        assert submit("two").endswith("/op-2")
    assert ([operation.id for operation in run.operations], run.sends) == (["op-1", "op-2"], 3)
