-- Lease due wake rows of one lane and target. Touches wake rows alone (a claim that also wrote operations deadlocked 58 times
-- in 3,779), one statement, one round trip, so a stopped client can't hold a bump.
-- Fence: `fence` locks the epoch row and re-reads it; no row there means no row here. The wake rows are re-read by their own lock.
-- A lease of an older epoch is no lease. Taking over an expired lease counts as a claim without an outcome (five: quarantine).
-- While leased, due_at is the lease's end, so a dead worker's row is simply due again and the index never holds held rows.
WITH fence AS MATERIALIZED (
    SELECT epoch FROM counterfoil.execution_epoch WHERE fleet = :fleet AND epoch = :epoch FOR SHARE
), due AS MATERIALIZED (
    SELECT w.operation_id, w.lane, w.due_at, w.lease_token IS NOT NULL AND w.lease_epoch = :epoch AS taken_over
    FROM fence, counterfoil.wake AS w
    WHERE w.fleet = :fleet AND w.lane = :lane AND w.target = :target
      AND w.due_at <= counterfoil.ledger_now() + make_interval(secs => :ahead_s)
      AND (w.lease_until IS NULL OR w.lease_until <= counterfoil.ledger_now() OR w.lease_epoch < :epoch)
    ORDER BY w.due_at
    LIMIT :limit
    FOR UPDATE OF w SKIP LOCKED
)
UPDATE counterfoil.wake AS w
SET lease_token = :token,
    lease_epoch = :epoch,
    lease_until = greatest(due.due_at, (SELECT counterfoil.ledger_now())) + make_interval(secs => :lease_s),
    due_at = greatest(due.due_at, (SELECT counterfoil.ledger_now())) + make_interval(secs => :lease_s),
    read_seq = nextval('counterfoil.read_seq'),
    claim_count = w.claim_count + CASE WHEN due.taken_over THEN 1 ELSE 0 END
FROM due
WHERE w.operation_id = due.operation_id AND w.lane = due.lane
RETURNING w.operation_id, w.kick, w.read_seq, w.claim_count,
    extract(epoch FROM due.due_at - (SELECT counterfoil.ledger_now()))::float8 AS due_in_s
