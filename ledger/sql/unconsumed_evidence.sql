-- Evidence that no transition has consumed, oldest first. Read under the operation's lock, so it is consumed once.
SELECT e.id, e.operation_id, e.kind, e.attempt, e.generation, e.send_token, e.epoch, e.status, e.headers, e.body, e.seq
FROM counterfoil.evidence AS e
WHERE e.operation_id = ANY(CAST(:ids AS uuid[])) AND e.consumed_at IS NULL
ORDER BY e.operation_id, e.received_at, e.id
