-- Exact bytes of a result. The first one stored wins; a second reading that differs is a case, decided before we come here.
INSERT INTO counterfoil.operation_result (operation_id, body, pointer, digest, stored_at)
SELECT v.id, v.body, v.pointer, v.digest, (SELECT counterfoil.ledger_now())
FROM unnest(CAST(:ids AS uuid[]), CAST(:bodies AS bytea[]), CAST(:pointers AS text[]), CAST(:digests AS bytea[]))
    AS v(id, body, pointer, digest)
ON CONFLICT (operation_id) DO NOTHING
