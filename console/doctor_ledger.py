"""What `counterfoil doctor` looks at in the ledger: the server, the schema, the fleet, what waits."""

import time
from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import Connection, text

from ..ledger import epochs, generations, migrate
from ..ledger.database import Database
from ..ledger.errors import CounterfoilError, StaleEpoch
from ..ledger.orphans import find_orphans
from ..workers.settings import Settings
from .finding import Finding, Health, failed
from .words import age

OLDEST, NEWEST = 15, 18
"""The major versions of PostgreSQL that Counterfoil is written for."""

SKEW_WARN_S = 5.0
"""The ledger's clock decides; ours only dates log lines, which people then compare."""

LATE_WARN_S, LATE_FAIL_S = 30.0, 900.0
"""A due row waits for the next tick, or for a dead worker's lease (30 s at most); 15 minutes are SPEC section 7's."""

BEAT_WARN_S = 30.0
LONG_WARN_S = 60.0
"""A transaction of somebody else that is older keeps dead rows: claims went from 3 to 180 ms behind one elsewhere."""


def look_at_ledger(settings: Settings) -> Iterator[Finding]:
    """One finding after the other; what can't be looked at without another thing is left out."""
    try:
        url = settings.require_database_url()
        migrate.current(url)
    except CounterfoilError as error:
        yield failed("database", error)
        return
    server = Database(url, role=None, pool_size=1)  # whose sessions the login itself may see
    try:
        for look in (_server, _durability, _transactions):
            with server.autocommit() as connection:
                yield look(connection)
    finally:
        server.dispose()
    try:
        found = migrate.require(url)
    except CounterfoilError as error:
        yield failed("schema", error)
        return
    yield _schema(url, found)
    yield from _fleet(settings, url)


def _fleet(settings: Settings, url: str) -> Iterator[Finding]:
    database = Database(url, fleet=settings.fleet, pool_size=1)
    try:
        yield _epoch(settings, database)
        for look in _LOOKS:
            with database.autocommit() as connection:
                yield look(connection, settings)
    except CounterfoilError as error:
        yield failed("ledger", error)
    finally:
        database.dispose()


# -- the server --------------------------------------------------------------------------------------------------------


def _server(connection: Connection) -> Finding:
    version = str(connection.execute(text("SHOW server_version")).scalar_one()).partition(" ")[0]
    major = int(version.partition(".")[0])
    if major < OLDEST:
        remedy = f"Upgrade it: Counterfoil needs {OLDEST} or newer."
        return Finding("database", Health.FAIL, f"reachable, PostgreSQL {version}, which is too old.", remedy)
    if major > NEWEST:
        remedy = f"Versions {OLDEST} to {NEWEST} are the ones that Counterfoil was written for."
        return Finding("database", Health.WARN, f"reachable, PostgreSQL {version}, which is newer than tried.", remedy)
    return Finding("database", Health.OK, f"reachable, PostgreSQL {version}.")


def _durability(connection: Connection) -> Finding:
    """An intent that a crash forgets is a call sent twice; a promotion that lacks one needs `recover` (SPEC section
    8)."""
    names = ("fsync", "full_page_writes", "synchronous_commit", "synchronous_standby_names")
    columns = ", ".join(f"current_setting('{name}') AS {name}" for name in names)
    row = connection.execute(
        text(
            f"SELECT {columns}, pg_is_in_recovery() AS standby,"  # noqa: S608  names of ours
            " (SELECT count(*) FROM pg_stat_replication) AS standbys"
        )
    ).one()
    if row.standby:
        remedy = "Use the primary's address; or promote it, then run `counterfoil recover`."
        return Finding("durability", Health.FAIL, "this is a standby that is not promoted.", remedy)
    off = [name for name in ("fsync", "full_page_writes", "synchronous_commit") if getattr(row, name) == "off"]
    if off:
        remedy = "Switch it on: an intent that a crash forgets is a call that is sent twice."
        return Finding("durability", Health.FAIL, f"{', '.join(off)} is off.", remedy)
    if row.standbys and not row.synchronous_standby_names:
        return Finding(
            "durability",
            Health.WARN,
            f"{row.standbys} standby, asynchronous: a promotion may lack what was sent.",
            "Set synchronous_standby_names; or after a promotion run `counterfoil recover`, never with --no-loss.",
        )
    mode = "a synchronous standby" if row.synchronous_standby_names else "no standby"
    return Finding("durability", Health.OK, f"commits are on disk, {mode}.")


