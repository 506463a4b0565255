-- The one way to a receipt. The fence, the comparison and every write stand in the function (migrations/functions_0006.sql).
SELECT operation_id, verdict FROM counterfoil.accept_terminal(
    :fleet, :epoch, CAST(:ids AS uuid[]), CAST(:receipt_ids AS uuid[]), CAST(:ready_ids AS uuid[]), CAST(:namespaces AS text[]),
    CAST(:call_node_ids AS text[]), CAST(:request_digests AS bytea[]), CAST(:task_ids AS text[]), CAST(:tool_versions AS text[]),
    CAST(:settle_as AS text[]), CAST(:generations AS int[]), CAST(:result_digests AS bytea[]),
    CAST(:lanes AS text[])
)
