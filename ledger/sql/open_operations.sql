-- The producers' door for one or many calls: one statement, opened in the order of the arrays (call nodes, sorted: two producers
-- can't deadlock). Everything else stands in the function (migrations/functions_0001.sql); producers need no rights on tables.
SELECT v.place, f.verdict, f.operation_id
FROM unnest(CAST(:ids AS uuid[]), CAST(:nodes AS text[]), CAST(:digests AS bytea[]), CAST(:targets AS text[]), CAST(:tools AS text[]),
    CAST(:bodys AS bytea[]), CAST(:keys AS uuid[])) WITH ORDINALITY
    AS v(id, node, digest, target, tool, body, key, place)
CROSS JOIN LATERAL counterfoil.open_operation(
    v.id, :fleet, :namespace, v.node, v.digest, v.target, v.tool, :principal, v.body, v.key
) AS f
ORDER BY v.place
