"""Input rounds, verdicts, audits, adapter modes, canary and shadow."""

from importlib.resources import files

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    migrations = files("counterfoil.ledger.migrations")
    for name in ("tables_0003.sql", "functions_0003.sql"):
        statements = migrations.joinpath(name).read_text(encoding="utf-8")
        op.get_bind().exec_driver_sql(statements, execution_options={"no_parameters": True})


def downgrade() -> None:
    raise RuntimeError("the ledger only goes forward: receipts are for ever. Restore a backup instead.")
