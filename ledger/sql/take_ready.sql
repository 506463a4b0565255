-- Hand out ready rows under a lease. SKIP LOCKED: two consumers never wait for each other. Not `id > last seen`: commit order is
-- not id order.
WITH waiting AS MATERIALIZED (
    SELECT id FROM counterfoil.ready_outbox
    WHERE namespace = :namespace AND acked_at IS NULL AND (lease_until IS NULL OR lease_until <= counterfoil.ledger_now())
    ORDER BY created_at, id
    LIMIT :limit
    FOR UPDATE SKIP LOCKED
)
UPDATE counterfoil.ready_outbox AS r
SET lease_until = counterfoil.ledger_now() + make_interval(secs => :lease_s), deliveries = r.deliveries + 1
FROM waiting
WHERE r.id = waiting.id
RETURNING r.id, r.namespace, r.call_node_id, r.receipt_id, r.deliveries, r.created_at
