-- After a bump: leases of older epochs are no leases, so their rows are due now. Latency only, no fence rests on it.
WITH old AS MATERIALIZED (
    SELECT operation_id, lane FROM counterfoil.wake
    WHERE fleet = :fleet AND lease_epoch < :epoch
    FOR UPDATE SKIP LOCKED
)
UPDATE counterfoil.wake AS w
SET due_at = counterfoil.ledger_now(), lease_token = NULL, lease_until = NULL, lease_epoch = NULL
FROM old
WHERE w.operation_id = old.operation_id AND w.lane = old.lane AND w.lease_epoch < :epoch
