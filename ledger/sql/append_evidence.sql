-- What a server said, exact bytes. Fenced by nothing on purpose: the bearer may have lost its lease, its generation or its epoch,
-- and the answer to a submit is the only handle on the remote task. `due` wakes nothing: the sweep finds it.
INSERT INTO counterfoil.evidence
    (id, fleet, operation_id, kind, attempt, generation, send_token, epoch, status, headers, body, seq, received_at)
SELECT v.id, :fleet, v.operation_id, v.kind, v.attempt, v.generation, v.send_token, :epoch, v.status, CAST(v.headers AS jsonb), v.body, v.seq,
    (SELECT counterfoil.ledger_now())
FROM unnest(CAST(:ids AS uuid[]), CAST(:operations AS uuid[]), CAST(:kinds AS text[]), CAST(:attempts AS int[]),
    CAST(:generations AS int[]), CAST(:send_tokens AS uuid[]), CAST(:statuses AS int[]), CAST(:headers AS text[]), CAST(:bodies AS bytea[]),
    CAST(:seqs AS int8[]))
    AS v(id, operation_id, kind, attempt, generation, send_token, status, headers, body, seq)
ON CONFLICT (id) DO NOTHING
