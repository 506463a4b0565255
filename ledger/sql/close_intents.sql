-- End the open intent of one effect, under the operation's lock.
UPDATE counterfoil.intent AS i
SET closed_at = (SELECT counterfoil.ledger_now()), how = v.how
FROM unnest(CAST(:ids AS uuid[]), CAST(:effects AS text[]), CAST(:hows AS text[])) AS v(id, effect, how)
WHERE i.operation_id = v.id AND i.effect = v.effect AND i.closed_at IS NULL
