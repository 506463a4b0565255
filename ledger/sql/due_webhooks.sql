-- Which of these namespaces have something to push and an endpoint that may be tried. A plain read, no fence: what is taken is
-- decided by `take_webhook_events`.
SELECT n.namespace
FROM unnest(CAST(:namespaces AS text[])) AS n(namespace)
LEFT JOIN counterfoil.webhook_endpoint AS e ON e.namespace = n.namespace
WHERE e.stopped_at IS NULL AND (e.next_at IS NULL OR e.next_at <= counterfoil.ledger_now())
  AND (
    EXISTS (SELECT FROM counterfoil.ready_outbox AS r
        WHERE r.namespace = n.namespace AND r.acked_at IS NULL AND (r.lease_until IS NULL OR r.lease_until <= counterfoil.ledger_now())
          AND (r.push_at IS NULL OR r.push_at <= counterfoil.ledger_now()))
    OR EXISTS (SELECT FROM counterfoil.notice AS m
        WHERE m.namespace = n.namespace AND m.acked_at IS NULL AND (m.lease_until IS NULL OR m.lease_until <= counterfoil.ledger_now())
          AND (m.push_at IS NULL OR m.push_at <= counterfoil.ledger_now()))
  )
