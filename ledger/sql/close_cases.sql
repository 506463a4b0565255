-- The question is answered: evidence moved the operation on (no verdict), or a person spoke.
UPDATE counterfoil.reconciliation_case AS c
SET closed_at = counterfoil.ledger_now(), closed_by = v.by, verdict = v.verdict, reason = v.reason, second_actor = v.second,
    version = c.version + 1
FROM (
    SELECT unnest(CAST(:ids AS uuid[])) AS id, unnest(CAST(:kinds AS text[])) AS kind, unnest(CAST(:by AS text[])) AS by,
        unnest(CAST(:verdicts AS text[])) AS verdict, unnest(CAST(:reasons AS text[])) AS reason,
        unnest(CAST(:seconds AS text[])) AS second
) AS v
WHERE c.operation_id = v.id AND c.kind = v.kind AND c.closed_at IS NULL
