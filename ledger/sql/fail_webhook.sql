-- An endpoint failed: when it may be tried again; stopped at once (410), or once it has failed for `give_up_s` without a success.
-- `failures` comes from what the batch saw, so that two processes that failed at the same time count as one failure.
INSERT INTO counterfoil.webhook_endpoint AS e (namespace, failures, next_at, failing_since, stopped_at, why)
VALUES (:namespace, :failures, counterfoil.ledger_now() + make_interval(secs => :delay_s), counterfoil.ledger_now(),
    CASE WHEN :gone THEN counterfoil.ledger_now() END, :why)
ON CONFLICT (namespace) DO UPDATE
SET failures = greatest(e.failures, excluded.failures),
    next_at = excluded.next_at,
    failing_since = coalesce(e.failing_since, excluded.failing_since),
    stopped_at = coalesce(e.stopped_at, excluded.stopped_at,
        CASE WHEN e.failing_since <= counterfoil.ledger_now() - make_interval(secs => :give_up_s) THEN counterfoil.ledger_now() END),
    why = CASE WHEN e.stopped_at IS NULL THEN excluded.why ELSE e.why END
RETURNING e.stopped_at IS NOT NULL
