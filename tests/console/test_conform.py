"""`counterfoil conform` as a whole: the cases of this repository, and what a run says."""

import json
import secrets
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet

from counterfoil.console.conform import Outcome, Verdict, play_all, play_one, run_conform
from counterfoil.console.conform_actors import ACTORS
from counterfoil.console.conform_ledger import START, ConformLedger, throw_away_ledger
from counterfoil.console.conform_transcript import ActorStep, ServerStep, Transcript, load
from counterfoil.console.devstack import DevStack
from counterfoil.console.exits import Exit
from counterfoil.ledger.errors import LedgerUnavailable
from counterfoil.workers.vault import Vault

CASES = Path(__file__).resolve().parents[1] / "cases"


Play = Callable[..., Outcome]


@pytest.fixture
def on_our_server(database_stack: DevStack, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run makes its database on the session's PostgreSQL: starting one takes 3 s."""
    monkeypatch.setenv("COUNTERFOIL_DATABASE_URL", database_stack.database_url)


@pytest.fixture(scope="module")
def ledger(database_stack: DevStack) -> Iterator[ConformLedger]:
    with throw_away_ledger({"COUNTERFOIL_DATABASE_URL": database_stack.database_url}) as made:
        yield made


@pytest.fixture
def play(ledger: ConformLedger) -> Play:
    """Play one case, in a fleet of its own."""
    vault = Vault([Fernet.generate_key().decode()])
    return lambda transcript: play_one(transcript, ledger, f"test-{secrets.token_hex(4)}", vault)


def case(name: str, **changes: Any) -> Transcript:
    return Transcript.of(json.loads((CASES / f"{name}.json").read_text()) | changes)


def changed(name: str, **changes: Any) -> dict[str, Any]:
    """The expectations of a case, some of them changed."""
    expected: dict[str, Any] = json.loads((CASES / f"{name}.json").read_text())["expected"]
    return expected | changes


def steps_of(name: str) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = json.loads((CASES / f"{name}.json").read_text())["steps"]
    return steps


def parts(steps: list[dict[str, Any]]) -> dict[str, Any]:
    """The server's part of a transcript, and the actors'."""
    return {
        "server": tuple(ServerStep.of(step) for step in steps if "do" not in step),
        "actors": tuple(ActorStep.of(step) for step in steps if "do" in step),
    }


@pytest.mark.usefixtures("on_our_server")
def test_every_case_that_can_be_played_passes() -> None:
    outcomes = list(play_all(load([CASES])))
    assert len(outcomes) == len(list(CASES.glob("C*.json")))
    assert [outcome.line() for outcome in outcomes if outcome.verdict is Verdict.FAIL] == []
    assert [outcome.line() for outcome in outcomes if outcome.verdict is Verdict.SKIP] == []


def test_what_is_not_built_is_skipped_by_name() -> None:
    (skipped,) = play_all([case("C01", protocol="smoke-signals")])
    assert skipped.line() == "SKIP C01 protocol smoke-signals is not built yet"


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("C13", "state", "WORKING"),
        ("C13", "effects", 2),
        ("C13", "counts", {"submit": [2, 2]}),
        ("C13", "result", {"rows": 4}),
        ("C13", "path", ["WORKING", "SUBMITTING"]),
        ("C32", "minGapMs", {"sub": 60_000}),
        ("C85", "reconciliation", None),
        ("C88", "error", None),
    ],
)
def test_a_case_with_one_wrong_expectation_fails_with_that_field_named(
    play: Play, name: str, field: str, value: object
) -> None:
    outcome = play(case(name, expected=changed(name, **{field: value})))
    assert outcome.verdict is Verdict.FAIL
    assert outcome.line().startswith(f"FAIL {name} ")
    assert all(found.startswith(field) for found in outcome.found)


@pytest.mark.usefixtures("on_our_server")
def test_a_request_that_no_step_expects_fails_the_case_and_no_other() -> None:
    silent, whole = play_all([case("C13", steps=[]), case("C03")])
    assert silent.found == ("unexpected request: tools/call",)
    assert whole.verdict is Verdict.PASS


# -- actors ------------------------------------------------------------------------------------------------------------


def with_actors(name: str, *actors: dict[str, Any], **expected: Any) -> Transcript:
    """A case in which more happens, and what changes by it."""
    return case(name, steps=[*steps_of(name), *actors], expected=changed(name, **expected))


def after(step: str, do: str, **facts: Any) -> dict[str, Any]:
    return {"do": do, "when": {"after": step}, **facts}


def test_there_is_an_actor_for_every_word_of_the_schema() -> None:
    schema = json.loads((CASES / "schema.json").read_text())
    assert set(ACTORS) == set(schema["$defs"]["actor"]["properties"]["do"]["enum"])


