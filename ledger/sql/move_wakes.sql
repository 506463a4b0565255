-- Move existing wake rows of operations that this transaction has locked. Wake rows themselves are re-read by this UPDATE's own
-- row lock; the other side of the join is an array.
--   own row (token matches)  released or kept: due_at moves only if nobody kicked it since the claim
--   replaced                 a kick: due then, kick + 1, its lease untouched
--   otherwise                keeps the earlier due_at; a leased row is left alone
UPDATE counterfoil.wake AS w
SET due_at = CASE
        WHEN w.lease_token = v.token AND w.kick = v.kick
            THEN (SELECT counterfoil.ledger_now()) + make_interval(secs => v.delay_s + coalesce(v.lease_s, 0))
        WHEN w.lease_token = v.token THEN w.due_at
        WHEN v.replaces THEN (SELECT counterfoil.ledger_now()) + make_interval(secs => v.delay_s)
        WHEN w.lease_token IS NULL THEN least(w.due_at, (SELECT counterfoil.ledger_now()) + make_interval(secs => v.delay_s))
        ELSE w.due_at END,
    kick = w.kick + CASE WHEN v.replaces AND w.lease_token IS DISTINCT FROM v.token THEN 1 ELSE 0 END,
    lease_until = CASE WHEN w.lease_token IS DISTINCT FROM v.token THEN w.lease_until
        WHEN v.lease_s IS NOT NULL THEN (SELECT counterfoil.ledger_now()) + make_interval(secs => v.delay_s + v.lease_s) END,
    lease_epoch = CASE WHEN w.lease_token IS DISTINCT FROM v.token THEN w.lease_epoch WHEN v.lease_s IS NOT NULL THEN w.lease_epoch END,
    claim_count = CASE WHEN w.lease_token = v.token THEN 0 ELSE w.claim_count END,
    lease_token = CASE WHEN w.lease_token IS DISTINCT FROM v.token THEN w.lease_token WHEN v.lease_s IS NOT NULL THEN w.lease_token END
FROM (
    SELECT unnest(CAST(:ids AS uuid[])) AS id, unnest(CAST(:lanes AS text[])) AS lane, unnest(CAST(:delays_s AS float8[])) AS delay_s,
        unnest(CAST(:replaces AS bool[])) AS replaces, unnest(CAST(:tokens AS uuid[])) AS token, unnest(CAST(:kicks AS int[])) AS kick,
        unnest(CAST(:leases_s AS float8[])) AS lease_s
) AS v
WHERE w.operation_id = v.id AND w.lane = v.lane
RETURNING w.operation_id, w.lane, w.kick, w.read_seq, w.lease_token
