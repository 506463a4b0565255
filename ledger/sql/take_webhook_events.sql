-- Lease what one endpoint is to be told next: ready rows and notices, oldest first, with what the event's body needs.
-- SKIP LOCKED: several processes deliver at once and no row goes to two of them. An endpoint that failed is probed with one event
-- by one process: `probe` moves `next_at` on, and its own row lock makes the second process read the moved one. A stopped endpoint
-- is a failing one that nobody probes.
-- `fresh`: never failed a push.
WITH probe AS (
    UPDATE counterfoil.webhook_endpoint AS e
    SET next_at = counterfoil.ledger_now() + make_interval(secs => :lease_s)
    WHERE e.namespace = :namespace AND e.failures > 0 AND e.stopped_at IS NULL AND e.next_at <= counterfoil.ledger_now()
    RETURNING e.namespace
), pace AS MATERIALIZED (
    SELECT coalesce(e.failures, 0) AS failures,
        CASE WHEN e.failures > 0 THEN (SELECT count(*) FROM probe) ELSE :limit END AS size
    FROM (VALUES (CAST(:namespace AS text))) AS n(namespace)
    LEFT JOIN counterfoil.webhook_endpoint AS e ON e.namespace = n.namespace
), ready AS MATERIALIZED (
    SELECT r.id, r.push_at IS NULL AS fresh FROM counterfoil.ready_outbox AS r
    WHERE r.namespace = :namespace AND r.acked_at IS NULL AND (r.lease_until IS NULL OR r.lease_until <= counterfoil.ledger_now())
      AND (r.push_at IS NULL OR r.push_at <= counterfoil.ledger_now())
    ORDER BY r.created_at, r.id
    LIMIT (SELECT size FROM pace)
    FOR UPDATE SKIP LOCKED
), noted AS MATERIALIZED (
    SELECT m.id, m.push_at IS NULL AS fresh FROM counterfoil.notice AS m
    WHERE m.namespace = :namespace AND m.acked_at IS NULL AND (m.lease_until IS NULL OR m.lease_until <= counterfoil.ledger_now())
      AND (m.push_at IS NULL OR m.push_at <= counterfoil.ledger_now())
    ORDER BY m.created_at, m.id
    LIMIT (SELECT size FROM pace) - (SELECT count(*) FROM ready)
    FOR UPDATE SKIP LOCKED
), taken_ready AS (
    UPDATE counterfoil.ready_outbox AS r
    SET lease_until = counterfoil.ledger_now() + make_interval(secs => :lease_s), deliveries = r.deliveries + 1
    FROM ready WHERE r.id = ready.id
    RETURNING r.id, r.receipt_id, r.deliveries, r.created_at, ready.fresh
), taken_notices AS (
    UPDATE counterfoil.notice AS m
    SET lease_until = counterfoil.ledger_now() + make_interval(secs => :lease_s), deliveries = m.deliveries + 1
    FROM noted WHERE m.id = noted.id
    RETURNING m.id, m.operation_id, m.call_node_id, m.kind, m.code, m.why, m.deliveries, m.created_at, noted.fresh
), events AS (
    SELECT r.id, r.deliveries, r.fresh, r.created_at, t.call_node_id, t.operation_id, t.outcome AS word, t.error_code AS code,
        NULL::text AS why, t.id AS receipt_id, t.digest AS receipt_digest, t.target, t.tool, t.effects_possible, t.result_digest,
        t.result_pointer, b.body AS result_body
    FROM taken_ready AS r
    JOIN counterfoil.terminal_receipt AS t ON t.id = r.receipt_id
    LEFT JOIN counterfoil.operation_result AS b
        ON b.operation_id = t.operation_id AND t.result_digest IS NOT NULL AND octet_length(b.body) <= :result_bytes
    UNION ALL
    SELECT m.id, m.deliveries, m.fresh, m.created_at, m.call_node_id, m.operation_id, m.kind, m.code,
        m.why, NULL, NULL, o.target, o.tool, NULL, NULL,
        NULL, NULL
    FROM taken_notices AS m
    JOIN counterfoil.operation AS o ON o.id = m.operation_id
)
SELECT events.*, pace.failures, extract(epoch FROM counterfoil.ledger_now())::int8 AS now_s,
    (SELECT i.ledger_id FROM counterfoil.ledger_identity AS i) AS ledger_id
FROM events, pace
