"""The real ledger that every run works on: one PostgreSQL, one database a process, a fleet of its own for each run.

No DDL and no reset a run: a run's rows bear its tag, and nothing of it is read by another one. The ledger's clock is
frozen and moved by hand, always from the same instant on.
"""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from psycopg import sql
from sqlalchemy import event
from sqlalchemy.engine import make_url

from counterfoil.console import devstack
from counterfoil.console.devstack import DevStack
from counterfoil.ledger import migrate
from counterfoil.ledger.database import Database

BASE = "2026-12-01T10:00:00+00:00"
BASE_MS = 1_796_119_200_000

SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",  # plans must not change in the middle: the order of rows hangs on them
    "deadlock_timeout": "200ms",
    "max_connections": "60",
    "track_activities": "off",
    "track_counts": "off",
    "compute_query_id": "off",
}
"""Nothing here is about durability: it is about orderings."""

OF_A_SESSION = {
    # The product's limits are real time, which here is the scheduler's: only waits that it sees may end a statement.
    "idle_in_transaction_session_timeout": "0",
    "statement_timeout": "0",
    "lock_timeout": "0",
    # A plan is made once, when its tables are still empty: by the indexes, that it stays a good one.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "jit": "off",
}


@contextmanager
def server() -> Iterator[DevStack]:
    """A PostgreSQL of our own, gone with the block."""
    with tempfile.TemporaryDirectory(prefix="counterfoil-sim-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # as root, Postgres's account must be able to pass
        places = (folder / "state", folder / "data")
        with DevStack(places[0], root_data_dir=places[1], migrate=False, servers=("postgres",), environ={}) as stack:
            with psycopg.connect(superuser_url(stack), autocommit=True) as connection:
                for setting, value in SETTINGS.items():
                    connection.execute(
                        sql.SQL("ALTER SYSTEM SET {} = {}").format(sql.Identifier(setting), sql.Literal(value))
                    )
                connection.execute("SELECT pg_reload_conf()")
            yield stack
        devstack.reset(places[0], root_data_dir=places[1])


def superuser_url(stack: DevStack) -> str:
    """The URL of somebody who may make databases."""
    url = make_url(stack.superuser_url or stack.database_url).set(drivername="postgresql")
    return url.render_as_string(hide_password=False)


def make_template(stack: DevStack, name: str) -> str:
    """A migrated database to copy from; its URL."""
    url = create_database(superuser_url(stack), stack.database_url, name)
    migrate.upgrade(url)
    return url


def create_database(superuser: str, like: str, name: str, template: str = "template1") -> str:
    """A new database for the user of `like`; its URL."""
    url = make_url(like)
    with psycopg.connect(superuser, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER {}").format(
                sql.Identifier(name), sql.Identifier(template), sql.Identifier(url.username or "")
            )
        )
    return url.set(database=name).render_as_string(hide_password=False)


