-- Which open operations hold these tasks. After lock_task_ids.sql: whoever bound one of them before has committed.
SELECT o.target, o.task_id, o.id, o.policy_digest
FROM (SELECT unnest(CAST(:targets AS text[])) AS target, unnest(CAST(:task_ids AS text[])) AS task_id) AS v
JOIN counterfoil.operation AS o ON o.target = v.target AND o.task_id = v.task_id
WHERE o.fleet = :fleet AND o.state NOT IN ('ACCEPTED', 'CANCELLED_ACCEPTED', 'REFUSED')
