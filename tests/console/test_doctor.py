"""`counterfoil doctor`: each part, well and not well, on real servers."""

import json
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
import redis
from cryptography.fernet import Fernet
from sqlalchemy.engine import make_url

from counterfoil import Client
from counterfoil.console import doctor_ledger
from counterfoil.console.devstack import DevStack
from counterfoil.ledger.database import Database
from counterfoil.ledger.policy import Policy
from counterfoil.ledger.store import Store
from counterfoil.workers.bucket import Limit, RedisBucket

from .conftest import Ended, Run
from .mcp_server import mcp_2025, serving, tool

SECRET = "hunter2-do-not-show"


def findings(told: Ended) -> dict[str, tuple[str, str]]:
    """Name -> health and what was found; every trouble has a remedy."""
    found = [json.loads(line) for line in told.out.splitlines()]
    assert all((one["remedy"] is None) == (one["health"] == "OK") for one in found)
    assert (told.code == 1) == any(one["health"] == "FAIL" for one in found)
    return {one["name"]: (one["health"], one["found"]) for one in found}


def operator(database: str) -> psycopg.Connection[tuple[object, ...]]:
    url = make_url(database).set(drivername="postgresql").render_as_string(hide_password=False)
    return psycopg.connect(url, autocommit=True)


def submitted(database: str) -> None:
    """One operation that nobody works on."""
    ledger = Database(database)
    Store(ledger, "main", 1, lambda target, tool: Policy(protocol="mcp-sync")).register_targets(
        [("sheets", "mcp-sync")]
    )
    ledger.dispose()
    client = Client(database)
    client.submit("sheets", "add", {}, call_node_id=f"n-{secrets.token_hex(4)}")
    client.close()


@pytest.fixture
def settings(database: str, broker: str, tmp_path: Path) -> dict[str, str]:
    file = tmp_path / "targets.yaml"
    file.write_text("targets:\n  gone: {url: 'http://127.0.0.1:1/mcp', protocol: mcp-2026-07-28}\n")
    return {"DATABASE_URL": database, "BROKER_URL": broker, "TARGETS_FILE": str(file)}


@pytest.fixture
def durable(database_stack: DevStack) -> Iterator[None]:
    """The session's server with fsync on meanwhile, as everybody's is but the tests'."""
    if database_stack.superuser_url is None:
        yield
        return
    url = make_url(database_stack.superuser_url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url, autocommit=True) as connection:
        for value in ("on", "off"):
            connection.execute(f"ALTER SYSTEM SET fsync = {value}")  # type: ignore[arg-type]
            connection.execute("SELECT pg_reload_conf()")
            while connection.execute("SHOW fsync").fetchone() != (value,):
                pass  # a reload reaches each session when it next asks
            if value == "on":
                yield


def ticked(database: str, ago: str = "0 s") -> None:
    with operator(database) as connection:
        query = "INSERT INTO counterfoil.pulse VALUES ('main', 'beat', counterfoil.ledger_now() - %s::interval)"
        connection.execute(query, (ago,))


def test_all_is_well(cli_in: Callable[..., Run], settings: dict[str, str], database: str, durable: None) -> None:
    ticked(database)
    with redis.Redis.from_url(settings["BROKER_URL"]) as client:
        client.config_set("maxmemory-policy", "noeviction")
    with serving(mcp_2025(tool("add"))) as server:
        text = f"targets:\n  sheets: {{url: '{server.url}', protocol: mcp-sync, sync_bound_s: 9}}\n"
        Path(settings["TARGETS_FILE"]).write_text(text)
        run = cli_in(**settings, KEYS=Fernet.generate_key().decode())
        told, plain = run("doctor", "-o", "json"), run("doctor")
    found = findings(told)
    assert {name for name, (health, _) in found.items() if health != "OK"} == set()
    assert found.keys() == {
        *(
            "database",
            "durability",
            "transactions",
            "schema",
            "epoch",
            "new work",
            "clock",
            "beat",
            "due work",
            "closed",
        ),
        *("endpoints", "months", "open cases", "orphans", "broker", "eviction", "bucket"),
        *("targets file", "keys", "target sheets"),
    }
    assert (told.code, plain.code, plain.err) == (0, 0, "")
    assert "OK    target sheets" in plain.out


