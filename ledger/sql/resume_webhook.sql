-- A person says that the endpoint is well again: everything that waits is pushed anew, nothing waits for a back-off of before.
WITH ready AS (
    UPDATE counterfoil.ready_outbox SET push_at = NULL WHERE namespace = :namespace AND acked_at IS NULL AND push_at IS NOT NULL
), notices AS (
    UPDATE counterfoil.notice SET push_at = NULL WHERE namespace = :namespace AND acked_at IS NULL AND push_at IS NOT NULL
)
UPDATE counterfoil.webhook_endpoint SET failures = 0, next_at = NULL, failing_since = NULL, stopped_at = NULL, why = NULL
WHERE namespace = :namespace AND failures > 0
RETURNING namespace
