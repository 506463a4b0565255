-- End the open intent of one effect, under the operation's lock.
UPDATE counterfoil.intent AS i
SET closed_at = (SELECT counterfoil.ledger_now()), how = v.how
FROM (SELECT unnest(CAST(:ids AS uuid[])) AS id, unnest(CAST(:effects AS text[])) AS effect, unnest(CAST(:hows AS text[])) AS how) AS v
WHERE i.operation_id = v.id AND i.effect = v.effect AND i.closed_at IS NULL
