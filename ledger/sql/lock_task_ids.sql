-- The ids that are about to be bound, locked for this transaction in one order for everybody: two transitions that hold different
-- operations would else both look for a holder and find none. After the operations, before anything is written.
SELECT pg_advisory_xact_lock(named.key)
FROM (
    SELECT DISTINCT hashtextextended(v.target || E'\n' || v.task_id, 7401) AS key
    FROM (SELECT unnest(CAST(:targets AS text[])) AS target, unnest(CAST(:task_ids AS text[])) AS task_id) AS v
    ORDER BY key
) AS named
