-- All wake rows of operations that this transaction has locked, themselves locked in order and read as they are under the lock:
-- third statement of an intent and of a transition (epoch, operation, wake). A release holds wake rows without their operations; beside
-- writes that lock in the order of their plan it deadlocked once in 125.
SELECT w.operation_id, w.lane, w.lease_token, w.lease_epoch, w.lease_until > (SELECT counterfoil.ledger_now()) AS alive
FROM counterfoil.wake AS w
WHERE w.operation_id = ANY(CAST(:ids AS uuid[]))
ORDER BY w.operation_id, w.lane
FOR UPDATE OF w
