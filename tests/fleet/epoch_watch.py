"""Which writes of an older epoch committed after a bump: judged by PostgreSQL's own order, in every table that bears an
epoch, and not by clocks."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql

ALLOWED = {("evidence", "epoch"), ("refused_write", "epoch")}
"""What a server said, and what was refused: an older epoch may append these."""

WATCHED = {
    ("intent", "epoch"): "INSERT",
    ("journal", "epoch"): "INSERT",
    ("operation", "execution_epoch"): "INSERT OR UPDATE",
    ("terminal_receipt", "execution_epoch"): "INSERT",
    ("wake", "lease_epoch"): "INSERT OR UPDATE",
}
"""The epoch of the writer, and which writes bear it: an intent of the old epoch is closed by the new one."""

THE_EPOCH = {("execution_epoch", "epoch")}

# A wake row keeps its dead lease when somebody else moves its moment: only a claim or a renewal is the leaseholder's.
_LOG = """
CREATE TABLE counterfoil.drill_write (epoch bigint, kind text, transaction xid8);
CREATE TABLE counterfoil.drill_bump (epoch bigint, ended pg_snapshot);
CREATE FUNCTION counterfoil.drill_write() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF TG_OP = 'INSERT' OR TG_ARGV[1] <> 'wake'
        OR to_jsonb(NEW) ->> 'lease_until' IS DISTINCT FROM to_jsonb(OLD) ->> 'lease_until'
        OR to_jsonb(NEW) ->> 'lease_token' IS DISTINCT FROM to_jsonb(OLD) ->> 'lease_token'
    THEN
        INSERT INTO counterfoil.drill_write
        VALUES ((to_jsonb(NEW) ->> TG_ARGV[0])::bigint, TG_ARGV[1], pg_current_xact_id());
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION counterfoil.drill_bump() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO counterfoil.drill_bump VALUES (NEW.epoch, pg_current_snapshot());
    RETURN NULL;
END $$;
CREATE TRIGGER drill AFTER UPDATE ON counterfoil.execution_epoch FOR EACH ROW EXECUTE FUNCTION counterfoil.drill_bump()
"""

_LATE = """
SELECT w.kind, count(*) FROM counterfoil.drill_write AS w JOIN counterfoil.drill_bump AS b ON b.epoch > w.epoch
WHERE NOT pg_visible_in_snapshot(w.transaction, b.ended) GROUP BY w.kind
"""

_BEARERS = """
SELECT c.table_name, c.column_name FROM information_schema.columns AS c
JOIN information_schema.tables AS t USING (table_schema, table_name)
WHERE c.table_schema = 'counterfoil' AND c.column_name LIKE '%epoch%' AND t.table_type = 'BASE TABLE'
    AND c.table_name NOT LIKE 'drill%'
    AND NOT (SELECT relispartition FROM pg_class WHERE oid = format('counterfoil.%I', c.table_name)::regclass)
"""


class Watch:
    """The watch over one ledger, begun before the bump."""

    def __init__(self, owner: psycopg.Connection[Any]) -> None:
        self._owner = owner
        bearers = set(owner.execute(_BEARERS))
        assert bearers == WATCHED.keys() | ALLOWED | THE_EPOCH, "a table bears an epoch, and nobody watches it"
        for statement in _LOG.split(";\n\n"):
            owner.execute(statement.encode())
        for (table, column), writes in WATCHED.items():
            trigger = (
                "CREATE TRIGGER drill AFTER {} ON counterfoil.{} FOR EACH ROW"
                " EXECUTE FUNCTION counterfoil.drill_write({}, {})"
            )
            names = sql.Literal(column), sql.Literal(table)  # in a partition the trigger sees the partition's name
            owner.execute(sql.SQL(trigger).format(sql.SQL(writes), sql.Identifier(table), *names))

    def late_writes(self) -> dict[str, int]:
        """Writes of older epochs that were not committed when the bump was, by table."""
        return dict(self._owner.execute(_LATE).fetchall())

    def written(self, epoch: int) -> dict[str, int]:
        """How many writes an epoch made, by table: a watch that saw none proves nothing."""
        query = "SELECT kind, count(*) FROM counterfoil.drill_write WHERE epoch = %s GROUP BY kind"
        return dict(self._owner.execute(query, (epoch,)).fetchall())

    def one(self, query: str, *parameters: object) -> Any:
        """One value, as the owner of the schema sees it."""
        row = self._owner.execute(query.encode(), parameters).fetchone()
        assert row is not None
        return row[0]

    def refused(self) -> dict[str, int]:
        """Refused writes that were kept, by what was tried."""
        query = "SELECT what, count(*) FROM counterfoil.refused_write GROUP BY what"
        return dict(self._owner.execute(query).fetchall())


@contextmanager
def watching(database_url: str) -> Iterator[Watch]:
    plain = database_url.replace("postgresql+psycopg://", "postgresql://")
    with psycopg.connect(plain, autocommit=True) as owner:
        owner.execute("SET ROLE counterfoil_owner")
        yield Watch(owner)