def test_a_worker_that_crashes_before_its_commit_left_nothing_but_evidence(play: Play) -> None:
    """The first worker hears of the task, stores what it heard, and is gone. Another finds it: nothing is sent
    again."""
    outcome = play(with_actors("C84", after("sub", "worker_crash", point="before_commit")))
    assert outcome.found == ()
    assert [entry.on for entry in outcome.log].count("tools/call") == 1


@pytest.mark.parametrize("point", ["after_send", "after_answer"])
def test_a_worker_that_crashes_with_an_answer_in_memory_leaves_the_submit_unknown(play: Play, point: str) -> None:
    lost = changed("C03", path=["SUBMITTING", "SUBMISSION_UNKNOWN"])
    crashed = with_actors("C84", after("sub", "worker_crash", point=point))
    outcome = play(replace(crashed, expected=lost))
    assert outcome.found == ()


def test_a_worker_that_crashes_while_it_waits_is_followed_when_its_lease_is_over(play: Play) -> None:
    crash = after("g1", "worker_crash", point="while_waiting")
    outcome = play(with_actors("C84", crash, minGapMs={"g1": 7900}))
    assert outcome.found == ()


def test_an_older_epoch_is_refused_and_the_new_one_goes_on(play: Play) -> None:
    bumped = (after("g1", "bump_epoch"), after("g1", "stale_commit"))
    outcome = play(with_actors("C84", *bumped, error="E_STALE_EPOCH"))
    assert outcome.found == ()


def test_a_stale_commit_without_a_bump_makes_no_sense(play: Play) -> None:
    outcome = play(with_actors("C84", after("g1", "stale_commit")))
    assert outcome.found == ("stale_commit: no worker is of an older epoch",)


def test_a_request_that_is_redelivered_is_made_once_by_somebody_else(play: Play) -> None:
    again = [after("g1", "redeliver", what="status"), after("g1", "redeliver", what="submit")]
    looks = [{**step, "times": 2} if step.get("id") == "g1" else step for step in steps_of("C84")]
    redelivered = with_actors("C84", counts={"submit": [1, 1], "status": [3, 3]})
    outcome = play(replace(redelivered, **parts([*looks, *again])))
    assert outcome.found == ()


def test_an_answer_waits_for_the_question_that_it_is_for(play: Play) -> None:
    """In 2025 the status says that a question waits, and only the next request brings it: whoever is to answer after
    the status has nothing to answer yet."""
    steps = [step | ({"when": {"after": "g1"}} if "do" in step else {}) for step in steps_of("C100")]
    outcome = play(case("C100", steps=steps))
    assert outcome.found == ()
    assert "reply:elicitation/create" in [entry.on for entry in outcome.log]


def test_an_expired_token_is_resolved_anew_and_the_same_is_asked(play: Play) -> None:
    expired = with_actors("C84", after("g1", "token_expires"), counts={"status": [3, 3]})
    outcome = play(expired)
    assert outcome.found == ()


def test_a_deadline_without_a_question_makes_no_sense(play: Play) -> None:
    outcome = play(with_actors("C84", after("g1", "input_deadline")))
    assert outcome.found == ("input_deadline: no question is open",)


def test_a_cancel_that_the_door_refuses_changes_nothing(play: Play) -> None:
    tool = json.loads((CASES / "C84.json").read_text())["tool"] | {"canCancel": False}
    refused = with_actors("C84", after("g1", "cancel"), counts={"cancel": [0, 0]})
    outcome = play(replace(refused, tool=tool))
    assert outcome.found == ()


# -- the clock ---------------------------------------------------------------------------------------------------------


def test_an_answer_that_takes_longer_than_its_deadline_is_no_answer(play: Play) -> None:
    steps = steps_of("C84")
    steps[0]["delay_ms"] = 61_000
    outcome = play(case("C84", steps=steps, expected=changed("C03")))
    assert outcome.found == ()


def test_an_answer_that_takes_its_time_finds_the_lease_renewed(play: Play) -> None:
    """A status takes 60 s, a lease 8 s: nobody else asks meanwhile."""
    steps = steps_of("C84")
    steps[1]["delay_ms"] = 60_000
    outcome = play(case("C84", steps=steps, expected=changed("C84", counts={"status": [2, 2]})))
    assert outcome.found == ()
    assert outcome.log[-1].at_us > 60_000_000


# -- declared APIs -----------------------------------------------------------------------------------------------------


def with_route(name: str, route: str, path: str) -> dict[str, Any]:
    tool: dict[str, Any] = json.loads((CASES / f"{name}.json").read_text())["tool"]
    return tool | {"routes": tool["routes"] | {route: path}}


