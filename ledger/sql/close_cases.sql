-- The question is answered: evidence moved the operation on (no verdict), or a person spoke.
UPDATE counterfoil.reconciliation_case AS c
SET closed_at = counterfoil.ledger_now(), closed_by = v.by, verdict = v.verdict, reason = v.reason, second_actor = v.second,
    version = c.version + 1
FROM unnest(CAST(:ids AS uuid[]), CAST(:kinds AS text[]), CAST(:by AS text[]), CAST(:verdicts AS text[]), CAST(:reasons AS text[]),
    CAST(:seconds AS text[])) AS v(id, kind, by, verdict, reason, second)
WHERE c.operation_id = v.id AND c.kind = v.kind AND c.closed_at IS NULL
