"""Journal and evidence by month, what a reader of metrics may see, when beat was heard of, which releases may work."""

from importlib.resources import files

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    migrations = files("counterfoil.ledger.migrations")
    for name in ("partitions_0005.sql", "tables_0005.sql"):
        statements = migrations.joinpath(name).read_text(encoding="utf-8")
        op.get_bind().exec_driver_sql(statements, execution_options={"no_parameters": True})


def downgrade() -> None:
    raise RuntimeError("the ledger only goes forward: receipts are for ever. Restore a backup instead.")
