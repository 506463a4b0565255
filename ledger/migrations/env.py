"""Alembic environment, run in-process by `ledger/migrate.py`: the connection comes in the config, nothing is read
from files."""

from alembic import context

from counterfoil.ledger.tables import SCHEMA

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    version_table_schema=SCHEMA,
)
with context.begin_transaction():
    context.run_migrations()
