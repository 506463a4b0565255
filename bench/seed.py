"""Operations in flight by the million: one that a fleet brought there itself is copied, set by set, as the owner.

Everything that a WORKING operation has is copied with it (register, intent, evidence, journal, wake rows), so tables
and indexes are as large as they would be. Only ids, keys and due moments are new.
"""

from psycopg import Connection, sql

from ..workers.holdings import JITTER
from .remote import SEEDED

CHUNK = 100_000

_ID = sql.SQL("(%(kind)s || lpad(to_hex(n), 30, '0'))::uuid")
"""Ascending, as the ledger's own version 7 ids are."""

_NEW = {
    "operation": {
        "id": _ID,
        "call_node_id": sql.SQL("'seeded/' || n"),
        "submission_key": sql.SQL("gen_random_uuid()"),
        "task_id": sql.SQL("%(seeded)s || n"),
    },
    "call_node": {"call_node_id": sql.SQL("'seeded/' || n"), "operation_id": _ID},
    "intent": {"send_token": sql.SQL("gen_random_uuid()"), "operation_id": _ID},
    "evidence": {"id": sql.SQL("gen_random_uuid()"), "operation_id": _ID},
    "journal": {"operation_id": _ID},
    "wake": {
        "operation_id": _ID,
        "due_at": sql.SQL(
            "CASE WHEN one.lane = 'poll'"
            " THEN counterfoil.ledger_now() + make_interval(secs => %(interval_s)s"
            " * mod((n / %(count)s::float8 + %(jitter)s * random())::numeric, 1)::float8) ELSE one.due_at END"
        ),
    },
}
_WHOSE = {"operation": "id"}


def seed(connection: Connection[object], call: str, count: int, interval_s: float) -> None:
    """Copy the operation of this call node `count` times. Polls become due over the next `interval_s` seconds, in the
    order of their submits but for the jitter. The tables are vacuumed afterwards, as they would have been long before a
    ledger is so full."""
    row = connection.execute("SELECT id FROM counterfoil.operation WHERE call_node_id = %s", (call,)).fetchone()
    assert isinstance(row, tuple)
    for table, new in _NEW.items():
        statement = _copy(connection, table, new)
        for first in range(1, count + 1, CHUNK):
            last = min(first + CHUNK - 1, count)
            values = {
                "kind": "01",
                "seeded": SEEDED,
                "interval_s": interval_s,
                "count": count,
                "jitter": JITTER,
                "first": first,
                "last": last,
                "template": row[0],
            }
            connection.execute(statement, values)
        connection.execute(sql.SQL("VACUUM (ANALYZE) counterfoil.{}").format(sql.Identifier(table)))
    connection.execute("CHECKPOINT")


def _copy(connection: Connection[object], table: str, new: dict[str, sql.SQL]) -> sql.Composed:
    rows = connection.execute(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = 'counterfoil' AND table_name = %s"
        " AND is_generated = 'NEVER' ORDER BY ordinal_position",
        (table,),
    ).fetchall()
    names = [str(row[0]) for row in rows if isinstance(row, tuple)]
    columns = sql.SQL(", ").join(map(sql.Identifier, names))
    values = sql.SQL(", ").join(new.get(name, sql.SQL("one.{}").format(sql.Identifier(name))) for name in names)
    return sql.SQL(
        "INSERT INTO counterfoil.{table} ({columns}) SELECT {values} FROM counterfoil.{table} AS one,"
        " generate_series(%(first)s::int, %(last)s::int) AS n WHERE one.{whose} = %(template)s"
    ).format(
        table=sql.Identifier(table),
        columns=columns,
        values=values,
        whose=sql.Identifier(_WHOSE.get(table, "operation_id")),
    )
