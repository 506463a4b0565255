-- The producers' door for one or many calls: one statement, opened in the order of the arrays (call nodes, sorted: two producers
-- can't deadlock). Everything else stands in the function (migrations/functions_0006.sql); producers need no rights on tables.
-- The sub-SELECTs hide how many calls there are: one plan a connection for any number, instead of one at each call (0.08 ms).
SELECT v.place, f.verdict, f.operation_id, f.execution_epoch, f.opened_at
FROM unnest((SELECT CAST(:ids AS uuid[])), (SELECT CAST(:nodes AS text[])), (SELECT CAST(:digests AS bytea[])),
    (SELECT CAST(:targets AS text[])), (SELECT CAST(:tools AS text[])), (SELECT CAST(:bodys AS bytea[])),
    (SELECT CAST(:keys AS uuid[]))) WITH ORDINALITY
    AS v(id, node, digest, target, tool, body, key, place)
CROSS JOIN LATERAL counterfoil.open_operation(
    v.id, :fleet, :namespace, v.node, v.digest, v.target, v.tool, :principal, v.body, v.key
) AS f
ORDER BY v.place
