"""Roll-back with 200 operations in flight, while workers of the old release live on; by the server's log."""

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from counterfoil.ledger import switches
from counterfoil.ledger.client import Call
from counterfoil.workers.desk import Desk
from counterfoil.workers.effects import OUT_MAX
from counterfoil.workers.targets import load_targets

from .conftest import Fleet, Server, Worker
from .epoch_watch import Watch, watching

SEND_BY_S = 2.0
LEASE_S = 5.0
SLACK_S = 0.7
"""From the moment that the bump notes to its commit, and from a first byte to the line in the server's log, on two busy
cores."""

WORKING, ASKING, CANCELLED, SLOW = 80, 40, 40, 40
FLYING = {"WORKING": WORKING, "INPUT_REQUIRED": ASKING, "CANCEL_REQUESTED": CANCELLED, "SUBMITTING": SLOW}
ALL = WORKING + ASKING + CANCELLED + SLOW
EFFECTS = ("tools/call", "tasks/cancel", "tasks/update")


def prepare(fleet: Fleet, server: Server) -> None:
    fleet.aim(
        f"tools: {{url: '{server.url}', protocol: mcp-2026-07-28, qps: 2000, burst: 400, poll: {{min_s: 0.2}},"
        f" send_by_s: {SEND_BY_S}, credentials: 'env:WHO'}}"
    )
    fleet.environ["COUNTERFOIL_POLL_LEASE_S"] = str(LEASE_S)
    fleet.announce()


def hand_in(fleet: Fleet, kind: str, count: int, **arguments: object) -> list[str]:
    nodes = [f"{kind}-{number:03}" for number in range(count)]
    calls = [Call("tools", "work", {"node": node, **arguments}, node) for node in nodes]
    with fleet.client._database.begin() as connection:
        fleet.client.submit_in(connection, calls)
    return nodes


def bring_in_flight(fleet: Fleet, server: Server) -> None:
    """Working, waiting for an answer, cancelled but not confirmed."""
    hand_in(fleet, "working", WORKING, secs=0, held=True)
    hand_in(fleet, "asking", ASKING, secs=0, asks=1)
    cancelled = hand_in(fleet, "cancelled", CANCELLED, secs=0, held=True)
    ready = {"WORKING": WORKING + CANCELLED, "INPUT_REQUIRED": ASKING}
    fleet.until("all have tasks, and what asks is asked for", lambda: fleet.states() == ready, 60)
    for node in cancelled:
        fleet.client.cancel(node)
    fleet.until("every cancel is sent", lambda: len(server.said("tasks/cancel")) == CANCELLED, 30)


def submit_slowly(fleet: Fleet, server: Server, watch: Watch, *, out: int) -> None:
    """Calls whose answers the server holds back; at least `out` of them have an intent, and some have none."""
    hand_in(fleet, "slow", SLOW, secs=0, answer_held=True)
    intents = "SELECT count(*) FROM counterfoil.intent WHERE closed_at IS NULL AND effect = 'submit'"
    fleet.until("intents are out", lambda: out <= watch.one(intents) < SLOW, 30)
    assert fleet.states() == FLYING


def settle(fleet: Fleet) -> None:
    """What people do after a roll-back: switch new operations on again, answer what was asked."""
    fleet.say("create", "on", "--reason", "the old release is back")
    desk = Desk(fleet.database_url, load_targets(Path(fleet.environ["COUNTERFOIL_TARGETS_FILE"])))
    try:
        for asked in desk.inputs():
            desk.answer(asked.operation_id, asked.number, "accept", {"month": "May"}, actor="ann")
    finally:
        desk.close()
    over = {"ACCEPTED": ALL - CANCELLED, "CANCELLED_ACCEPTED": CANCELLED}
    fleet.until("all have receipts", lambda: fleet.states() == over, 60)


def judge(fleet: Fleet, server: Server, watch: Watch, old: tuple[str, ...]) -> None:
    """One operation each at the server, the ends that were due, and nothing of the old epoch but what servers said."""
    created = server.created()
    assert (len(created), server.second_submits()) == (ALL, 0)
    receipts = fleet.receipts([operation.call_node_id for operation in fleet.client.operations(limit=1000)])
    outcomes = Counter((receipt.call_node_id.partition("-")[0], receipt.outcome) for receipt in receipts)
    assert outcomes == {
        ("working", "succeeded"): WORKING,
        ("asking", "succeeded"): ASKING,
        ("cancelled", "cancelled"): CANCELLED,
        ("slow", "succeeded"): SLOW,
    }
    assert {receipt.execution_epoch for receipt in receipts} == {2}
    assert watch.late_writes() == {}
    assert min(watch.written(1)[table] for table in ("intent", "journal", "operation", "wake")) > ALL / 2
    assert (
        watch.one("SELECT count(*) FROM counterfoil.evidence WHERE epoch = 1 AND received_at > %s", bumped(watch)) > 0
    )
    bytes_after = after(server, watch, old)
    assert all(at_s <= SEND_BY_S + SLACK_S for at_s, method in bytes_after if method in EFFECTS), bytes_after
    assert all(at_s <= LEASE_S + SLACK_S for at_s, _ in bytes_after), bytes_after
    assert fleet.say("orphans").strip() == "0"


def bumped(watch: Watch) -> object:
    return watch.one("SELECT bumped_at FROM counterfoil.execution_epoch WHERE fleet = 'main'")


