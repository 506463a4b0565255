"""Generations: which release a fleet is."""

from importlib.resources import files

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    statements = files("counterfoil.ledger.migrations").joinpath("tables_0004.sql").read_text(encoding="utf-8")
    op.get_bind().exec_driver_sql(statements, execution_options={"no_parameters": True})


def downgrade() -> None:
    raise RuntimeError("the ledger only goes forward: receipts are for ever. Restore a backup instead.")
