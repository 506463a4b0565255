"""The Celery app: its settings, and a real worker and beat on a real broker."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from celery.exceptions import QueueNotFound
from redis import Redis

from counterfoil.beat_schedule import BEAT_SCHEDULE
from counterfoil.ledger.states import QUEUES
from counterfoil.workers.app import make_app, queue_name
from counterfoil.workers.settings import Settings, SettingsError

from .kit_messages import WORKER_FLAGS

# A fleet's app whose tasks say that they ran, each in a list of its own: the test's wait-points.
PROBE = """
import os
from redis import Redis
from counterfoil.workers.app import make_app, task
from counterfoil.workers.settings import Settings

app = make_app(Settings.load())
app.conf.include = ()


def say(word: str) -> None:
    with Redis.from_url(os.environ["COUNTERFOIL_BROKER_URL"]) as redis:
        redis.lpush(f"ran {word}", "yes")


@task("counterfoil.plan")
def plan() -> None:
    say("plan")


@task("counterfoil.drive")
def drive(lane: str) -> None:
    say(lane)
"""


@pytest.fixture
def app_settings() -> Settings:
    return Settings.load(broker_url="redis://127.0.0.1:1/0", concurrency=3)


@contextmanager
def celery(folder: Path, broker: str, *arguments: str) -> Iterator[None]:
    environment = {
        **{name: value for name, value in os.environ.items() if name != "C_FORCE_ROOT"},
        "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)]),
        "COUNTERFOIL_BROKER_URL": broker,
        "COUNTERFOIL_CONCURRENCY": "1",
    }
    command = [sys.executable, "-m", "celery", "-A", "probe", *arguments]
    with (folder / f"{arguments[0]}.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.terminate()
            assert process.wait(20) == 0, (folder / f"{arguments[0]}.log").read_text()


def test_a_worker_runs_what_beat_ticks_on_a_shared_broker_that_is_emptied(broker: str, tmp_path: Path) -> None:
    """As any user, root too: JSON only, so C_FORCE_ROOT is not needed."""
    (tmp_path / "probe.py").write_text(PROBE)
    with Redis.from_url(broker, decode_responses=True) as redis, make_app(Settings.load(broker_url=broker)) as app:
        with celery(tmp_path, broker, "worker", *WORKER_FLAGS), celery(tmp_path, broker, "beat"):
            assert redis.brpop(["ran plan"], timeout=30)
            redis.flushall()
            assert redis.brpop(["ran plan"], timeout=30)
            app.send_task("counterfoil.drive", ("cancel",))
            assert redis.brpop(["ran cancel"], timeout=30)
        app.send_task("counterfoil.drive", ("poll",))
        left = {str(key) for key in redis.keys("*")} - {"ran plan"}
    assert "counterfoil:counterfoil.poll" in left
    assert all(key.startswith("counterfoil:") for key in left), left
    assert any("_kombu.binding" in key for key in left)


def test_there_is_one_queue_a_lane_one_for_plan_and_one_for_submit_messages(app_settings: Settings) -> None:
    app = make_app(app_settings)
    queues = {"counterfoil.plan", "counterfoil.submit.v1", *(queue_name(lane) for lane in QUEUES)}
    assert set(app.amqp.queues) == queues
    assert queue_name("submit") == "counterfoil.submit"


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "queue"),
    [
        ("counterfoil.plan", (), {}, "counterfoil.plan"),
        ("counterfoil.drive", ("poll", "reports"), {}, "counterfoil.poll"),
        ("counterfoil.drive", (), {"lane": "cancel"}, "counterfoil.cancel"),
    ],
)
def test_a_message_goes_to_the_queue_of_its_lane(
    app_settings: Settings, name: str, args: tuple[str, ...], kwargs: dict[str, str], queue: str
) -> None:
    assert make_app(app_settings).amqp.router.route({}, name, args, kwargs)["queue"].name == queue


def test_a_lane_that_does_not_exist_is_an_error_at_the_sender(app_settings: Settings) -> None:
    with pytest.raises(QueueNotFound, match=r"counterfoil\.pole"):
        make_app(app_settings).amqp.router.route({}, "counterfoil.drive", ("pole",), {})


def test_time_lives_in_the_ledger_so_nothing_is_kept_retried_or_answered_by_celery(app_settings: Settings) -> None:
    conf = make_app(app_settings).conf
    assert conf.accept_content == ["json"]
    assert conf.result_backend is None
    assert conf.task_ignore_result
    assert not conf.task_acks_late
    assert not conf.worker_enable_remote_control
    assert conf.worker_prefetch_multiplier == 1
    assert conf.worker_concurrency == 3
    assert conf.broker_connection_max_retries is None
    assert conf.broker_transport_options["socket_timeout"] == 10


def test_beat_ticks_plan_and_its_ticks_do_not_pile_up(app_settings: Settings) -> None:
    assert make_app(app_settings).conf.beat_schedule == BEAT_SCHEDULE
    for entry in BEAT_SCHEDULE.values():
        assert entry["options"]["expires"] <= entry["schedule"]


def test_importing_the_module_needs_no_settings_and_asking_for_the_app_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from counterfoil.workers import app as module

    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(vars(module), "app", raising=False)  # another test's, if one has asked already
    with pytest.raises(SettingsError, match="E_NO_BROKER"):
        _ = module.app
    monkeypatch.setenv("COUNTERFOIL_BROKER_URL", "valkey://127.0.0.1:1/0")
    try:
        assert module.app.conf.broker_url == "redis://127.0.0.1:1/0"
        assert module.app is module.app
    finally:
        del module.app
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = module.nothing


def test_a_producers_own_celery_app_stays_the_current_one(app_settings: Settings) -> None:
    from celery import current_app

    before = current_app._get_current_object()
    make_app(app_settings)
    assert current_app._get_current_object() is before