class LedgerDb:
    """One database: the product's pool, and the owner's eyes and hand on the clock."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.database = Database(url, pool_size=12)
        event.listen(self.database._engine, "connect", _settle)
        self.owner: psycopg.Connection[Any] = psycopg.connect(
            url.replace("postgresql+psycopg://", "postgresql://"), autocommit=True
        )
        _settle(self.owner)
        self.owner.execute("SET ROLE counterfoil_owner")
        self.owner.execute("DELETE FROM counterfoil.ledger_clock")
        self.owner.execute("INSERT INTO counterfoil.ledger_clock (frozen_at) VALUES (%s)", (BASE,))
        self.ledger_id: UUID = self._one("SELECT ledger_id FROM counterfoil.ledger_identity")
        self.now_s = self._at_s = 0.0
        self._tables = self._find_tables()

    def close(self) -> None:
        self.owner.close()
        self.database.dispose()

    def _one(self, query: Any, arguments: tuple[Any, ...] = ()) -> Any:
        row = self.owner.execute(query, arguments).fetchone()
        assert row is not None
        return row[0]

    # -- the clock ---------------------------------------------------------------------------------------------------

    def at(self, now_s: float) -> None:
        """It is so many seconds after the run's begin. The ledger is told by `tell_time`, when somebody asks it."""
        self.now_s = now_s

    def tell_time(self) -> None:
        """Set the ledger's clock."""
        now_s = self.now_s
        if now_s != self._at_s:
            self._at_s = now_s
            self.owner.execute(
                "UPDATE counterfoil.ledger_clock SET frozen_at = %s::timestamptz + make_interval(secs => %s)",
                (BASE, now_s),
            )

    # -- rows of one run ---------------------------------------------------------------------------------------------

    def _find_tables(self) -> dict[str, str]:
        """Each table of the schema with the column by which a run's rows are found; of a partitioned one the whole."""
        found = self.owner.execute(
            "SELECT relname, attname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid"
            " WHERE relnamespace = 'counterfoil'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition"
            " AND attnum > 0 AND NOT attisdropped"
        ).fetchall()
        columns: dict[str, set[str]] = {}
        for table, column in found:
            columns.setdefault(table, set()).add(column)
        keys = ("fleet", "namespace", "operation_id")
        return {
            table: next(key for key in keys if key in names)
            for table, names in sorted(columns.items())
            if names & set(keys)
        }

    def dump(self, tag: str) -> str:
        """Every row of a run, as the text of a JSON object: table -> rows."""
        fleet, namespace = fleet_of(tag), namespace_of(tag)
        operations = [
            row[0]
            for row in self.owner.execute("SELECT id FROM counterfoil.operation WHERE fleet = %s", (fleet,)).fetchall()
        ]
        of = {"fleet": [fleet], "namespace": [namespace], "operation_id": operations}
        dumped = {}
        for table, key in self._tables.items():
            rows = self.owner.execute(
                sql.SQL("SELECT to_jsonb(t)::text FROM counterfoil.{} AS t WHERE {} = ANY(%s)").format(
                    sql.Identifier(table), sql.Identifier(key)
                ),
                (of[key],),
            ).fetchall()
            if rows:
                dumped[table] = [row[0] for row in rows]
        return json.dumps({table: "[" + ",".join(rows) + "]" for table, rows in dumped.items()})

    def load(self, dumped: str) -> None:
        """Insert what `dump` made (with other names in it)."""
        tables: dict[str, str] = json.loads(dumped)
        parts, arguments = [], []
        for table, rows in tables.items():
            name = sql.Identifier(table)
            parts.append(
                sql.SQL(
                    "{} AS (INSERT INTO counterfoil.{} SELECT * FROM"
                    " jsonb_populate_recordset(NULL::counterfoil.{}, %s::jsonb))"
                ).format(name, name, name)
            )
            arguments.append(rows)
        self.owner.execute(sql.SQL("WITH {} SELECT 1").format(sql.SQL(", ").join(parts)), arguments)

    def take_over(self, dumped: str, primary: "LedgerDb") -> None:
        """Be what was a standby of `primary`, with these rows of a run."""
        for table in ("tool_policy", "tool_descriptor"):
            rows = primary._one(
                sql.SQL("SELECT jsonb_agg(to_jsonb(t))::text FROM counterfoil.{} AS t").format(sql.Identifier(table))
            )
            if rows is not None:
                name = sql.Identifier(table)
                self.owner.execute(
                    sql.SQL(
                        "INSERT INTO counterfoil.{} SELECT * FROM"
                        " jsonb_populate_recordset(NULL::counterfoil.{}, %s::jsonb) ON CONFLICT DO NOTHING"
                    ).format(name, name),
                    (rows,),
                )
        self.load(dumped)
        last = primary._one("SELECT last_value FROM counterfoil.read_seq")
        self._one("SELECT setval('counterfoil.read_seq', greatest(%s, nextval('counterfoil.read_seq')))", (last,))

    def open_fleet(self, tag: str, target: str, protocol: str) -> None:
        """An empty fleet with one announced target."""
        self.tell_time()
        fleet = fleet_of(tag)
        self.owner.execute(
            "INSERT INTO counterfoil.execution_epoch (fleet, epoch, system_identifier, timeline)"
            " SELECT %s, 1, system_identifier, timeline FROM counterfoil.execution_epoch WHERE fleet = 'main'",
            (fleet,),
        )
        self.owner.execute("INSERT INTO counterfoil.control (fleet) VALUES (%s)", (fleet,))
        self.owner.execute(
            "INSERT INTO counterfoil.target_state (fleet, target, protocol) VALUES (%s, %s, %s)",
            (fleet, target, protocol),
        )


def _settle(connection: Any, _record: Any = None) -> None:
    """Settings of a session; and each statement is prepared when it is first executed, and for good: psycopg forgets
    all of them at a rollback, lest a schema was rolled back (15 % of a run's time)."""
    was, connection.autocommit = connection.autocommit, True
    connection.execute(
        "SELECT set_config(name, value, false) FROM unnest(%s::text[], %s::text[]) AS v(name, value)",
        (list(OF_A_SESSION), list(OF_A_SESSION.values())),
    )
    connection.autocommit = was
    connection.prepare_threshold, connection.prepared_max = 0, None
    connection._prepared.clear = lambda: False


def fleet_of(tag: str) -> str:
    return f"fleet-{tag}"


def namespace_of(tag: str) -> str:
    return f"space-{tag}"
