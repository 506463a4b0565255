-- Read by whom it concerns.
UPDATE counterfoil.notice SET acked_at = counterfoil.ledger_now()
WHERE namespace = :namespace AND id = ANY(CAST(:ids AS uuid[])) AND acked_at IS NULL
RETURNING id
