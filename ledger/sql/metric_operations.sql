-- Operations that are not over. Costs what is open, not what was ever called: the register's open rows have an index of their own.
SELECT o.state, o.target, coalesce(o.protocol, t.protocol, 'none') AS protocol, count(*)::float8 AS n
FROM counterfoil.call_node AS c
JOIN counterfoil.operation AS o ON o.id = c.operation_id
LEFT JOIN counterfoil.target_state AS t ON t.fleet = o.fleet AND t.target = o.target
WHERE c.outcome IS NULL AND c.operation_id IS NOT NULL AND o.fleet = :fleet
GROUP BY 1, 2, 3
