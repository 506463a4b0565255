-- In the transaction that opened the case or the round: a notice exists exactly when what it tells of does.
INSERT INTO counterfoil.notice (id, namespace, call_node_id, operation_id, kind, code, why, created_at)
SELECT v.id, v.namespace, v.call_node_id, v.operation_id, v.kind, v.code, v.why, counterfoil.ledger_now()
FROM (
    SELECT unnest(CAST(:ids AS uuid[])) AS id, unnest(CAST(:namespaces AS text[])) AS namespace,
        unnest(CAST(:call_nodes AS text[])) AS call_node_id, unnest(CAST(:operations AS uuid[])) AS operation_id,
        unnest(CAST(:kinds AS text[])) AS kind, unnest(CAST(:codes AS text[])) AS code, unnest(CAST(:whys AS text[])) AS why
) AS v
