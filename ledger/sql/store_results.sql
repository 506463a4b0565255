-- Exact bytes of a result. The first one stored wins; a second reading that differs is a case, decided before we come here.
INSERT INTO counterfoil.operation_result (operation_id, body, pointer, digest, stored_at)
SELECT v.id, v.body, v.pointer, v.digest, (SELECT counterfoil.ledger_now())
FROM (
    SELECT unnest(CAST(:ids AS uuid[])) AS id, unnest(CAST(:bodies AS bytea[])) AS body, unnest(CAST(:pointers AS text[])) AS pointer,
        unnest(CAST(:digests AS bytea[])) AS digest
) AS v
ON CONFLICT (operation_id) DO NOTHING
