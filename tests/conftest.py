"""Real servers for every test: one PostgreSQL and, when first asked for, one Valkey a session, both on loopback.

Fixtures: `database` (a migrated database of the test's own), `empty_database` (nothing in it), `broker` (an empty
Valkey), `database_stack` (the server itself). `COUNTERFOIL_DATABASE_URL` runs the tests on another PostgreSQL:
they make and drop databases there, named `counterfoil_test_…`, and need a role that may. A broker of yours is never
used, since tests empty it.
"""

import ipaddress
import os
import shutil
import signal
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, LiteralString

import hypothesis
import psycopg
import pytest
import redis
from psycopg import sql
from sqlalchemy.engine import make_url

from counterfoil.console import devstack
from counterfoil.console.devstack import DevStack
from counterfoil.tests.accounts import ACCOUNTS, Account
from counterfoil.tests.memory import server_folder

# Two shared cores: how long an example takes says more about the neighbours than about the code.
hypothesis.settings.register_profile("counterfoil", deadline=None, print_blob=True)
hypothesis.settings.load_profile("counterfoil")

pytest_plugins = ["counterfoil.tests.turns"]

# Told to end by whoever holds the clock: as by Ctrl-C, with every server stopped and every folder removed.
signal.signal(signal.SIGTERM, signal.default_int_handler)
# What a shell starts in the background ignores Ctrl-C, and so would every process that is started here: four tests of
# Ctrl-C failed, after ten minutes of one.
signal.signal(signal.SIGINT, signal.default_int_handler)

_EXTERNAL = {k: v for k, v in os.environ.items() if k == "COUNTERFOIL_DATABASE_URL"}


@pytest.fixture(scope="session", autouse=True)
def only_loopback_and_no_settings_from_outside() -> Iterator[None]:
    """Refuse every socket that leaves the machine, and hide the caller's own COUNTERFOIL_ settings."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("COUNTERFOIL_")]:
            patch.delenv(name)
        for method in ("connect", "connect_ex"):
            patch.setattr(socket.socket, method, _only_loopback(getattr(socket.socket, method)))
        yield


def _only_loopback(connect: Any) -> Any:
    def guarded(self: socket.socket, address: Any) -> Any:
        if self.family != socket.AF_UNIX:
            host = address[0]
            if host != "localhost" and not ipaddress.ip_address(host.partition("%")[0]).is_loopback:
                raise PermissionError(f"a test may only connect to loopback, not to {host}")
        return connect(self, address)

    return guarded


def pytest_report_header() -> str:
    reach = " (nobody can't reach this checkout: not tried as a normal user)"
    names = [account.name for account in ACCOUNTS]
    return f"development stack tried as: {', '.join(names)}{reach if names == ['root'] else ''}"


@pytest.fixture(params=ACCOUNTS, ids=lambda account: account.name)
def account(request: pytest.FixtureRequest) -> Account:
    """Who is to run the development stack."""
    found: Account = request.param
    return found


@contextmanager
def _stack(**arguments: Any) -> Iterator[DevStack]:
    folder = server_folder("test")
    folder.chmod(0o755)  # as root, Postgres's account must be able to pass
    places = (folder / "state", folder / "data")
    try:
        with DevStack(places[0], root_data_dir=places[1], migrate=False, **arguments) as stack:
            yield stack
        devstack.reset(places[0], root_data_dir=places[1])
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def database_stack() -> Iterator[DevStack]:
    """The session's PostgreSQL, with fsync off: each test's DROP DATABASE checkpoints, 0.1 to 0.7 s with it on, and no
    test here cuts the power. The development stack's own tests have servers of their own, with fsync on."""
    with _stack(servers=("postgres",), environ=_EXTERNAL) as stack:
        if stack.superuser_url is not None:
            url = make_url(stack.superuser_url).set(drivername="postgresql").render_as_string(hide_password=False)
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("ALTER SYSTEM SET fsync = off")
                connection.execute("SELECT pg_reload_conf()")
        yield stack


@pytest.fixture(scope="session")
def _broker_stack() -> Iterator[DevStack]:
    with _stack(servers=("valkey",), environ={}) as stack:
        yield stack


@pytest.fixture(scope="session")
def _template(database_stack: DevStack) -> Iterator[str]:
    from counterfoil.ledger import migrate  # Alembic costs 0.3 s: only tests with a database pay it

    with _new_database(database_stack) as url:
        migrate.upgrade(url)
        yield make_url(url).database or ""


@pytest.fixture
def database(database_stack: DevStack, _template: str) -> Iterator[str]:
    """SQLAlchemy URL of a migrated database that only this test sees."""
    with _new_database(database_stack, template=_template) as url:
        yield url


@pytest.fixture
def empty_database(database_stack: DevStack) -> Iterator[str]:
    """SQLAlchemy URL of a database without a schema of ours."""
    with _new_database(database_stack) as url:
        yield url


@pytest.fixture
def broker(_broker_stack: DevStack) -> str:
    """`redis://` URL of an empty Valkey."""
    with redis.Redis.from_url(_broker_stack.broker_url) as client:
        client.flushall()
    return _broker_stack.broker_url


@contextmanager
def _new_database(stack: DevStack, template: str = "template1") -> Iterator[str]:
    url = make_url(stack.database_url)
    name = f"counterfoil_test_{uuid.uuid4().hex[:12]}"
    create = "CREATE DATABASE {} TEMPLATE {} OWNER {}"
    _operate(stack, create, name, template, url.username or "")
    try:
        yield url.set(database=name).render_as_string(hide_password=False)
    finally:
        _operate(stack, "DROP DATABASE {} WITH (FORCE)", name)


def _operate(stack: DevStack, statement: LiteralString, *names: str) -> None:
    # As the superuser, where it is ours: sessions of other roles that a test left open must not keep the database.
    operator = make_url(stack.superuser_url or stack.database_url).set(drivername="postgresql")
    with psycopg.connect(operator.render_as_string(hide_password=False), autocommit=True) as connection:
        connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))
