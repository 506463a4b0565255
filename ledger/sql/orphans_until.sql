-- The last of the next `count` open operations after an id, in order of id: where a look for orphans ends. No row: fewer are left.
SELECT n.operation_id FROM counterfoil.call_node AS n
WHERE n.outcome IS NULL AND n.operation_id > :after
ORDER BY n.operation_id
OFFSET CAST(:count AS int) - 1 LIMIT 1
