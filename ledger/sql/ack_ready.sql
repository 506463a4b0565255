-- Acted upon: in the consumer's own transaction where it can be, so that progress and acknowledgement are one fact.
UPDATE counterfoil.ready_outbox SET acked_at = counterfoil.ledger_now()
WHERE namespace = :namespace AND id = ANY(CAST(:ids AS uuid[])) AND acked_at IS NULL
RETURNING id
