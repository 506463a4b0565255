-- A question for a person, once per kind and code while open. A recorded-only case is closed at birth by its own evidence.
INSERT INTO counterfoil.reconciliation_case (id, operation_id, kind, code, why, opened_at, closed_at, closed_by)
SELECT v.id, v.operation_id, v.kind, v.code, v.why, counterfoil.ledger_now(),
    CASE WHEN v.closed THEN counterfoil.ledger_now() END, CASE WHEN v.closed THEN 'evidence' END
FROM unnest(CAST(:ids AS uuid[]), CAST(:operations AS uuid[]), CAST(:kinds AS text[]), CAST(:codes AS text[]), CAST(:whys AS text[]),
    CAST(:closed AS bool[])) AS v(id, operation_id, kind, code, why, closed)
ON CONFLICT DO NOTHING
