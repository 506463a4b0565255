-- The rows a transition is about to decide on, locked in order of id and read as they are under the lock. Second statement of a
-- transition, after fence.sql. Everything a decision compares stands in these columns: a value joined from elsewhere would come
-- from the snapshot before the lock wait (measured: a cancel generation moved and was not seen).
-- Seconds left are by the ledger's clock.
-- Planned once a connection: the sub-SELECT hides how many ids there are, LATERAL keeps to lookups by id, in their order, however
-- small the table was when the plan was made (planned anew each time it took 0.18 ms, as long as it ran).
SELECT
    o.id, o.fleet, o.namespace, o.call_node_id, o.request_digest, o.target, o.tool, o.principal, o.submission_key,
    CASE WHEN o.state IN ('SUBMITTING', 'NOT_FOUND_SAFE', 'SUBMISSION_UNKNOWN') THEN o.arguments END AS arguments,
    o.state, o.attempt, o.sent_attempt, o.protocol, o.tool_version, o.descriptor_digest, o.policy_digest,
    o.task_id, o.session_id, o.server_status, o.remote_created_at, o.ttl_ms, o.interval_ms, o.observed_seq,
    o.tries, o.auth_tries, o.not_found_count, o.cancel_generation, o.cancel_due, o.cancel_sends, o.cancel_acked,
    o.input_round, o.unanswered_rounds, o.last_code,
    o.settle_as, o.outcome, o.error_code, o.effects_possible, o.terminal_status, o.result_digest, o.result_pointer,
    o.leg, o.request_state, o.result_value_digest, o.audit_s, o.shadow,
    o.execution_epoch, o.journal_seq, o.created_at,
    coalesce(o.budget_s, extract(epoch FROM o.budget_ends_at - clock.now)::float8) AS budget_left_s,
    o.budget_ends_at IS NOT NULL AS budget_running,
    extract(epoch FROM o.input_ends_at - clock.now)::float8 AS input_left_s,
    extract(epoch FROM o.confirm_ends_at - clock.now)::float8 AS confirm_left_s,
    extract(epoch FROM o.audit_ends_at - clock.now)::float8 AS audit_left_s,
    extract(epoch FROM clock.now - o.first_intent_at)::float8 AS since_first_intent_s,
    extract(epoch FROM clock.now - o.last_send_by)::float8 AS since_send_by_s
FROM (SELECT v.id FROM unnest((SELECT CAST(:ids AS uuid[]))) AS v(id) ORDER BY v.id) AS v
CROSS JOIN LATERAL (SELECT * FROM counterfoil.operation AS w WHERE w.id = v.id LIMIT 1 FOR NO KEY UPDATE OF w) AS o
-- One look at the clock a row, after its lock.
CROSS JOIN LATERAL (SELECT counterfoil.ledger_now() AS now WHERE o.id IS NOT NULL OFFSET 0) AS clock
ORDER BY v.id
