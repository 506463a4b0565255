-- Rows that the new state does not name go, even if leased: their holder finds them gone and lets go. Rows that it needs and that do
-- not exist yet come; a row may be born already leased to its writer (submit -> poll without letting go). Operations and wake rows are
-- locked by this transaction, so nobody else adds or drops any, and no key is on both sides.
WITH dropped AS (
    DELETE FROM counterfoil.wake AS w
    USING (SELECT unnest(CAST(:gone_ids AS uuid[])) AS id, unnest(CAST(:gone_lanes AS text[])) AS lane) AS v
    WHERE w.operation_id = v.id AND w.lane = v.lane
)
INSERT INTO counterfoil.wake (operation_id, lane, fleet, target, due_at, lease_until, lease_token, lease_epoch, read_seq)
SELECT v.id, v.lane, :fleet, v.target,
    (SELECT counterfoil.ledger_now()) + make_interval(secs => v.delay_s + coalesce(v.lease_s, 0)),
    CASE WHEN v.lease_s IS NOT NULL THEN (SELECT counterfoil.ledger_now()) + make_interval(secs => v.delay_s + v.lease_s) END,
    CASE WHEN v.lease_s IS NOT NULL THEN v.token END,
    CASE WHEN v.lease_s IS NOT NULL THEN CAST(:epoch AS int8) END,
    nextval('counterfoil.read_seq')
FROM (
    SELECT unnest(CAST(:ids AS uuid[])) AS id, unnest(CAST(:lanes AS text[])) AS lane, unnest(CAST(:targets AS text[])) AS target,
        unnest(CAST(:delays_s AS float8[])) AS delay_s, unnest(CAST(:tokens AS uuid[])) AS token,
        unnest(CAST(:leases_s AS float8[])) AS lease_s
) AS v
ON CONFLICT (operation_id, lane) DO NOTHING
RETURNING operation_id, lane, kick, read_seq, lease_token
