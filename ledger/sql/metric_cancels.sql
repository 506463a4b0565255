-- Cancels that no server has confirmed yet: how many, and how old (the slowest of a hundred, and the oldest), from the commit on.
SELECT u.target, count(*)::float8 AS n, percentile_cont(0.99) WITHIN GROUP (ORDER BY u.age_s) AS p99_s, max(u.age_s) AS oldest_s
FROM (
    SELECT o.target,
        extract(epoch FROM counterfoil.ledger_now() - coalesce(
            (SELECT min(j.at) FROM counterfoil.journal AS j WHERE j.operation_id = o.id AND j.target = 'CANCEL_REQUESTED'),
            o.updated_at))::float8 AS age_s
    FROM counterfoil.call_node AS c
    JOIN counterfoil.operation AS o ON o.id = c.operation_id
    WHERE c.outcome IS NULL AND c.operation_id IS NOT NULL AND o.fleet = :fleet AND o.state = 'CANCEL_REQUESTED'
) AS u
GROUP BY 1
