-- One line a step, note, case or refusal, numbered under the operation's lock.
INSERT INTO counterfoil.journal (operation_id, seq, at, epoch, actor, event, source, target, lane, code, why)
SELECT v.id, v.seq, (SELECT counterfoil.ledger_now()), :epoch, :actor, v.event, v.source, v.target, v.lane, v.code, v.why
FROM (
    SELECT unnest(CAST(:ids AS uuid[])) AS id, unnest(CAST(:seqs AS int[])) AS seq, unnest(CAST(:events AS text[])) AS event,
        unnest(CAST(:sources AS text[])) AS source, unnest(CAST(:targets AS text[])) AS target, unnest(CAST(:lanes AS text[])) AS lane,
        unnest(CAST(:codes AS text[])) AS code, unnest(CAST(:whys AS text[])) AS why
) AS v
