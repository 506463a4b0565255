-- Where decisions left rounds. Operations are locked by this transaction, so nobody else writes them. A reply is stored once.
UPDATE counterfoil.input_round AS r
SET state = v.state, sends = v.sends,
    reply = coalesce(r.reply, v.reply),
    replied_by = coalesce(r.replied_by, v.actor),
    replied_at = CASE WHEN r.reply IS NULL AND v.reply IS NOT NULL THEN counterfoil.ledger_now() ELSE r.replied_at END,
    closed_at = CASE WHEN v.state = 'closed' THEN counterfoil.ledger_now() END,
    how = CASE WHEN v.state = 'closed' THEN v.how END
FROM (
    SELECT unnest(CAST(:ids AS uuid[])) AS id, unnest(CAST(:numbers AS int[])) AS number, unnest(CAST(:states AS text[])) AS state,
        unnest(CAST(:sends AS int[])) AS sends, unnest(CAST(:hows AS text[])) AS how, unnest(CAST(:replies AS bytea[])) AS reply,
        unnest(CAST(:actors AS text[])) AS actor
) AS v
WHERE r.operation_id = v.id AND r.number = v.number
