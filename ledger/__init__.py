"""The ledger: one PostgreSQL schema that holds every operation, and the pure machine that says how it may move."""
