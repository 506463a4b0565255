-- For how long each target has its bucket closed (429 or 503 with Retry-After).
SELECT t.target, greatest(0, extract(epoch FROM t.closed_until - counterfoil.ledger_now()))::float8 AS closed_s,
    extract(epoch FROM counterfoil.ledger_now() - t.seen_at)::float8 AS announced_s
FROM counterfoil.target_state AS t
WHERE t.fleet = :fleet
