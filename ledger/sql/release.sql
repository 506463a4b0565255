-- Give rows back without any outcome. due_at moves only if nobody kicked the row since the claim; a kick of another wins.
-- `failed` counts a claim that could not be applied. Fence as in claim.sql.
WITH fence AS MATERIALIZED (
    SELECT epoch FROM counterfoil.execution_epoch WHERE fleet = :fleet AND epoch = :epoch FOR SHARE
), mine AS MATERIALIZED (
    SELECT w.operation_id, w.lane, v.kick, v.delay_s, v.failed
    FROM fence, (
        SELECT unnest(CAST(:ids AS uuid[])) AS id, unnest(CAST(:lanes AS text[])) AS lane, unnest(CAST(:tokens AS uuid[])) AS token,
            unnest(CAST(:kicks AS int[])) AS kick, unnest(CAST(:delays_s AS float8[])) AS delay_s,
            unnest(CAST(:failed AS bool[])) AS failed
    ) AS v
    JOIN counterfoil.wake AS w ON w.operation_id = v.id AND w.lane = v.lane
    WHERE w.lease_token = v.token AND w.lease_epoch = :epoch
    ORDER BY w.operation_id, w.lane
    FOR UPDATE OF w
)
UPDATE counterfoil.wake AS w
SET lease_token = NULL, lease_until = NULL, lease_epoch = NULL,
    due_at = CASE WHEN w.kick = mine.kick
        THEN counterfoil.ledger_now() + make_interval(secs => mine.delay_s) ELSE w.due_at END,
    claim_count = w.claim_count + CASE WHEN mine.failed THEN 1 ELSE 0 END
FROM mine
WHERE w.operation_id = mine.operation_id AND w.lane = mine.lane
RETURNING w.operation_id