def test_servers_that_are_down_are_told_with_what_to_do_and_without_passwords(
    cli_in: Callable[..., Run], settings: dict[str, str]
) -> None:
    down = {
        "DATABASE_URL": f"postgresql://me:{SECRET}@127.0.0.1:1/x",
        "BROKER_URL": f"redis://:{SECRET}@127.0.0.1:1/0",
    }
    told = cli_in(**settings | down)("doctor", "-o", "json")
    found = findings(told)
    assert told.code == 1
    assert {name for name, (health, _) in found.items() if health == "FAIL"} == {"database", "broker", "target gone"}
    assert found["database"][1].startswith("E_LEDGER_UNAVAILABLE: ")
    assert found["target gone"][1].startswith("E_UNREACHABLE: ")
    assert SECRET not in told.out + told.err


def test_a_database_without_the_schema_says_how_to_get_it(
    cli_in: Callable[..., Run], settings: dict[str, str], empty_database: str
) -> None:
    found = findings(cli_in(**settings | {"DATABASE_URL": empty_database})("doctor", "-o", "json"))
    assert found["schema"][0] == "FAIL"
    assert "orphans" not in found


def test_work_that_nobody_does_is_late_and_then_an_orphan(
    cli_in: Callable[..., Run], settings: dict[str, str], database: str
) -> None:
    submitted(database)
    run = cli_in(**settings)
    assert findings(run("doctor", "-o", "json"))["due work"][0] == "OK"
    with operator(database) as connection:
        connection.execute(
            "UPDATE counterfoil.wake SET due_at = counterfoil.ledger_now() - interval '61 minutes 20 seconds'"
        )
    found = findings(run("doctor", "-o", "json"))
    assert found["due work"] == ("FAIL", "the oldest due row has waited for 61 min.")
    assert found["orphans"][0] == "FAIL"


def test_an_open_case_is_counted_by_its_code(
    cli_in: Callable[..., Run], settings: dict[str, str], database: str
) -> None:
    submitted(database)
    with operator(database) as connection:
        connection.execute(
            "INSERT INTO counterfoil.reconciliation_case (id, operation_id, kind, code, why, opened_at)"
            " SELECT gen_random_uuid(), id, 'UNKNOWN', 'E_SUBMISSION_UNKNOWN', 'why', counterfoil.ledger_now()"
            " FROM counterfoil.operation"
        )
    found = findings(cli_in(**settings)("doctor", "-o", "json"))
    assert found["open cases"] == ("WARN", "1 E_SUBMISSION_UNKNOWN.")


def test_a_broker_that_may_drop_messages_is_told(cli_in: Callable[..., Run], settings: dict[str, str]) -> None:
    with redis.Redis.from_url(settings["BROKER_URL"]) as client:
        was = client.config_get("maxmemory-policy")["maxmemory-policy"]
        client.config_set("maxmemory-policy", "allkeys-lru")
        try:
            assert findings(cli_in(**settings)("doctor", "-o", "json"))["eviction"][0] == "WARN"
        finally:
            client.config_set("maxmemory-policy", was)


def test_a_target_with_sessions_and_no_key_to_seal_them_with_is_told(
    cli_in: Callable[..., Run], settings: dict[str, str]
) -> None:
    text = "targets:\n  gone: {url: 'http://127.0.0.1:1/mcp', protocol: mcp-sync, sync_bound_s: 9}\n"
    Path(settings["TARGETS_FILE"]).write_text(text)
    assert findings(cli_in(**settings)("doctor", "-o", "json"))["keys"][0] == "FAIL"
    told = cli_in(**settings, KEYS=SECRET)("doctor", "-o", "json")
    assert findings(told)["keys"][1].startswith("E_KEYS: ")
    assert SECRET not in told.out


def test_a_variable_that_no_setting_has_is_told_with_the_nearest(
    cli_in: Callable[..., Run], settings: dict[str, str]
) -> None:
    told = cli_in(**settings, TARGET_FILE="x")("doctor", "-o", "json")
    assert findings(told)["settings"] == ("WARN", "COUNTERFOIL_TARGET_FILE is no setting and does nothing.")
    assert "Did you mean COUNTERFOIL_TARGETS_FILE?" in told.out


def test_files_that_can_not_be_used_are_told(
    cli_in: Callable[..., Run], settings: dict[str, str], tmp_path: Path
) -> None:
    for name in ("targets", "producers", "webhooks"):
        (tmp_path / f"{name}.yaml").write_text("nonsense: [")
    files = {f"{name.upper()}_FILE": str(tmp_path / f"{name}.yaml") for name in ("targets", "producers", "webhooks")}
    found = findings(cli_in(**settings | files)("doctor", "-o", "json"))
    assert [found[name][0] for name in ("targets file", "producers", "webhooks")] == ["FAIL"] * 3


