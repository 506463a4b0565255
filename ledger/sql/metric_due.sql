-- Due rows by lane and target, counted up to 10,000 each, and how long the oldest has waited. Probes the due index as `plan` does. A
-- target that asked for quiet delays its rows, which makes none of them late; a leased row is due at its lease's end.
SELECT l.lane, t.target, d.n::float8 AS n,
    greatest(0, extract(epoch FROM counterfoil.ledger_now()
        - greatest(d.oldest, CASE WHEN l.lane NOT IN ('timer', 'fetch') THEN t.closed_until END)))::float8 AS oldest_s
FROM counterfoil.target_state AS t
CROSS JOIN unnest(CAST(:lanes AS text[])) AS l(lane)
CROSS JOIN LATERAL (
    SELECT count(*) AS n, min(due_at) AS oldest FROM (
        SELECT w.due_at FROM counterfoil.wake AS w
        WHERE w.fleet = :fleet AND w.lane = l.lane AND w.target = t.target AND w.due_at <= counterfoil.ledger_now()
        ORDER BY w.due_at
        LIMIT 10000
    ) AS due
) AS d
WHERE t.fleet = :fleet AND d.n > 0
