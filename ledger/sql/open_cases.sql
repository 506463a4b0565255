-- A question for a person, once per kind and code while open. A recorded-only case is closed at birth by its own evidence.
INSERT INTO counterfoil.reconciliation_case (id, operation_id, kind, code, why, opened_at, closed_at, closed_by)
SELECT v.id, v.operation_id, v.kind, v.code, v.why, counterfoil.ledger_now(),
    CASE WHEN v.closed THEN counterfoil.ledger_now() END, CASE WHEN v.closed THEN 'evidence' END
FROM (
    SELECT unnest(CAST(:ids AS uuid[])) AS id, unnest(CAST(:operations AS uuid[])) AS operation_id,
        unnest(CAST(:kinds AS text[])) AS kind, unnest(CAST(:codes AS text[])) AS code, unnest(CAST(:whys AS text[])) AS why,
        unnest(CAST(:closed AS bool[])) AS closed
) AS v
ON CONFLICT DO NOTHING
