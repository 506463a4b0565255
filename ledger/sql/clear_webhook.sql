-- The endpoint takes events again.
UPDATE counterfoil.webhook_endpoint SET failures = 0, next_at = NULL, failing_since = NULL, why = NULL
WHERE namespace = :namespace AND failures > 0 AND stopped_at IS NULL
