"""The ledger: tables, functions, triggers, grants."""

from importlib.resources import files

from alembic import op

revision = "0001"
down_revision = None

SQL = files("counterfoil.ledger.migrations")


def upgrade() -> None:
    for name in ("tables_0001.sql", "functions_0001.sql"):
        statements = SQL.joinpath(name).read_text(encoding="utf-8")
        op.get_bind().exec_driver_sql(statements, execution_options={"no_parameters": True})


def downgrade() -> None:
    raise RuntimeError("the ledger only goes forward: receipts are for ever. Restore a backup instead.")