def _transactions(connection: Connection) -> Finding:
    """Locks and old snapshots of anybody in this database, as far as this login may see them."""
    row = connection.execute(
        text(
            "SELECT count(*) FILTER (WHERE cardinality(pg_blocking_pids(pid)) > 0"
            " AND clock_timestamp() - state_change > interval '2 s') AS blocked,"
            " coalesce(extract(epoch FROM max(clock_timestamp() - xact_start)), 0)::float8 AS oldest_s,"
            " (array_agg(format('pid %s, %s', pid, coalesce(nullif(application_name, ''), usename))"
            " ORDER BY xact_start))[1] AS who"
            " FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND backend_type = 'client backend' AND xact_start IS NOT NULL"
        )
    ).one()
    if row.oldest_s > LONG_WARN_S:
        return Finding(
            "transactions",
            Health.WARN,
            f"one has been open for {age(row.oldest_s)} ({row.who}).",
            "End it (pg_terminate_backend): it keeps dead rows, and each claim walks over them.",
        )
    if row.blocked:
        remedy = "Look at pg_blocking_pids(pid) in pg_stat_activity; a bump or a migration may be running."
        return Finding("transactions", Health.WARN, f"{row.blocked} wait for a lock.", remedy)
    return Finding("transactions", Health.OK, "none is old, none waits for a lock.")


def _schema(url: str, found: str) -> Finding:
    if found != migrate.head():
        remedy = "Nothing, if this is the release before, after a roll-back; else start the newer one."
        return Finding("schema", Health.WARN, f"version {found}, newer than this release's {migrate.head()}.", remedy)
    differences = migrate.check(url)
    if not differences:
        return Finding("schema", Health.OK, f"version {found}, as this release made it.")
    remedy = "`counterfoil db check` lists them; somebody changed the schema by hand. Undo that."
    return Finding("schema", Health.FAIL, f"version {found}, with {len(differences)} differences.", remedy)


# -- the fleet ---------------------------------------------------------------------------------------------------------


def _epoch(settings: Settings, database: Database) -> Finding:
    """What is configured may be older than the ledger (a container that is started anew after a bump), never newer; of
    generations only the ledger's own joins."""
    found = epochs.current_epoch(database, settings.fleet)
    if settings.generation is not None:
        try:
            generations.join(database, settings.fleet, settings.generation)
        except StaleEpoch as error:
            return failed("epoch", error)
    if settings.epoch in (None, found):
        return Finding("epoch", Health.OK, f"fleet {settings.fleet}, {found}.")
    remedy = (
        "Start workers without COUNTERFOIL_EPOCH, or of the release that is current."
        if settings.epoch < found
        else "The bump that this configuration counts on has not happened: `counterfoil epoch bump --to N`."
    )
    text_ = f"fleet {settings.fleet}, {found}; COUNTERFOIL_EPOCH says {settings.epoch}."
    return Finding("epoch", Health.FAIL, text_, remedy)


def _create(connection: Connection, settings: Settings) -> Finding:
    query = text("SELECT reason FROM counterfoil.control WHERE fleet = :fleet AND NOT create_on")
    row = connection.execute(query, {"fleet": settings.fleet}).one_or_none()
    if row is None:
        return Finding("new work", Health.OK, "taken.")
    remedy = "When the release is well: `counterfoil create on --reason …`."
    return Finding("new work", Health.WARN, f"refused since it was switched off: {row.reason or 'no reason'}.", remedy)


def _clock(connection: Connection, _settings: Settings) -> Finding:
    before_s = time.time()
    ledger_s = float(connection.execute(text("SELECT extract(epoch FROM counterfoil.ledger_now())")).scalar_one())
    # The answer was made somewhere between the two looks at our clock.
    skew_s = max(before_s - ledger_s, ledger_s - time.time(), 0.0)
    if skew_s <= SKEW_WARN_S:
        return Finding("clock", Health.OK, "this machine and the ledger agree.")
    return Finding(
        "clock",
        Health.WARN,
        f"this machine is {skew_s:.0f} s away from the ledger, whose clock decides.",
        "Let both be set by NTP: times in logs and in the journal can't be compared.",
    )


def _beat(connection: Connection, settings: Settings) -> Finding:
    query = text(
        "SELECT extract(epoch FROM counterfoil.ledger_now() - seen_at)::float8 FROM counterfoil.pulse"
        " WHERE fleet = :fleet AND name = 'beat'"
    )
    age_s = connection.execute(query, {"fleet": settings.fleet}).scalar_one_or_none()
    if age_s is not None and age_s <= BEAT_WARN_S:
        return Finding("beat", Health.OK, "ticks reach the workers.")
    if age_s is None and settings.broker_url is None:
        return Finding("beat", Health.OK, "none is needed without a broker.")
    remedy = "Start `counterfoil beat` and a worker; without ticks each worker looks every 5 s by itself."
    told = "no tick has ever reached a worker." if age_s is None else f"the last tick came {age(age_s)} ago."
    return Finding("beat", Health.WARN, told, remedy)


