-- A result that breaks its schema is nobody's success; it is kept, consumed already, for the person who may accept it all the same.
INSERT INTO counterfoil.evidence
    (id, fleet, operation_id, kind, attempt, generation, epoch, status, headers, body, received_at, consumed_at)
SELECT v.id, :fleet, v.operation_id, 'result', 0, 0, :epoch, 200, jsonb_build_object('pointer', v.pointer), v.body, counterfoil.ledger_now(), counterfoil.ledger_now()
FROM unnest(CAST(:ids AS uuid[]), CAST(:operations AS uuid[]), CAST(:bodies AS bytea[]), CAST(:pointers AS text[]))
    AS v(id, operation_id, body, pointer)
