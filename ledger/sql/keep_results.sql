-- A result that breaks its schema is nobody's success; it is kept, consumed already, for the person who may accept it all the same.
INSERT INTO counterfoil.evidence
    (id, fleet, operation_id, kind, attempt, generation, epoch, status, headers, body, received_at, consumed_at)
SELECT v.id, :fleet, v.operation_id, 'result', 0, 0, :epoch, 200, jsonb_build_object('pointer', v.pointer), v.body, counterfoil.ledger_now(), counterfoil.ledger_now()
FROM (
    SELECT unnest(CAST(:ids AS uuid[])) AS id, unnest(CAST(:operations AS uuid[])) AS operation_id,
        unnest(CAST(:bodies AS bytea[])) AS body, unnest(CAST(:pointers AS text[])) AS pointer
) AS v
