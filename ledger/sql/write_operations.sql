-- Write decided rows. Every row is locked by this transaction and was read under that lock, so whole rows are written by key;
-- moments are seconds from now, written only where the decision moved them. Adoption: the epoch only goes up.
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
FROM unnest(
    CAST(:id AS uuid[]), CAST(:state AS text[]), CAST(:attempt AS int[]), CAST(:sent_attempt AS int[]), CAST(:task_id AS text[]), CAST(:session_id AS uuid[]),
    CAST(:server_status AS text[]), CAST(:remote_created_at AS text[]), CAST(:ttl_ms AS int8[]), CAST(:interval_ms AS int8[]),
    CAST(:observed_seq AS int8[]), CAST(:tries AS int[]), CAST(:auth_tries AS int[]), CAST(:not_found_count AS int[]),
    CAST(:cancel_generation AS int[]), CAST(:cancel_due AS bool[]), CAST(:cancel_sends AS int[]), CAST(:cancel_acked AS bool[]),
    CAST(:input_round AS int[]), CAST(:unanswered_rounds AS int[]), CAST(:last_code AS text[]),
    CAST(:settle_as AS text[]), CAST(:outcome AS text[]), CAST(:error_code AS text[]), CAST(:effects_possible AS bool[]),
    CAST(:terminal_status AS text[]), CAST(:result_digest AS bytea[]), CAST(:result_pointer AS text[]),
    CAST(:budget_moved AS bool[]), CAST(:budget_running AS bool[]), CAST(:budget_left_s AS float8[]),
    CAST(:input_moved AS bool[]), CAST(:input_left_s AS float8[]), CAST(:confirm_moved AS bool[]), CAST(:confirm_left_s AS float8[]),
    CAST(:leg AS int[]), CAST(:request_state AS text[]), CAST(:result_value_digest AS bytea[]), CAST(:audit_s AS float8[]),
    CAST(:audit_moved AS bool[]), CAST(:journal_seq AS int[])
) AS v(
    id, state, attempt, sent_attempt, task_id, session_id, server_status, remote_created_at, ttl_ms, interval_ms, observed_seq, tries, auth_tries,
    not_found_count, cancel_generation, cancel_due, cancel_sends, cancel_acked, input_round, unanswered_rounds, last_code,
    settle_as, outcome, error_code, effects_possible, terminal_status, result_digest, result_pointer, budget_moved, budget_running,
    budget_left_s, input_moved, input_left_s, confirm_moved, confirm_left_s,
    leg, request_state, result_value_digest, audit_s, audit_moved, journal_seq
)
WHERE o.id = v.id
