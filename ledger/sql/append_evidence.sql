-- What a server said, exact bytes. Fenced by nothing on purpose: the bearer may have lost its lease, its generation or its epoch,
-- and the answer to a submit is the only handle on the remote task. `due` wakes nothing: the sweep finds it.
INSERT INTO counterfoil.evidence
    (id, fleet, operation_id, kind, attempt, generation, send_token, epoch, status, headers, body, seq, received_at)
SELECT v.id, :fleet, v.operation_id, v.kind, v.attempt, v.generation, v.send_token, :epoch, v.status, CAST(v.headers AS jsonb), v.body, v.seq,
    (SELECT counterfoil.ledger_now())
FROM (
    SELECT unnest(CAST(:ids AS uuid[])) AS id, unnest(CAST(:operations AS uuid[])) AS operation_id,
        unnest(CAST(:kinds AS text[])) AS kind, unnest(CAST(:attempts AS int[])) AS attempt,
        unnest(CAST(:generations AS int[])) AS generation, unnest(CAST(:send_tokens AS uuid[])) AS send_token,
        unnest(CAST(:statuses AS int[])) AS status, unnest(CAST(:headers AS text[])) AS headers,
        unnest(CAST(:bodies AS bytea[])) AS body, unnest(CAST(:seqs AS int8[])) AS seq
) AS v
ON CONFLICT (id) DO NOTHING