def after(server: Server, watch: Watch, old: tuple[str, ...]) -> list[tuple[float, str]]:
    """What the old workers sent after the bump: seconds since, and the method."""
    bump_s = watch.one("SELECT extract(epoch FROM bumped_at)::float8 FROM counterfoil.execution_epoch")
    return [(line["at"] - bump_s, line["on"]) for line in server.lines() if line["who"] in old and line["at"] > bump_s]


def told(fleet: Fleet, server: Server, watch: Watch, old: tuple[str, ...], took_s: float) -> str:
    sent = after(server, watch, old)
    effects = [at_s for at_s, method in sent if method in EFFECTS]
    evidence = "SELECT count(*) FROM counterfoil.evidence WHERE epoch = 1 AND received_at > %s"
    return (
        f"{ALL} operations in flight at the bump, all settled by the new epoch {took_s:.1f} s after it; second"
        f" operations {server.second_submits()}; late writes of the old epoch {watch.late_writes() or 0}, evidence"
        f" {watch.one(evidence, bumped(watch))}; its bytes after the bump: {len(effects)} of effects, the last"
        f" {max(effects, default=0):.2f} s after, {len(sent) - len(effects)} of readings, the last"
        f" {max((at_s for at_s, _ in sent), default=0):.2f} s after; refused {watch.refused()}"
    )


def test_a_roll_back_hands_200_operations_over_while_an_old_worker_still_holds_answers(
    fleet: Fleet, server: Server
) -> None:
    """Two workers of the old release: one reads, one submits. The submitter has calls out when it is stopped; then
    comes the roll-back, and a worker of the new epoch starts while both live. It may send none of the calls that were
    handed in and not sent (new operations are off), and calls those of the stopped one unknown. The stopped one goes
    on, with the answers in its hands: they are evidence, and settle what was unknown. Both old ones end by themselves.
    """
    prepare(fleet, server)
    reader = fleet.start(solo=True, WHO="reader", COUNTERFOIL_LANES="poll,cancel,answer,fetch,lookup,timer,audit")
    submitter = fleet.start(solo=True, WHO="submitter", COUNTERFOIL_LANES="submit")
    with watching(fleet.database_url) as watch:
        bring_in_flight(fleet, server)
        submit_slowly(fleet, server, watch, out=OUT_MAX)
        fleet.until("their bytes have left", lambda: len(server.created()) == ALL - SLOW + OUT_MAX, 30)
        submitter.signal(signal.SIGSTOP)
        fleet.say("rollback", "--reason", "drill: the release loses answers")
        new = fleet.start(solo=True, WHO="new")
        assert reader.process.wait(30) == 75
        unknown = FLYING | {"SUBMITTING": SLOW - OUT_MAX, "SUBMISSION_UNKNOWN": OUT_MAX}
        fleet.until("what was out is unknown", lambda: fleet.states() == unknown, 30)
        assert "new" not in server.said("tools/call")
        server.release()
        submitter.signal(signal.SIGCONT)
        assert submitter.process.wait(30) == 75
        settle(fleet)
        took_s = seconds_since_bump(watch)
        judge(fleet, server, watch, ("reader", "submitter"))
        print(told(fleet, server, watch, ("reader", "submitter"), took_s))
        assert new.stop() == 0


def seconds_since_bump(watch: Watch) -> float:
    query = "SELECT extract(epoch FROM clock_timestamp() - bumped_at)::float8 FROM counterfoil.execution_epoch"
    return float(watch.one(query))


def test_nothing_of_a_bad_release_that_ignores_the_stop_counts_after_a_roll_back_but_evidence(
    fleet: Fleet, server: Server
) -> None:
    """What is in flight comes into the hands of a release that never looks at the epoch and never ends. At the bump it
    has leases, and intents whose bytes have not left: they may still leave, for one `send_by`. After that it claims,
    renews, intends, moves and accepts into the void for as long as it likes; what it heard from the server is kept, and
    settles what the new side called unknown."""
    prepare(fleet, server)
    good = fleet.start(solo=True, WHO="good")
    with watching(fleet.database_url) as watch:
        bring_in_flight(fleet, server)
        bad = start_bad(fleet)
        assert good.stop() == 0  # from here on whatever is of the old epoch is the bad release's
        submit_slowly(fleet, server, watch, out=12)
        switches.rollback(fleet.client._database, "main", "drill: a bad release")
        new = fleet.start(solo=True, WHO="new")
        fleet.until("it is refused everything", lambda: len(watch.refused()) == 3, 30)
        fleet.until("what it sent late is unknown", lambda: "SUBMISSION_UNKNOWN" in fleet.states(), 30)
        server.release()
        settle(fleet)
        took_s = seconds_since_bump(watch)
        bad.process.send_signal(signal.SIGTERM)
        bad.process.wait(30)
        refused = json.loads(bad.log.read_text().splitlines()[-1])
        judge(fleet, server, watch, ("bad",))
        print(told(fleet, server, watch, ("bad",), took_s))
        assert any(at_s > 0 for at_s, method in after(server, watch, ("bad",)) if method == "tools/call")
        assert watch.refused() == refused
        assert json.loads(fleet.say("epoch", "show", "-o", "json"))["refused"] == sum(refused.values())
        assert new.stop() == 0


def start_bad(fleet: Fleet) -> Worker:
    log = fleet.folder / "bad.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-P", Path(__file__).with_name("bad_release.py"), "1"],
            env=fleet.environ | {"WHO": "bad"},
            cwd=fleet.folder,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    fleet.workers.append(Worker(process, log))
    return fleet.workers[-1]