def test_a_crash_that_would_forget_an_intent_fails(
    cli_in: Callable[..., Run], settings: dict[str, str], database: str
) -> None:
    with operator(database) as connection:
        name = connection.execute("SELECT current_database()").fetchone()
        connection.execute(f"ALTER DATABASE {name[0]} SET synchronous_commit = off")  # type: ignore[arg-type, index]
    health, found = findings(cli_in(**settings)("doctor", "-o", "json"))["durability"]
    assert health == "FAIL"
    assert "synchronous_commit" in found


def test_ticks_that_do_not_come_through_are_told(
    cli_in: Callable[..., Run], settings: dict[str, str], database: str
) -> None:
    run = cli_in(**settings)
    assert findings(run("doctor", "-o", "json"))["beat"] == ("WARN", "no tick has ever reached a worker.")
    ticked(database, ago="150 s")
    assert findings(run("doctor", "-o", "json"))["beat"] == ("WARN", "the last tick came 2 min ago.")


def test_an_epoch_that_the_configuration_names_and_the_ledger_is_not_in_fails(
    cli_in: Callable[..., Run], settings: dict[str, str]
) -> None:
    found = findings(cli_in(**settings, EPOCH="9")("doctor", "-o", "json"))
    assert found["epoch"] == ("FAIL", "fleet main, 1; COUNTERFOIL_EPOCH says 9.")


def test_a_generation_that_the_ledger_is_not_in_fails_and_the_rest_is_looked_at(
    cli_in: Callable[..., Run], settings: dict[str, str]
) -> None:
    found = findings(cli_in(**settings, GENERATION="4")("doctor", "-o", "json"))
    assert found["epoch"] == (
        "FAIL",
        "E_GENERATION: this worker is of generation 4, the ledger is in none.",
    )
    assert "beat" in found


def test_what_is_switched_off_closed_or_given_up_is_told(
    cli_in: Callable[..., Run], settings: dict[str, str], database: str
) -> None:
    submitted(database)
    with operator(database) as connection:
        connection.execute("UPDATE counterfoil.control SET create_on = false, reason = 'release 2.4 loses answers'")
        connection.execute(
            "UPDATE counterfoil.target_state SET closed_until = counterfoil.ledger_now() + interval '1 hour'"
        )
        connection.execute(
            "INSERT INTO counterfoil.webhook_endpoint (namespace, failures, stopped_at)"
            " VALUES ('default', 3, counterfoil.ledger_now())"
        )
    with redis.Redis.from_url(settings["BROKER_URL"]) as client:
        RedisBucket(client, {"sheets": Limit(1.0, 1.0)}).close("sheets", 1800.0)
    found = findings(cli_in(**settings)("doctor", "-o", "json"))
    assert found["new work"] == ("WARN", "refused since it was switched off: release 2.4 loses answers.")
    assert found["closed"][0] == "WARN"
    assert found["closed"][1].startswith("sheets for ")
    assert found["bucket"][0] == "WARN"
    assert found["bucket"][1].startswith("closed: sheets for ")
    assert found["endpoints"] == ("WARN", "given up: default.")


def test_a_transaction_that_stays_open_is_told(
    cli_in: Callable[..., Run], settings: dict[str, str], database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_ledger, "LONG_WARN_S", 0.0)  # nobody waits a minute for it here
    with operator(database) as connection, connection.transaction():
        connection.execute("SET LOCAL application_name = 'a report'")
        health, found = findings(cli_in(**settings)("doctor", "-o", "json"))["transactions"]
    assert health == "WARN"
    assert "a report" in found


def test_a_schema_that_somebody_changed_by_hand_is_told(
    cli_in: Callable[..., Run], settings: dict[str, str], database: str
) -> None:
    with operator(database) as connection:
        connection.execute("SET ROLE counterfoil_owner")
        connection.execute("ALTER TABLE counterfoil.pulse ADD COLUMN extra TEXT")
    health, found = findings(cli_in(**settings)("doctor", "-o", "json"))["schema"]
    assert (health, found.endswith("with 1 differences.")) == ("FAIL", True)


def test_months_that_nobody_prepares_are_told(
    cli_in: Callable[..., Run], settings: dict[str, str], database: str
) -> None:
    with operator(database) as connection:
        connection.execute("SET ROLE counterfoil_owner")
        connection.execute(
            "INSERT INTO counterfoil.ledger_clock (frozen_at)"
            " SELECT max(until_at) - interval '6 days' FROM counterfoil.partition"
        )
    assert findings(cli_in(**settings)("doctor", "-o", "json"))["months"][0] == "WARN"
