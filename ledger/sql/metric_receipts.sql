-- Receipts between two moments, counted into the buckets of two histograms: from the call to its receipt, and from a committed cancel
-- to its end. `bucket` n: at least the n-th bound and less than the next; 0: less than the first.
SELECT r.target, r.outcome, coalesce(r.error_code, '') AS code,
    width_bucket(r.took_s, CAST(:bounds AS float8[])) AS bucket,
    width_bucket(r.cancel_s, CAST(:bounds AS float8[])) AS cancel_bucket,
    count(*)::float8 AS n, sum(r.took_s) AS took_s, sum(r.cancel_s) AS cancel_s
FROM (
    SELECT t.target, t.outcome, t.error_code, extract(epoch FROM t.accepted_at - o.created_at)::float8 AS took_s,
        CASE WHEN t.cancel_generation > 0 THEN extract(epoch FROM t.accepted_at - (
            SELECT min(j.at) FROM counterfoil.journal AS j WHERE j.operation_id = t.operation_id AND j.target = 'CANCEL_REQUESTED'
        ))::float8 END AS cancel_s
    FROM counterfoil.terminal_receipt AS t
    JOIN counterfoil.operation AS o ON o.id = t.operation_id
    WHERE t.accepted_at > :since AND t.accepted_at <= :until AND o.fleet = :fleet
) AS r
GROUP BY 1, 2, 3, 4, 5
