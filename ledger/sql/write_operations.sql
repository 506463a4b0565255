-- Write decided rows. Every row is locked by this transaction and was read under that lock, so whole rows are written by key;
-- moments are seconds from now, written only where the decision moved them. Adoption: the epoch only goes up.
-- Here and wherever arrays become rows: `unnest` stands in a SELECT's list, where it makes rows one by one. In FROM each array is first
-- copied into a store of its own: 231 us for these 41 with ten rows, against 56. The clock in a sub-SELECT is asked once a statement and
-- not once a row (2.5 us each).
UPDATE counterfoil.operation AS o
SET state = v.state, attempt = v.attempt, sent_attempt = v.sent_attempt, task_id = v.task_id, session_id = v.session_id, server_status = v.server_status,
    remote_created_at = v.remote_created_at, ttl_ms = v.ttl_ms, interval_ms = v.interval_ms, observed_seq = v.observed_seq,
    tries = v.tries, auth_tries = v.auth_tries, not_found_count = v.not_found_count,
    cancel_generation = v.cancel_generation, cancel_due = v.cancel_due, cancel_sends = v.cancel_sends, cancel_acked = v.cancel_acked,
    input_round = v.input_round, unanswered_rounds = v.unanswered_rounds, last_code = v.last_code,
    settle_as = v.settle_as, outcome = v.outcome, error_code = v.error_code, effects_possible = v.effects_possible,
    terminal_status = v.terminal_status, result_digest = v.result_digest, result_pointer = v.result_pointer,
    budget_ends_at = CASE WHEN NOT v.budget_moved THEN o.budget_ends_at
        WHEN v.budget_running THEN (SELECT counterfoil.ledger_now()) + make_interval(secs => v.budget_left_s) END,
    budget_s = CASE WHEN NOT v.budget_moved THEN o.budget_s WHEN v.budget_running THEN NULL ELSE v.budget_left_s END,
    input_ends_at = CASE WHEN v.input_moved THEN (SELECT counterfoil.ledger_now()) + make_interval(secs => v.input_left_s) ELSE o.input_ends_at END,
    confirm_ends_at = CASE WHEN v.confirm_moved THEN (SELECT counterfoil.ledger_now()) + make_interval(secs => v.confirm_left_s)
        ELSE o.confirm_ends_at END,
    leg = v.leg, request_state = v.request_state, result_value_digest = v.result_value_digest, audit_s = v.audit_s,
    audit_ends_at = CASE WHEN v.audit_moved THEN NULL ELSE o.audit_ends_at END,
    execution_epoch = greatest(o.execution_epoch, :epoch),
    journal_seq = v.journal_seq,
    updated_at = (SELECT counterfoil.ledger_now())
FROM (
    SELECT unnest(CAST(:id AS uuid[])) AS id, unnest(CAST(:state AS text[])) AS state, unnest(CAST(:attempt AS int[])) AS attempt,
        unnest(CAST(:sent_attempt AS int[])) AS sent_attempt, unnest(CAST(:task_id AS text[])) AS task_id,
        unnest(CAST(:session_id AS uuid[])) AS session_id, unnest(CAST(:server_status AS text[])) AS server_status,
        unnest(CAST(:remote_created_at AS text[])) AS remote_created_at, unnest(CAST(:ttl_ms AS int8[])) AS ttl_ms,
        unnest(CAST(:interval_ms AS int8[])) AS interval_ms, unnest(CAST(:observed_seq AS int8[])) AS observed_seq,
        unnest(CAST(:tries AS int[])) AS tries, unnest(CAST(:auth_tries AS int[])) AS auth_tries,
        unnest(CAST(:not_found_count AS int[])) AS not_found_count, unnest(CAST(:cancel_generation AS int[])) AS cancel_generation,
        unnest(CAST(:cancel_due AS bool[])) AS cancel_due, unnest(CAST(:cancel_sends AS int[])) AS cancel_sends,
        unnest(CAST(:cancel_acked AS bool[])) AS cancel_acked, unnest(CAST(:input_round AS int[])) AS input_round,
        unnest(CAST(:unanswered_rounds AS int[])) AS unanswered_rounds, unnest(CAST(:last_code AS text[])) AS last_code,
        unnest(CAST(:settle_as AS text[])) AS settle_as, unnest(CAST(:outcome AS text[])) AS outcome,
        unnest(CAST(:error_code AS text[])) AS error_code, unnest(CAST(:effects_possible AS bool[])) AS effects_possible,
        unnest(CAST(:terminal_status AS text[])) AS terminal_status, unnest(CAST(:result_digest AS bytea[])) AS result_digest,
        unnest(CAST(:result_pointer AS text[])) AS result_pointer, unnest(CAST(:budget_moved AS bool[])) AS budget_moved,
        unnest(CAST(:budget_running AS bool[])) AS budget_running, unnest(CAST(:budget_left_s AS float8[])) AS budget_left_s,
        unnest(CAST(:input_moved AS bool[])) AS input_moved, unnest(CAST(:input_left_s AS float8[])) AS input_left_s,
        unnest(CAST(:confirm_moved AS bool[])) AS confirm_moved, unnest(CAST(:confirm_left_s AS float8[])) AS confirm_left_s,
        unnest(CAST(:leg AS int[])) AS leg, unnest(CAST(:request_state AS text[])) AS request_state,
        unnest(CAST(:result_value_digest AS bytea[])) AS result_value_digest, unnest(CAST(:audit_s AS float8[])) AS audit_s,
        unnest(CAST(:audit_moved AS bool[])) AS audit_moved, unnest(CAST(:journal_seq AS int[])) AS journal_seq
) AS v
WHERE o.id = v.id
