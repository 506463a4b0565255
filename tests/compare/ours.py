"""Counterfoil as one of the programs: a client, and the loop of a worker in this process.

Targets as an operator would declare them for these servers; limits are the defaults, but for the timeout and the
patience that every client is given where a fault says so. Started again it hands the same calls in: they are known.
"""

import json
import sys
import threading
import time
from contextlib import suppress
from typing import Any

from counterfoil import __version__
from counterfoil.adapters.registry import adapter
from counterfoil.ledger.client import Client
from counterfoil.ledger.errors import CounterfoilError
from counterfoil.workers.bucket import LocalBucket
from counterfoil.workers.drive import Drive
from counterfoil.workers.jobs import Pace
from counterfoil.workers.target_entries import TargetEntry
from counterfoil.workers.targets import Target, Targets

DECLARED: dict[str, dict[str, Any]] = {
    "aip-151": {
        "protocol": "aip-151",
        "routes": {"submit": "POST /v1/reports:generate"},
        "key": {"body": "requestId"},
        "lookup": {"replay": True},
    },
    "http-202": {
        "protocol": "http-202",
        "preset": "azure",
        "routes": {
            "submit": "POST /reports",
            "status": "GET /operations/{id}",
            "cancel": "POST /operations/{id}:cancel",
            "lookup": "GET /operations/{key}",
        },
        "lookup": {"absence": "unique"},
    },
    "a2a-1.0": {"protocol": "a2a-1.0", "lookup": {"tool": "ListTasks"}},
}
CASE_S = 8.0
"""A case that is open for so long asks a person; until then evidence may close it."""
ARGUMENTS = {"a2a-1.0": {"text": "2026-10"}}


def main() -> None:
    told: dict[str, Any] = json.loads(sys.argv[1])
    jobs, protocol = told["jobs"], told["protocol"]
    targets = Targets({job["fault"]: _target(job, protocol) for job in jobs})
    bucket = LocalBucket(targets.limits, time.monotonic)
    drive = Drive(told["database"], targets, bucket, pace=Pace(tick_s=0.2, self_tick_s=0.2), ended=lambda _: None)
    drive.start()
    client = Client(told["database"])
    _tell({"version": __version__})
    threads = [threading.Thread(target=_live, args=(client, job, protocol, told["patience_s"])) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    drive.stop(1.0)


def _target(job: dict[str, Any], protocol: str) -> Target:
    path = "/agent" if protocol == "a2a-1.0" else ""
    changes: dict[str, Any] = {} if job["timeout_s"] is None else {"send_by_s": 1.0, "answer_by_s": job["timeout_s"]}
    if job["patience_s"] is not None:
        changes["wait_budget_s"] = job["patience_s"]
    entry = TargetEntry.model_validate({"url": job["url"] + path} | DECLARED[protocol] | changes)
    return Target(job["fault"], adapter(protocol).profile, entry)


def _live(client: Client, job: dict[str, Any], protocol: str, patience_s: float) -> None:
    """One call to its end: its receipt, or a question to a person that stays open."""
    fault = job["fault"]
    client.submit(fault, "generate", ARGUMENTS.get(protocol, {"month": "2026-10"}), call_node_id=fault)
    until_s = time.monotonic() + patience_s
    asked_to_cancel, case_s = not job["cancels"], None
    while time.monotonic() < until_s and (case_s is None or time.monotonic() < case_s + CASE_S):
        operation, receipt = client.get(fault), client.receipt(fault)
        if not asked_to_cancel and operation.state == "WORKING":
            with suppress(CounterfoilError):
                client.cancel(fault)
            asked_to_cancel = True
        # After a won cancel somebody still looks (the audit): what it finds is told as well.
        if receipt is not None and receipt.outcome != "cancelled":
            break
        has_case = any(case.closed_at is None for case in operation.cases)
        case_s = (case_s or time.monotonic()) if has_case else None
        time.sleep(0.1)  # the loop works on threads of its own
    _tell({"fault": fault} | _said(client, fault))


def _tell(said: dict[str, Any]) -> None:
    """One line in one write: `print` makes two, and threads would come between them."""
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


def _said(client: Client, node: str) -> dict[str, Any]:
    receipt, operation = client.receipt(node), client.get(node)
    cases = [case.code for case in operation.cases if case.closed_at is None]
    if receipt is None:
        return {"end": "asks", "why": cases[0]} if cases else {"end": "waits", "why": operation.state}
    if receipt.outcome == "succeeded":
        return {"end": "returned", "value": receipt.result}
    return {"end": receipt.outcome, "why": receipt.error_code, "case": cases[0] if cases else None}


if __name__ == "__main__":
    main()
