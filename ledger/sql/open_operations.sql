-- The producers' door for one or many calls: one statement, opened in the order of the arrays (call nodes, sorted: two producers
-- can't deadlock). Everything else stands in the function (migrations/functions_0006.sql); producers need no rights on tables.
-- The sub-SELECTs hide how many calls there are: one plan a connection for any number, instead of one at each call (0.08 ms).
SELECT v.place, f.verdict, f.operation_id, f.execution_epoch, f.opened_at
FROM (
    SELECT unnest((SELECT CAST(:ids AS uuid[]))) AS id, unnest((SELECT CAST(:nodes AS text[]))) AS node,
        unnest((SELECT CAST(:digests AS bytea[]))) AS digest, unnest((SELECT CAST(:targets AS text[]))) AS target,
        unnest((SELECT CAST(:tools AS text[]))) AS tool, unnest((SELECT CAST(:bodys AS bytea[]))) AS body,
        unnest((SELECT CAST(:keys AS uuid[]))) AS key, generate_subscripts((SELECT CAST(:ids AS uuid[])), 1) AS place
) AS v
CROSS JOIN LATERAL counterfoil.open_operation(
    v.id, :fleet, :namespace, v.node, v.digest, v.target, v.tool, :principal, v.body, v.key
) AS f
ORDER BY v.place
