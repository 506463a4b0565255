"""The glue: Celery, settings, targets, token bucket and the loop that brings ledger and adapters together."""
