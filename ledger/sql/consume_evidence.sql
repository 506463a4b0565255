-- Mark evidence as consumed, under the lock of its operation. The sub-SELECT hides how many there are, as in lock_operations.sql.
UPDATE counterfoil.evidence SET consumed_at = (SELECT counterfoil.ledger_now())
WHERE id = ANY((SELECT CAST(:ids AS uuid[]))::uuid[]) AND consumed_at IS NULL
