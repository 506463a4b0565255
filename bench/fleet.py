"""Counterfoil on a field: its targets file, its worker and beat, and what its ledger says."""

from collections.abc import Mapping
from typing import Any

from ..console.children import Child
from ..console.devservers import DATABASE
from ..ledger.client import Call, Client
from .field import MODULE, BenchError, Field
from .producer import TARGET, TOOL

READY_S = 30.0
LIMITS = "qps: 5000, burst: 1000"
"""Above everything that is measured: the bucket is asked, and never says no."""

POLL = "{min_s: 1, max_s: 300, default_s: 1}"

ROUTES = (
    "submit: POST /jobs, status: 'GET /jobs/{id}', result: 'GET /jobs/{id}/result', cancel: 'POST /jobs/{id}/cancel'"
)
DECLARED = (
    "key: {header: Idempotency-Key}, statuses: {working: [running], completed: [completed], cancelled: [cancelled]}"
)
"""The remote server's API, as an operator writes it down."""

LOOKUP_ROUTE = ", lookup: 'GET /jobs?key={key}'"
LOOKUP = "lookup: {absence: bounded, key_lifetime_s: 86400}"
"""The remote server does not dedupe, so only time makes an absence believable."""


def target(name: str, url: str, *, poll: str = POLL, limits: str = LIMITS, lookup: bool = False, more: str = "") -> str:
    """One line of the targets file. `more`: further keys."""
    routes = f"routes: {{{ROUTES}{LOOKUP_ROUTE if lookup else ''}}}"
    keys = [f"url: '{url}'", "protocol: http-202", limits, f"poll: {poll}", routes, DECLARED]
    keys += [key for key in (LOOKUP if lookup else "", more) if key]
    return f"  {name}: {{{', '.join(keys)}}}\n"


def aim(field: Field, *targets: str) -> None:
    """Write the targets file; without any the one remote server."""
    lines = targets or (target(TARGET, field.remote.url),)
    (field.servers.folder / "targets.yaml").write_text("targets:\n" + "".join(lines))


def start_worker(field: Field, *arguments: str, name: str = "worker") -> Child:
    """A Celery worker as it is shipped: one process a core. It is ready when this returns."""
    child = field.start(name, (*MODULE, "counterfoil", "worker", *arguments))
    ready = field.wait(f"{name} is ready", lambda: "worker ready" in child.log_file.read_text(), READY_S)
    if not ready:
        raise BenchError(f"{name} did not start:\n{child.log_tail(20)}")
    field.meter.watch(name, child.pid)
    return child


def start_beat(field: Field) -> Child:
    child = field.start("beat", (*MODULE, "counterfoil", "beat"))
    field.meter.watch("beat", child.pid)
    return child


def bound_s(field: Field, prefix: str) -> Mapping[str, float]:
    """Call node -> when the ledger knew its task, in Unix seconds."""
    rows = ask(
        field,
        """
        SELECT o.call_node_id, extract(epoch FROM min(j.at))::float8
        FROM counterfoil.operation AS o JOIN counterfoil.journal AS j ON j.operation_id = o.id
        WHERE j.target = 'WORKING' AND starts_with(o.call_node_id, %s) GROUP BY 1
        """,
        prefix,
    )
    return dict(rows)


def receipts(field: Field, prefix: str) -> int:
    """How many calls of this name have a receipt."""
    query = "SELECT count(*) FROM counterfoil.terminal_receipt WHERE starts_with(call_node_id, %s)"
    return int(ask(field, query, prefix)[0][0])


def ask(field: Field, query: Any, *arguments: object) -> list[Any]:
    """As the superuser, in the ledger's database, on a connection that goes with the question."""
    with field.servers.connect(DATABASE) as connection:
        return connection.execute(query, arguments).fetchall()


def hand_in(field: Field, name: str, count: int, work_s: float, to: str = TARGET) -> None:
    """Submit calls NAME-0, NAME-1, … to one target in one transaction. The fleet has announced its targets."""
    calls = [f"{name}-{number}" for number in range(count)]
    client = Client(field.servers.database_url)
    try:
        with client._database.begin() as connection:  # noqa: SLF001  `submit_in` takes anybody's transaction
            client.submit_in(connection, [Call(to, TOOL, {"call": call, "work_s": work_s}, call) for call in calls])
    finally:
        client.close()


def wait_until_announced(field: Field) -> None:
    """A worker says that it is ready a moment before its children have announced the targets."""
    query = "SELECT count(*) FROM counterfoil.target_state"
    if not field.wait("the targets are announced", lambda: ask(field, query)[0][0] > 0, READY_S):
        raise BenchError("no worker process announced its targets")
