-- What waits for a consumer's acknowledgement. `consumed`: its namespace has acknowledged before. A namespace whose producers read
-- receipts themselves never does, and nothing is late there.
SELECT w.kind, CASE WHEN w.known THEN 'yes' ELSE 'no' END AS consumed, sum(w.n)::float8 AS n,
    extract(epoch FROM counterfoil.ledger_now() - min(w.oldest))::float8 AS oldest_s
FROM (
    SELECT 'ready' AS kind, n.namespace, r.n, r.oldest,
        EXISTS (SELECT FROM counterfoil.ready_outbox AS a WHERE a.namespace = n.namespace AND a.acked_at IS NOT NULL) AS known
    FROM counterfoil.namespace AS n
    CROSS JOIN LATERAL (
        SELECT count(*) AS n, min(created_at) AS oldest FROM (
            SELECT o.created_at FROM counterfoil.ready_outbox AS o
            WHERE o.namespace = n.namespace AND o.acked_at IS NULL ORDER BY o.created_at LIMIT 10000
        ) AS first
    ) AS r
    WHERE n.fleet = :fleet
    UNION ALL
    SELECT 'notice', n.namespace, r.n, r.oldest,
        EXISTS (SELECT FROM counterfoil.notice AS a WHERE a.namespace = n.namespace AND a.acked_at IS NOT NULL)
    FROM counterfoil.namespace AS n
    CROSS JOIN LATERAL (
        SELECT count(*) AS n, min(created_at) AS oldest FROM (
            SELECT o.created_at FROM counterfoil.notice AS o
            WHERE o.namespace = n.namespace AND o.acked_at IS NULL ORDER BY o.created_at LIMIT 10000
        ) AS first
    ) AS r
    WHERE n.fleet = :fleet
) AS w
WHERE w.n > 0
GROUP BY 1, 2
