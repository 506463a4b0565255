-- In the transaction that opened the case or the round: a notice exists exactly when what it tells of does.
INSERT INTO counterfoil.notice (id, namespace, call_node_id, operation_id, kind, code, why, created_at)
SELECT v.id, v.namespace, v.call_node_id, v.operation_id, v.kind, v.code, v.why, counterfoil.ledger_now()
FROM unnest(CAST(:ids AS uuid[]), CAST(:namespaces AS text[]), CAST(:call_nodes AS text[]), CAST(:operations AS uuid[]),
    CAST(:kinds AS text[]), CAST(:codes AS text[]), CAST(:whys AS text[])) AS v(id, namespace, call_node_id, operation_id, kind, code, why)
