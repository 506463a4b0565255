-- Evidence moved the operation on, so the question is answered.
UPDATE counterfoil.reconciliation_case AS c
SET closed_at = counterfoil.ledger_now(), closed_by = :by, version = c.version + 1
FROM unnest(CAST(:ids AS uuid[]), CAST(:kinds AS text[])) AS v(id, kind)
WHERE c.operation_id = v.id AND c.kind = v.kind AND c.closed_at IS NULL
