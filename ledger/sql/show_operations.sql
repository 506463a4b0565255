-- Operations as producers and people see them (`toolOperation.v1`), in the order of the ids. A plain read.
-- `asked`: there are cases beside it, which most operations never have.
-- The sub-SELECT hides how many ids there are and LIMIT keeps to a lookup by id: the same plan for one and for many, made once a
-- connection (planned anew for each submit it took 0.17 ms, seven times its execution).
SELECT o.id, o.namespace, o.call_node_id, o.request_digest, o.target, o.tool, o.tool_version, o.descriptor_digest, o.principal, o.protocol,
    o.submission_key, o.task_id, o.state, o.server_status, o.attempt, o.input_round, o.cancel_generation, o.execution_epoch,
    o.remote_created_at, o.ttl_ms, o.interval_ms, o.budget_ends_at AS wait_budget_ends_at, o.outcome, o.error_code, o.result_digest,
    o.created_at, o.updated_at,
    EXISTS (SELECT FROM counterfoil.reconciliation_case AS c WHERE c.operation_id = o.id) AS asked
FROM unnest((SELECT CAST(:ids AS uuid[]))) WITH ORDINALITY AS v(id, place)
CROSS JOIN LATERAL (SELECT * FROM counterfoil.operation AS w WHERE w.id = v.id LIMIT 1) AS o
ORDER BY v.place
