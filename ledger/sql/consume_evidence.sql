-- Mark evidence as consumed, under the lock of its operation.
UPDATE counterfoil.evidence SET consumed_at = (SELECT counterfoil.ledger_now())
WHERE id = ANY(CAST(:ids AS uuid[])) AND consumed_at IS NULL
