-- Hand out notices under a lease, as `take_ready` does receipts.
WITH waiting AS MATERIALIZED (
    SELECT id FROM counterfoil.notice
    WHERE namespace = :namespace AND acked_at IS NULL AND (lease_until IS NULL OR lease_until <= counterfoil.ledger_now())
    ORDER BY created_at, id
    LIMIT :limit
    FOR UPDATE SKIP LOCKED
)
UPDATE counterfoil.notice AS n
SET lease_until = counterfoil.ledger_now() + make_interval(secs => :lease_s), deliveries = n.deliveries + 1
FROM waiting
WHERE n.id = waiting.id
RETURNING n.id, n.namespace, n.call_node_id, n.operation_id, n.kind, n.code, n.why, n.deliveries, n.created_at
