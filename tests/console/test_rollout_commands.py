"""epoch, create, rollback, recover, adapters, canary, shadow, story, orphans: each switch shown, turned and refused."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from counterfoil.ledger.events import CancelAsked
from counterfoil.ledger.states import Lane
from counterfoil.tests.ledger.world import World

from .conftest import Ended, Run
from .ledger_kit import desk, lines, refused

WHY = ("--reason", "drill")
CALL = ("submit", "reports", "preview", "{}", "--call-node")


@pytest.fixture
def ledger(cli_in: Callable[..., Run], database: str, tmp_path: Path) -> Iterator[tuple[World, Run]]:
    with desk(cli_in, database, tmp_path) as made:
        yield made


def one(told: Ended) -> dict[str, object]:
    (line,) = lines(told)
    return line


# -- epochs and new operations -----------------------------------------------------------------------------------------


def test_the_epoch_is_shown_and_bumped_and_never_goes_down(ledger: tuple[World, Run]) -> None:
    _, run = ledger
    assert one(run("epoch", "bump", "--to", "7", *WHY, "-o", "json")) == {"epoch": 7}
    assert one(run("epoch", "bump", "--to", "7", *WHY, "-o", "json")) == {"epoch": 7}
    refused(run("epoch", "bump", "--to", "6", *WHY), "E_EPOCH_DOWN")
    refused(run("epoch", "bump", "--reason", " "), "E_REASON")
    assert run("epoch", "bump", "--to", "9999999999", *WHY).code == 2
    shown = one(run("epoch", "show", "-o", "json"))
    assert (shown["epoch"], shown["reason"], shown["create_on"], shown["refused"]) == (7, "drill", True, 0)
    assert "writes of older epochs refused  0" in run("epoch", "show").out


def test_a_generation_is_adopted_once_and_a_roll_back_takes_an_older_one_up(ledger: tuple[World, Run]) -> None:
    _, run = ledger
    told = [run("epoch", "adopt", "4", *WHY, "-o", "json") for _ in range(2)]
    assert [one(each) for each in told] == [{"epoch": 2}, {"epoch": 2}]
    assert "in generation 4 already" in run("epoch", "adopt", "4", *WHY).err
    for _ in range(2):
        assert one(run("rollback", "--generation", "3", "--once", "job-1", *WHY, "-o", "json")) == {"epoch": 3}
    shown = one(run("epoch", "show", "-o", "json"))
    assert (shown["epoch"], shown["generation"], shown["create_on"]) == (3, 3, False)
    assert run("epoch", "adopt", "3", "--create", "maybe", *WHY).code == 2


def test_new_operations_are_switched_off_and_on(ledger: tuple[World, Run]) -> None:
    _, run = ledger
    assert run("create", "off", *WHY).code == 0
    refused(run(*CALL, "n"), "E_CREATE_OFF", 8)
    assert "new operations                  off: drill" in run("epoch", "show").out
    assert run("create", "on", *WHY).code == 0
    assert run(*CALL, "n").code == 0


def test_a_roll_back_does_both_and_says_what_comes_next(ledger: tuple[World, Run]) -> None:
    _, run = ledger
    told = run("rollback", *WHY, "-o", "json")
    assert one(told) == {"epoch": 2}
    assert "counterfoil create on" in told.err
    shown = one(run("epoch", "show", "-o", "json"))
    assert (shown["epoch"], shown["create_on"]) == (2, False)


def test_a_database_that_was_promoted_refuses_every_switch_until_it_is_recovered(ledger: tuple[World, Run]) -> None:
    world, run = ledger
    world.opened("run/1")
    world.sql("UPDATE counterfoil.execution_epoch SET timeline = timeline + 1")
    for command in (("epoch", "bump", *WHY), ("rollback", *WHY), ("create", "off", *WHY)):
        refused(run(*command), "E_RECOVER_FIRST", 6)
    done = one(run("recover", *WHY, "-o", "json"))
    assert done == {"epoch": 2, "moved": 1, "asked": 1}
    assert run("epoch", "show").code == 0
    assert one(run("recover", "--no-loss", *WHY, "-o", "json")) == {"epoch": 3, "moved": 0, "asked": 0}


# -- protocol versions -------------------------------------------------------------------------------------------------


def test_a_version_drains_goes_off_when_nothing_of_it_is_open_and_opens_again(ledger: tuple[World, Run]) -> None:
    world, run = ledger
    operation_id = world.opened("run/1")
    assert run("adapters", "drain", "mcp-2026-07-28", *WHY).code == 0
    refused(run(*CALL, "n"), "E_ADAPTER_DRAINING", 8)
    refused(run("adapters", "off", "mcp-2026-07-28", *WHY), "E_ADAPTER_IN_USE", 8)
    listed = {line["protocol"]: line for line in lines(run("adapters", "list", "-o", "json"))}
    assert (listed["mcp-2026-07-28"]["mode"], listed["mcp-2026-07-28"]["operations"]) == ("drain", 1)
    assert (listed["mcp-sync"]["mode"], listed["mcp-sync"]["operations"]) == ("open", 0)
    world.bring(operation_id, CancelAsked("stop"), lane=Lane.DOOR)
    assert run("adapters", "off", "mcp-2026-07-28", *WHY).code == 0
    assert "mcp-2026-07-28  off" in run("adapters", "list").out
    assert run("adapters", "open", "mcp-2026-07-28", *WHY).code == 0
    assert run(*CALL, "n").code == 0


def test_draining_an_unknown_version_names_the_nearest_and_changes_nothing(ledger: tuple[World, Run]) -> None:
    world, run = ledger
    told = run("adapters", "drain", "mcp-2026-07-82", *WHY)
    refused(told, "E_PROTOCOL_UNKNOWN")
    assert "Did you mean mcp-2026-07-28?" in told.err
    assert world.sql("SELECT count(*) FROM counterfoil.adapter_mode") == [(0,)]


# -- canary and shadow -------------------------------------------------------------------------------------------------


def test_a_canary_is_set_listed_cleared_and_recorded_for_each_call_node(ledger: tuple[World, Run]) -> None:
    _, run = ledger
    told = run("canary", "set", "reports/preview", "0%", *WHY)
    assert (told.code, "ever negotiated" in told.err) == (0, True)
    refused(run(*CALL, "n"), "E_NOT_SELECTED", 8)
    listed = one(run("canary", "list", "-o", "json"))
    assert (listed["target"], listed["tool"], listed["percent"], listed["shadow"]) == ("reports", "preview", 0.0, False)
    assert run("canary", "clear", "reports/preview").code == 0
    assert "100 %" in run("canary", "list").out
    refused(run(*CALL, "n"), "E_NOT_SELECTED", 8)
    assert run(*CALL, "n2").code == 0


def test_a_canary_that_is_none_is_refused_and_changes_nothing(ledger: tuple[World, Run]) -> None:
    world, run = ledger
    for percent in ("150%", "150 %", "101", "nan", "five", ""):
        refused(run("canary", "set", "reports/preview", percent), "E_CANARY_PERCENT")
    refused(run("canary", "set", "report/preview", "5%"), "E_TARGET_UNKNOWN")
    refused(run("canary", "set", "preview", "5%"), "E_INPUT")
    refused(run("canary", "set", "reports/generate", "5%", "--shadow"), "E_SHADOW_EFFECTS")
    assert world.sql("SELECT count(*) FROM counterfoil.rollout") == [(0,)]
    assert "nothing is set" in run("canary", "list").err


def test_a_shadow_is_told_of_and_compared(ledger: tuple[World, Run]) -> None:
    _, run = ledger
    assert run("canary", "set", "reports/preview", "0%", "--shadow").code == 0
    refused(run(*CALL, "n"), "E_NOT_SELECTED", 8)
    assert one(run("get", "n", "-n", "default~shadow", "-o", "json"))["state"] == "SUBMITTING"
    assert run("shadow", "tell", "n", "succeeded", "-", stdin=b'{"rows": 3}').code == 0
    refused(run("shadow", "tell", "n", "failed"), "E_SHADOW_TOLD", 8)
    refused(run("shadow", "tell", "n", "abandoned"), "E_INPUT")
    refused(run("shadow", "tell", "n", "succeeded", '{"rows": '), "E_ARGUMENTS_INVALID")
    refused(run("shadow", "tell", "nobody", "failed"), "E_NOT_FOUND", 3)
    sums, line = lines(run("shadow", "report", "-o", "json"))
    assert sums == {"same": 0, "differs": 0, "missing": 1}
    assert (line["call_node_id"], line["verdict"], line["told"], line["why"]) == (
        *("n", "missing"),
        *("succeeded", "the shadow is SUBMITTING"),
    )
    assert "missing  1" in run("shadow", "report", "reports/preview").out
    assert run("shadow", "report", "reports/another").out == "same     0\ndiffers  0\nmissing  0\n"


# -- how it went -------------------------------------------------------------------------------------------------------


def test_a_story_is_told_line_by_line(ledger: tuple[World, Run]) -> None:
    world, run = ledger
    world.ended(world.working())
    told = run("story", "run/1").out.splitlines()
    assert (
        told[0].partition("  ")[2].startswith("door: handed in: reports/generate on behalf of default, submission key")
    )
    assert "worker: submit intended: may leave within 10 s" in told[1]
    assert told[1].endswith("[epoch 1, generation 0, attempt 1]")
    assert "accept_terminal: receipt " in told[-1]
    assert [line["kind"] for line in lines(run("story", "run/1", "-o", "json"))][-1] == "over"
    refused(run("story", "nobody"), "E_NOT_FOUND", 3)


def test_no_orphan_is_a_zero_and_orphans_are_rows_and_a_failure(ledger: tuple[World, Run]) -> None:
    world, run = ledger
    world.working()
    assert (run("orphans").out, run("orphans").code, run("orphans", "-o", "json").out) == ("0\n", 0, "")
    world.sql("DELETE FROM counterfoil.wake")
    told = run("orphans")
    assert told.code == 1
    assert "default: run/1" in told.out
    assert "poll: 1, the oldest for" in told.err
    found = lines(run("orphans", "-o", "json"))
    assert [(line["lane"], line["call_node_id"]) for line in found] == [("poll", "run/1"), ("timer", "run/1")]
    assert all(line["age_s"] >= 0 for line in found)


# -- webhooks ----------------------------------------------------------------------------------------------------------


def test_an_endpoint_that_was_stopped_is_listed_and_started_anew(ledger: tuple[World, Run]) -> None:
    world, run = ledger
    assert run("webhooks", "list", "-o", "json").out == ""
    world.sql(
        "INSERT INTO counterfoil.webhook_endpoint (namespace, failures, failing_since, stopped_at, why)"
        " VALUES ('billing', 7, counterfoil.ledger_now(), counterfoil.ledger_now(), 'answered 410')"
    )
    listed = one(run("webhooks", "list", "-o", "json"))
    assert (listed["namespace"], listed["failures"], listed["why"]) == ("billing", 7, "answered 410")
    assert "stopped" in run("webhooks", "list").out
    assert run("webhooks", "resume", "billing").code == 0
    assert run("webhooks", "list", "-o", "json").out == ""
    told = run("webhooks", "resume", "billing")
    assert (told.code, told.err) == (3, "the endpoint of 'billing' neither fails nor was stopped.\n")
