-- What stands beside operations: open intents and cases, and all input rounds (a key that was answered once is never asked again),
-- one row each. Written only under the operation's lock.
SELECT 'intent' AS sort, i.operation_id, i.send_token, i.effect AS kind, i.attempt, i.generation, NULL AS code,
    extract(epoch FROM i.send_by - (SELECT counterfoil.ledger_now()))::float8 AS send_left_s,
    extract(epoch FROM i.answer_by - (SELECT counterfoil.ledger_now()))::float8 AS answer_left_s
FROM counterfoil.intent AS i
WHERE i.operation_id = ANY(CAST(:ids AS uuid[])) AND i.closed_at IS NULL
UNION ALL
SELECT 'case', c.operation_id, NULL, c.kind, 0, 0, c.code,
    extract(epoch FROM (SELECT counterfoil.ledger_now()) - c.opened_at)::float8, 0
FROM counterfoil.reconciliation_case AS c
WHERE c.operation_id = ANY(CAST(:ids AS uuid[])) AND c.closed_at IS NULL
UNION ALL
SELECT 'round', r.operation_id, NULL, r.key, r.number, r.sends, r.state, 0, r.leg
FROM counterfoil.input_round AS r
WHERE r.operation_id = ANY(CAST(:ids AS uuid[]))
