-- Which (lane, target) has due work, up to a cap each. Probes the due index once per lane in use and known target.
-- A target that asked for quiet (429, 503 with Retry-After) is left alone but for the lanes that need no wire.
SELECT l.lane, t.target, d.n
FROM counterfoil.target_state AS t
CROSS JOIN unnest(CAST(:lanes AS text[])) AS l(lane)
CROSS JOIN LATERAL (
    SELECT count(*)::int AS n FROM (
        SELECT 1 FROM counterfoil.wake AS w
        WHERE w.fleet = :fleet AND w.lane = l.lane AND w.target = t.target
          AND w.due_at <= counterfoil.ledger_now() + make_interval(secs => CASE WHEN l.lane = 'poll' THEN :ahead_s ELSE 0 END)
        LIMIT :limit
    ) AS due
) AS d
WHERE t.fleet = :fleet AND d.n > 0
  AND (t.closed_until IS NULL OR t.closed_until <= counterfoil.ledger_now() OR l.lane IN ('timer', 'fetch'))
