-- Prolong leases that are still ours, and tell what has become of the row: a kick, or a row gone (not returned).
-- The due moment of a row that nobody kicked is its lease's end, but for the microsecond between two calls of the clock in the
-- statement that wrote both: compared exactly it stayed behind, and the plan found each row that was held for long due for ever.
-- Fence as in claim.sql. SKIP LOCKED: a row that a transition holds right now is asked again at the next tick.
WITH fence AS MATERIALIZED (
    SELECT epoch FROM counterfoil.execution_epoch WHERE fleet = :fleet AND epoch = :epoch FOR SHARE
), mine AS MATERIALIZED (
    SELECT w.operation_id, w.lane, v.until_s
    FROM fence, (
        SELECT unnest(CAST(:ids AS uuid[])) AS id, unnest(CAST(:lanes AS text[])) AS lane, unnest(CAST(:tokens AS uuid[])) AS token,
            unnest(CAST(:until_s AS float8[])) AS until_s
    ) AS v
    JOIN counterfoil.wake AS w ON w.operation_id = v.id AND w.lane = v.lane
    WHERE w.lease_token = v.token AND w.lease_epoch = :epoch
    FOR UPDATE OF w SKIP LOCKED
)
UPDATE counterfoil.wake AS w
SET lease_until = (SELECT counterfoil.ledger_now()) + make_interval(secs => mine.until_s),
    due_at = CASE WHEN w.due_at >= w.lease_until - interval '1 ms'
        THEN (SELECT counterfoil.ledger_now()) + make_interval(secs => mine.until_s) ELSE w.due_at END,
    read_seq = nextval('counterfoil.read_seq'),
    claim_count = 0
FROM mine
WHERE w.operation_id = mine.operation_id AND w.lane = mine.lane
RETURNING w.operation_id, w.lane, w.kick, w.read_seq