def test_an_id_that_the_client_chose_and_nobody_knows_was_never_created(play: Play) -> None:
    """The first submit is lost before it was processed: 404 under the key is the proof, and the same key is sent once
    more."""
    absent = {"id": "look", "on": "GET /jobs/$key", "respond": {"status": 404, "json": {"error": "not found"}}}
    lost, _, *rest = steps_of("C01")
    lost |= {"drop": "before", "creates": False}
    again = {"id": "sub2", "on": "POST /jobs", "match": {"idempotency-key": "$key"}, "creates": True}
    made = {"respond": {"status": 202, "json": {"id": "j-1", "status": "queued"}}}
    expected = changed("C01", reconciliation="NEVER_CREATED", counts={"submit": [2, 2], "lookup": [1, 1]}, path=[])
    tool = with_route("C01", "lookup", "GET /jobs/{key}")
    outcome = play(case("C01", tool=tool, steps=[lost, absent, again | made, *rest], expected=expected))
    assert outcome.found == ()


def test_a_result_outside_of_the_origin_is_never_asked_for(play: Play) -> None:
    away = {"id": "g2", "on": "GET /jobs/j-1", "respond": {"status": 303, "headers": {"Location": "//evil.example/r"}}}
    sub, working, _, result = steps_of("C48")
    done = {"id": "g3", "on": "GET /jobs/j-1", "respond": {"json": {"id": "j-1", "status": "succeeded"}}}
    counts = {"status": [3, 3], "result": [1, 1]}
    expected = changed("C48", error="E_CROSS_ORIGIN_REDIRECT", counts=counts)
    outcome = play(case("C48", steps=[sub, working, away, done, result], expected=expected))
    assert outcome.found == ()


def test_what_a_failed_job_says_is_its_result_without_another_request(play: Play) -> None:
    sub, working, *_ = steps_of("C42")
    told = {"id": "j-1", "status": "failed", "error": {"message": "disk full"}}
    failed = {"id": "g2", "on": "GET /jobs/j-1", "respond": {"json": told}}
    ended = {"terminal": "failed", "receipt": "failure", "counts": {"result": [0, 0]}, "result": told["error"]}
    expected = changed("C42", **ended)
    del expected["error"]
    outcome = play(case("C42", steps=[sub, working, failed], expected=expected))
    assert outcome.found == ()


# -- what a run says ---------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("on_our_server")
def test_a_run_says_one_line_a_case_and_the_sum(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    wrong = json.loads((CASES / "C32.json").read_text())
    (tmp_path / "C32.json").write_text(json.dumps(wrong | {"expected": wrong["expected"] | {"outbox": 0}}))
    paths: Sequence[Path] = [tmp_path, CASES / "C13.json", CASES / "C03.json"]
    assert run_conform(paths, only={"C13", "C32"}) is Exit.INTERNAL
    assert capsys.readouterr().out.splitlines() == [
        "PASS C13 Finishing one call starts the others again",
        "FAIL C32 First poll ignores the suggested pace: outbox is 1, expected 0",
        "1 passed, 1 failed, 0 skipped",
    ]


@pytest.mark.usefixtures("on_our_server")
def test_json_gives_one_object_a_case_and_the_sum_to_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_conform([CASES / "C13.json"], as_json=True) is Exit.OK
    captured = capsys.readouterr()
    told = json.loads(captured.out)
    assert (told["id"], told["verdict"], told["found"]) == ("C13", "PASS", [])
    assert [entry["step"] for entry in told["log"]] == [None, None, "sub", "g1"]
    assert captured.err == "1 passed, 0 failed, 0 skipped\n"


def test_without_a_server_it_starts_one_of_its_own_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(prefix="counterfoil-test-") as folder:
        Path(folder).chmod(0o755)  # as root, Postgres's account must be able to pass
        monkeypatch.setattr("tempfile.tempdir", folder)
        with throw_away_ledger({}) as ledger:
            ledger.set_clock(90_000_000)
            with ledger.database.autocommit() as connection:
                now = connection.exec_driver_sql("SELECT counterfoil.ledger_now()").scalar_one()
        assert (now - START).total_seconds() == 90
        assert list(Path(folder).iterdir()) == []


def test_a_server_that_is_not_there_is_told_with_what_to_do() -> None:
    refused = throw_away_ledger({"COUNTERFOIL_DATABASE_URL": "postgresql://nobody:secret@127.0.0.1:1/none"})
    with pytest.raises(LedgerUnavailable, match="no database can be made for the transcripts") as raised, refused:
        pass
    assert "unset it" in raised.value.next_step
    assert "secret" not in str(raised.value)
