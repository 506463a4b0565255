"""Alembic's scripts. SQL stands in files beside them, frozen once released; `tables.py` is held against the result
in CI."""
