-- What became of a batch: acknowledged (no delay), or to be pushed again after a delay. A row that was taken again meanwhile
-- (`deliveries` moved) is not ours to give back; an acknowledgement counts whoever holds the row, since the receiver has said yes.
WITH told AS MATERIALIZED (
    SELECT unnest(CAST(:ids AS uuid[])) AS id, unnest(CAST(:deliveries AS int[])) AS deliveries,
        unnest(CAST(:delays_s AS float8[])) AS delay_s
), ready AS (
    UPDATE counterfoil.ready_outbox AS r
    SET acked_at = CASE WHEN told.delay_s IS NULL THEN counterfoil.ledger_now() END,
        lease_until = CASE WHEN told.delay_s IS NULL THEN r.lease_until END,
        push_at = CASE WHEN told.delay_s IS NULL THEN r.push_at ELSE counterfoil.ledger_now() + make_interval(secs => told.delay_s) END
    FROM told
    WHERE r.id = told.id AND r.namespace = :namespace AND r.acked_at IS NULL
      AND (told.delay_s IS NULL OR r.deliveries = told.deliveries)
    RETURNING r.id
), notices AS (
    UPDATE counterfoil.notice AS m
    SET acked_at = CASE WHEN told.delay_s IS NULL THEN counterfoil.ledger_now() END,
        lease_until = CASE WHEN told.delay_s IS NULL THEN m.lease_until END,
        push_at = CASE WHEN told.delay_s IS NULL THEN m.push_at ELSE counterfoil.ledger_now() + make_interval(secs => told.delay_s) END
    FROM told
    WHERE m.id = told.id AND m.namespace = :namespace AND m.acked_at IS NULL
      AND (told.delay_s IS NULL OR m.deliveries = told.deliveries)
    RETURNING m.id
)
SELECT (SELECT count(*) FROM ready) + (SELECT count(*) FROM notices)
