-- What of one protocol version is not over: operations, and audits of operations that are. What was never sent has pinned none yet:
-- it is its target's. Asked under the bump's lock before a version is switched off, so that no door stands in between.
SELECT count(*) FILTER (WHERE n.outcome IS NULL)::int AS operations, count(*) FILTER (WHERE n.outcome IS NOT NULL)::int AS audits
FROM (
    SELECT c.operation_id, c.outcome FROM counterfoil.call_node AS c WHERE c.outcome IS NULL AND c.operation_id IS NOT NULL
    UNION ALL
    SELECT w.operation_id, 'over' FROM counterfoil.wake AS w WHERE w.fleet = :fleet AND w.lane = 'audit'
) AS n
JOIN counterfoil.operation AS o ON o.id = n.operation_id
LEFT JOIN counterfoil.target_state AS t ON t.fleet = o.fleet AND t.target = o.target
WHERE o.fleet = :fleet AND coalesce(o.protocol, t.protocol) = :protocol
