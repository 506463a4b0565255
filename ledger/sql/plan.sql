-- Which (lane, target) has due work, up to a cap each, and in how long the last row is due that is due before `ahead_s` is over.
-- Polls are claimed ahead, so for them there is no such moment. Probes the due index once per lane in use and known target.
-- A target that asked for quiet (429, 503 with Retry-After) is left alone but for the lanes that need no wire.
SELECT l.lane, t.target, d.n, extract(epoch FROM d.last_at - counterfoil.ledger_now())::float8 AS later_s
FROM counterfoil.target_state AS t
CROSS JOIN unnest(CAST(:lanes AS text[])) AS l(lane)
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE due.now)::int AS n, max(due.due_at) FILTER (WHERE NOT due.now) AS last_at FROM (
        SELECT w.due_at, l.lane = 'poll' OR w.due_at <= (SELECT counterfoil.ledger_now()) AS now FROM counterfoil.wake AS w
        WHERE w.fleet = :fleet AND w.lane = l.lane AND w.target = t.target
          AND w.due_at <= counterfoil.ledger_now() + make_interval(secs => :ahead_s)
        ORDER BY w.due_at
        LIMIT :limit
    ) AS due
) AS d
WHERE t.fleet = :fleet AND (d.n > 0 OR d.last_at IS NOT NULL)
  AND (t.closed_until IS NULL OR t.closed_until <= counterfoil.ledger_now() OR l.lane IN ('timer', 'fetch'))
