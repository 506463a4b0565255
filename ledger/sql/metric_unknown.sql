-- Lost submits: how many, how many of them for over 15 minutes (SPEC section 7: by then a machine's answer or an open case), and the
-- oldest. `asked`: a person has been.
SELECT u.target, u.asked, count(*)::float8 AS n, count(*) FILTER (WHERE u.age_s > 900)::float8 AS overdue, max(u.age_s) AS oldest_s
FROM (
    SELECT o.target,
        CASE WHEN EXISTS (SELECT 1 FROM counterfoil.reconciliation_case AS k WHERE k.operation_id = o.id AND k.closed_at IS NULL)
            THEN 'yes' ELSE 'no' END AS asked,
        extract(epoch FROM counterfoil.ledger_now() - coalesce(
            (SELECT max(j.at) FROM counterfoil.journal AS j
                WHERE j.operation_id = o.id AND j.target = 'SUBMISSION_UNKNOWN' AND j.source IS DISTINCT FROM j.target),
            o.updated_at))::float8 AS age_s
    FROM counterfoil.call_node AS c
    JOIN counterfoil.operation AS o ON o.id = c.operation_id
    WHERE c.outcome IS NULL AND c.operation_id IS NOT NULL AND o.fleet = :fleet AND o.state = 'SUBMISSION_UNKNOWN'
) AS u
GROUP BY 1, 2
