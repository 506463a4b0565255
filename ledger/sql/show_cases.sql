-- The cases of operations, open and closed, the oldest first.
SELECT c.operation_id, c.id, c.kind, c.code, c.why, c.version, c.opened_at, c.closed_at, c.closed_by, c.verdict, c.reason, c.second_actor
FROM counterfoil.reconciliation_case AS c
WHERE c.operation_id = ANY(CAST(:ids AS uuid[]))
ORDER BY c.opened_at, c.id
