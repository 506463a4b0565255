"""The facts of a lawful run, for the auditor's own tests: a call that is sent, answered with a task and accepted."""

import copy
import hashlib
import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from . import ledgerdb
from .record import HeldFact, Record, SentFact, TaskFact

BODY = b'{"result": {"taskId": "task-1", "structuredContent": {"rows": 1}}}'
OTHER = BODY.replace(b"task-1", b"task-2")
READY = "9b1f5b6e-8d5f-5d7e-9d8b-111111111111"
RECEIPT = "9b1f5b6e-8d5f-5d7e-9d8b-222222222222"

Tables = dict[str, list[dict[str, Any]]]


def at(seconds: float) -> str:
    return (datetime.fromisoformat(ledgerdb.BASE) + timedelta(seconds=seconds)).isoformat()


def hexed(body: bytes) -> str:
    return f"\\x{body.hex()}"


SHARED = {
    "namespace": "space",
    "call_node_id": "run/1",
    "request_digest": "\\x01",
    "submission_key": "key",
    "target": "srv",
    "tool": "work",
    "tool_version": "1",
    "principal": "default",
    "protocol": "mcp-2026-07-28",
    "task_id": "task-1",
    "state": "ACCEPTED",
    "outcome": "succeeded",
    "terminal_status": "completed",
    "error_code": None,
    "effects_possible": True,
    "attempt": 1,
    "cancel_generation": 0,
    "unanswered_rounds": 0,
}
OPERATION = SHARED | {
    "id": "op",
    "policy_digest": "\\x02",
    "sent_attempt": 1,
    "settle_as": None,
    "cancel_acked": False,
    "audit_s": None,
    "leg": 1,
    "journal_seq": 5,
    "execution_epoch": 1,
}
POLICY = {
    "lookup": "none",
    "effects": True,
    "effect_case": "on_evidence",
    "on_budget": "reconcile",
    "on_unknown": "reconcile",
    "on_unknown_after_s": 900.0,
    "four_eyes": False,
    "require_answer": False,
}
EDGES = (
    (None, "SUBMITTING", None, "opened"),
    ("SUBMITTING", "WORKING", "submit", "moved"),
    ("WORKING", "TERMINAL_OBSERVED", "poll", "moved"),
    ("TERMINAL_OBSERVED", "FETCHING_RESULT", "poll", "moved"),
    ("FETCHING_RESULT", "ACCEPTED", "poll", "accepted"),
)
ROUND = {
    "operation_id": "op",
    "number": 1,
    "leg": 1,
    "key": "1-1",
    "reply": hexed(b'{"action": "accept", "content": {"go": true}}'),
    "replied_by": "ann",
    "replied_at": at(3.0),
    "opened_at": at(2.0),
    "closed_at": at(4.0),
    "how": "answered",
}
CASE = {"operation_id": "op", "kind": "UNKNOWN", "opened_at": at(1.0), "closed_at": None, "why": "", "code": ""}
INTENT = {
    "operation_id": "op",
    "send_token": "token",
    "effect": "submit",
    "attempt": 1,
    "epoch": 1,
    "opened_at": at(0.1),
    "closed_at": at(0.2),
    "how": "answered",
}
EVIDENCE = {
    "operation_id": "op",
    "kind": "submit",
    "status": 200,
    "send_token": "token",
    "body": hexed(BODY),
    "received_at": at(0.2),
    "consumed_at": at(0.2),
}
TASK = TaskFact("task-1", 1, "key", '{"n": 1}', "succeeded", False, "succeeded", 1.6, ())
SENT = SentFact(0.1, "w1", 1, "submit", "token", "key", None, "tools/call 1", '{"n": 1}', "null", False)
CANCEL = replace(SENT, at_s=0.5, effect="cancel", token="cancel", key=None, task="task-1", name="tasks/cancel 1")


def digest(body: bytes) -> str:
    return f"\\x{hashlib.sha256(body).hexdigest()}"


def lawful() -> Tables:
    """A call that was sent, answered with a task, read and accepted."""
    result = {"result_digest": digest(BODY)}
    receipt = SHARED | result | {"id": RECEIPT, "operation_id": "op", "digest": "\\x03", "accepted_at": at(1.9)}
    register = {"namespace": "space", "call_node_id": "run/1", "receipt_id": RECEIPT, "receipt_digest": "\\x03"}
    journal = [
        {"operation_id": "op", "seq": seq, "at": at(seq * 0.4), "epoch": 1, "actor": "worker", "source": source}
        | {"target": target, "lane": lane, "event": event}
        for seq, (source, target, lane, event) in enumerate(EDGES, 1)
    ]
    return copy.deepcopy(
        {
            "operation": [OPERATION | result],
            "journal": journal,
            "intent": [INTENT],
            "evidence": [EVIDENCE],
            "terminal_receipt": [receipt | {"result_pointer": "/result"}],
            "ready_outbox": [{"id": READY, "call_node_id": "run/1", "receipt_id": RECEIPT}],
            "call_node": [register | {"outcome": "succeeded"}],
            "operation_result": [{"operation_id": "op", "body": hexed(BODY), "digest": digest(BODY)}],
            "tool_policy": [{"digest": "\\x02", "body": hexed(json.dumps(POLICY).encode())}],
            "wake": [],
            "input_round": [],
            "reconciliation_case": [],
        }
    )


RECORD = Record(
    server="blind",
    base=datetime.fromisoformat(ledgerdb.BASE),
    end_s=200.0,
    finished=True,
    calm=True,
    stopped=False,
    lost_commits=False,
    lookups=(),
    stopped_between=(),
    qps=2.0,
    burst=2.0,
    tasks=(TASK,),
    said=((0.2, 1, BODY),),
    sent=(SENT,),
    held=(HeldFact("w1", "token", BODY, 0.2, survived=True),),
    told=(),
    faults=frozenset(),
    requests=((0.1, 1, "tools/call 1"),),
    departures=(0.1,),
    bumps=(),
    stale_leases=(),
    leases=(),
    deadlocks=(),
    not_found=(),
    refused_credentials=0,
    read=(),
    verdicts=(),
    replied=(),
    acceptances=(("op", "accepted"),),
    failed_over_s=float("-inf"),
    replies=(),
    told_producers=((1, "op"),),
    acted_upon=(("run/1", RECEIPT),),
)
