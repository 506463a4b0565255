"""The two doors of the ledger with fewer statements."""

from importlib.resources import files

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    statements = files("counterfoil.ledger.migrations").joinpath("functions_0006.sql").read_text(encoding="utf-8")
    op.get_bind().exec_driver_sql(statements, execution_options={"no_parameters": True})


def downgrade() -> None:
    raise RuntimeError("the ledger only goes forward: receipts are for ever. Restore a backup instead.")
