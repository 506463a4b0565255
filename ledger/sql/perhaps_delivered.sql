-- A lost database may have handed these out: whoever takes them sees that it may not be the first time. Their ids are derived, so
-- a consumer that dedupes by id acts once.
UPDATE counterfoil.ready_outbox AS r
SET deliveries = greatest(r.deliveries, 1), lease_until = NULL
FROM counterfoil.namespace AS n
WHERE n.namespace = r.namespace AND n.fleet = :fleet AND r.acked_at IS NULL
