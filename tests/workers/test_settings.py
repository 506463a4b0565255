"""Settings from the environment, the development stack's URLs, and errors that keep passwords to themselves."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from counterfoil.workers.settings import Settings, SettingsError


@pytest.fixture(autouse=True)
def in_an_empty_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def dev_stack(folder: Path, **urls: str) -> None:
    folder.mkdir()
    (folder / "dev.json").write_text(json.dumps({"servers": {name: {"url": url} for name, url in urls.items()}}))


@pytest.mark.parametrize("scheme", ["postgresql", "postgresql+psycopg", "POSTGRESQL"])
def test_a_postgres_url_names_the_driver_that_we_use(scheme: str) -> None:
    settings = Settings.load(database_url=f"{scheme}://u:p%40ss@h:5432/d?sslmode=require")
    assert settings.require_database_url() == "postgresql+psycopg://u:p%40ss@h:5432/d?sslmode=require"


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("redis://:p@h:6379/1", "redis://:p@h:6379/1"),
        ("rediss://h/0", "rediss://h/0"),
        ("valkey://h:6379/0", "redis://h:6379/0"),
        ("valkeys://h/0", "rediss://h/0"),
        ("valkey+unix:///run/v.sock", "redis+socket:///run/v.sock"),
        ("redis+socket:///run/v.sock?virtual_host=2", "redis+socket:///run/v.sock?virtual_host=2"),
    ],
)
def test_a_valkey_url_becomes_one_that_kombu_understands(given: str, taken: str) -> None:
    assert Settings.load(broker_url=given).require_broker_url() == taken


def test_the_environment_is_read_and_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUNTERFOIL_BROKER_URL", "redis://h/0")
    monkeypatch.setenv("COUNTERFOIL_DATABASE_URL", "")
    monkeypatch.setenv("COUNTERFOIL_FLEET", "blue")
    monkeypatch.setenv("COUNTERFOIL_TARGETS_FILE", "/etc/targets.yaml")
    settings = Settings.load()
    assert (settings.broker_url, settings.database_url) == ("redis://h/0", None)
    assert (settings.fleet, settings.targets_file) == ("blue", Path("/etc/targets.yaml"))


def test_the_development_stack_is_used_where_no_url_is_set(tmp_path: Path) -> None:
    dev_stack(tmp_path / ".counterfoil", postgres="postgresql+psycopg://u:p@h/dev", valkey="redis://:p@h/0")
    settings = Settings.load(broker_url="redis://mine/0")
    assert settings.require_database_url() == "postgresql+psycopg://u:p@h/dev"
    assert settings.require_broker_url() == "redis://mine/0"


def test_a_stack_with_one_server_gives_that_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dev_stack(tmp_path / "elsewhere", valkey="redis://:p@h/0")
    monkeypatch.setenv("COUNTERFOIL_STATE_DIR", str(tmp_path / "elsewhere"))
    settings = Settings.load()
    assert settings.broker_url == "redis://:p@h/0"
    assert settings.database_url is None


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"servers": 5}', '{"servers": {"postgres": {"url": 5}}}', "\x00\xff"]
)
def test_a_state_file_that_says_nothing_is_as_good_as_none(tmp_path: Path, content: str) -> None:
    dev_stack(tmp_path / ".counterfoil")
    (tmp_path / ".counterfoil" / "dev.json").write_bytes(content.encode("latin-1"))
    assert Settings.load().database_url is None


def test_a_missing_server_is_an_error_with_the_next_command() -> None:
    settings = Settings.load()
    with pytest.raises(SettingsError, match=r"E_NO_DATABASE: no database is configured.*`counterfoil dev up`"):
        settings.require_database_url()
    with pytest.raises(SettingsError, match=r"E_NO_BROKER: no broker is configured.*`counterfoil dev up`.*--solo"):
        settings.require_broker_url()


@pytest.mark.parametrize(
    "given",
    [
        {"database_url": "mysql://u:hunter2@h/d"},
        {"database_url": "hunter2"},
        {"database_url": "postgresql://u:hunter2@h:port/d"},
        {"database_url": "postgresql://u:hunter2@[h/d"},
        {"broker_url": "amqp://u:hunter2@h//"},
        {"broker_url": "redis://:hunter2@h:99999/0"},
        {"tick_s": "hunter2"},
    ],
)
def test_an_error_names_the_variable_and_never_shows_its_value(given: dict[str, str]) -> None:
    with pytest.raises(SettingsError) as raised:
        Settings.load(**given)
    error = raised.value
    assert next(iter(given)).upper() in str(error)
    shown = f"{error!s} {error!r} {error.__cause__} {'' if error.__suppress_context__ else error.__context__}"
    assert "hunter2" not in shown


def test_all_wrong_settings_are_told_at_once() -> None:
    with pytest.raises(SettingsError) as raised:
        Settings.load(poll_lease_s=60, fleet="No Spaces", in_flight=0)
    for name in ("COUNTERFOIL_POLL_LEASE_S", "COUNTERFOIL_FLEET", "COUNTERFOIL_IN_FLIGHT"):
        assert name in str(raised.value)


def test_settings_are_frozen_and_their_repr_holds_no_password() -> None:
    settings = Settings.load(database_url="postgresql://u:hunter2@h/d", broker_url="redis://:hunter2@h/0")
    assert "hunter2" not in repr(settings)
    with pytest.raises(ValidationError):
        settings.fleet = "other"
