-- Protocol versions that take no new submits, with the operations that are still open under them.
SELECT m.protocol, m.mode, count(o.id)::float8 AS n
FROM counterfoil.adapter_mode AS m
LEFT JOIN counterfoil.call_node AS c ON c.outcome IS NULL AND c.operation_id IS NOT NULL
LEFT JOIN counterfoil.operation AS o ON o.id = c.operation_id AND o.fleet = m.fleet AND o.protocol = m.protocol
WHERE m.fleet = :fleet AND m.mode <> 'open'
GROUP BY 1, 2
