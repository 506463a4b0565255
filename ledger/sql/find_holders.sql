-- Which open operations hold these tasks. After lock_task_ids.sql: whoever bound one of them before has committed.
SELECT o.target, o.task_id, o.id, o.policy_digest
FROM unnest(CAST(:targets AS text[]), CAST(:task_ids AS text[])) AS v(target, task_id)
JOIN counterfoil.operation AS o ON o.target = v.target AND o.task_id = v.task_id
WHERE o.fleet = :fleet AND o.state NOT IN ('ACCEPTED', 'CANCELLED_ACCEPTED', 'REFUSED')
