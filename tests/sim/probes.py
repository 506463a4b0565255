"""What no ordering shows, asked of the database itself."""

from counterfoil.ledger.database import statement

from .ledgerdb import LedgerDb


def probe(db: LedgerDb) -> list[str]:
    """Violations that stand in a plan, not in a run."""
    return due_rows_are_found_by_the_index(db)


def due_rows_are_found_by_the_index(db: LedgerDb) -> list[str]:
    """Claims ask the clock once, not for every row: the due moment is a bound of the index (0.01 ms, not 3.7)."""
    arguments = {
        "fleet": "main",
        "epoch": 1,
        "lane": "poll",
        "target": "srv",
        "ahead_s": 0.0,
        "limit": 10,
        "token": "00000000-0000-4000-8000-000000000000",
        "lease_s": 1.0,
    }
    with db.database.begin() as connection:
        connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        explained = statement("claim").text
        plan = connection.execute(_explain(explained), arguments).scalars().all()
    bounds = [line for line in plan if "Index Cond" in line and "due_at <=" in line]
    return [] if bounds else ["due_rows_are_found_by_the_index: the claim's plan filters by due_at row by row"]


def _explain(query: str):  # type: ignore[no-untyped-def]
    from sqlalchemy import text

    return text(f"EXPLAIN {query}")