def _lateness(connection: Connection, settings: Settings) -> Finding:
    query = text(
        "SELECT extract(epoch FROM counterfoil.ledger_now() - min(due_at)) FROM counterfoil.wake WHERE fleet = :fleet"
    )
    late_s = float(connection.execute(query, {"fleet": settings.fleet}).scalar_one() or 0.0)
    if late_s <= LATE_WARN_S:
        return Finding("due work", Health.OK, "nothing waits longer than it should.")
    return Finding(
        "due work",
        Health.FAIL if late_s > LATE_FAIL_S else Health.WARN,
        f"the oldest due row has waited for {age(late_s)}.",
        "Is a worker running, with this target in its file and this lane? `counterfoil worker` says what it serves.",
    )


def _closed(connection: Connection, settings: Settings) -> Finding:
    query = text(
        "SELECT target, extract(epoch FROM closed_until - counterfoil.ledger_now())::float8 AS for_s"
        " FROM counterfoil.target_state WHERE fleet = :fleet AND closed_until > counterfoil.ledger_now() ORDER BY 1"
    )
    closed = [f"{row.target} for {age(row.for_s)}" for row in connection.execute(query, _of(settings))]
    if not closed:
        return Finding("closed", Health.OK, "no target has asked for quiet.")
    remedy = "Each opens by itself; if it comes back, lower its `qps` or ask the server's owner."
    return Finding("closed", Health.WARN, f"{', '.join(closed)}.", remedy)


def _webhooks(connection: Connection, settings: Settings) -> Finding:
    query = text(
        "SELECT w.namespace FROM counterfoil.webhook_endpoint AS w JOIN counterfoil.namespace AS n USING (namespace)"
        " WHERE n.fleet = :fleet AND w.stopped_at IS NOT NULL ORDER BY 1"
    )
    stopped = list(connection.execute(query, _of(settings)).scalars())
    if not stopped:
        return Finding("endpoints", Health.OK, "no webhook was given up.")
    remedy = "Mend the receiver, then `counterfoil webhooks resume NAMESPACE`."
    return Finding("endpoints", Health.WARN, f"given up: {', '.join(stopped)}.", remedy)


def _months(connection: Connection, _settings: Settings) -> Finding:
    query = text(
        "SELECT to_char(min(until_at), 'YYYY-MM-DD') AS until,"
        " min(until_at) < counterfoil.ledger_now() + interval '7 days' AS soon"
        " FROM (SELECT max(until_at) AS until_at FROM counterfoil.partition GROUP BY parent) AS p"
    )
    row = connection.execute(query).one()
    if not row.soon:
        return Finding("months", Health.OK, f"of journal and evidence, prepared until {row.until}.")
    remedy = "Workers prepare them, twice an hour; `counterfoil db upgrade` does it too."
    return Finding("months", Health.WARN, f"of journal and evidence, prepared until {row.until} only.", remedy)


def _cases(connection: Connection, settings: Settings) -> Finding:
    query = text(
        "SELECT c.code, count(*) FROM counterfoil.reconciliation_case AS c JOIN counterfoil.operation AS o"
        " ON o.id = c.operation_id WHERE c.closed_at IS NULL AND o.fleet = :fleet GROUP BY c.code ORDER BY c.code"
    )
    counts = [f"{number} {code}" for code, number in connection.execute(query, _of(settings))]
    if not counts:
        return Finding("open cases", Health.OK, "none.")
    remedy = "Somebody has to speak: `counterfoil cases list`, then `counterfoil cases show` for what to search for."
    return Finding("open cases", Health.WARN, f"{', '.join(counts)}.", remedy)


def _orphans(connection: Connection, settings: Settings) -> Finding:
    found = find_orphans(connection, settings.fleet)
    if not found:
        return Finding("orphans", Health.OK, "none: every open operation is due, or asks a person.")
    oldest = found[0]
    return Finding(
        "orphans",
        Health.FAIL,
        f"{len(found)}, the oldest is call node {oldest.call_node_id} ({oldest.lane}): {oldest.why}.",
        "With a worker running this must be none: start one; if it stays, `counterfoil orphans` shows all; report it.",
    )


def _of(settings: Settings) -> dict[str, Any]:
    return {"fleet": settings.fleet}


_LOOKS: tuple[Callable[[Connection, Settings], Finding], ...] = (
    *(_create, _clock, _beat, _lateness, _closed),
    *(_webhooks, _months, _cases, _orphans),
)
