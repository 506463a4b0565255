-- What people said and the next request carries: to a task that waits, one reply a request; before a task, all of the leg before.
SELECT r.operation_id, r.number, r.key, r.method, r.reply_to, r.reply AS content
FROM counterfoil.input_round AS r
JOIN counterfoil.operation AS o ON o.id = r.operation_id
WHERE r.operation_id = ANY(CAST(:ids AS uuid[])) AND r.reply IS NOT NULL
  AND CASE WHEN o.task_id IS NULL THEN r.leg = o.leg - 1 ELSE r.state = 'replied' END
ORDER BY r.operation_id, r.number
