-- Where decisions left rounds. Operations are locked by this transaction, so nobody else writes them. A reply is stored once.
UPDATE counterfoil.input_round AS r
SET state = v.state, sends = v.sends,
    reply = coalesce(r.reply, v.reply),
    replied_by = coalesce(r.replied_by, v.actor),
    replied_at = CASE WHEN r.reply IS NULL AND v.reply IS NOT NULL THEN counterfoil.ledger_now() ELSE r.replied_at END,
    closed_at = CASE WHEN v.state = 'closed' THEN counterfoil.ledger_now() END,
    how = CASE WHEN v.state = 'closed' THEN v.how END
FROM unnest(CAST(:ids AS uuid[]), CAST(:numbers AS int[]), CAST(:states AS text[]), CAST(:sends AS int[]), CAST(:hows AS text[]),
    CAST(:replies AS bytea[]), CAST(:actors AS text[])) AS v(id, number, state, sends, how, reply, actor)
WHERE r.operation_id = v.id AND r.number = v.number
