-- No orphan: every non-terminal operation has a wake row that is not long overdue, or an open case; and no evidence lies unconsumed
-- for 30 s. Must return nothing. A leased row is due at its lease's end, so a dead holder shows here as well.
SELECT o.id, o.state, 'no wake row and no open case' AS why
FROM counterfoil.operation AS o
WHERE o.fleet = :fleet AND o.state NOT IN ('ACCEPTED', 'CANCELLED_ACCEPTED', 'REFUSED')
  AND NOT EXISTS (SELECT 1 FROM counterfoil.wake AS w WHERE w.operation_id = o.id)
  AND NOT EXISTS (SELECT 1 FROM counterfoil.reconciliation_case AS c WHERE c.operation_id = o.id AND c.closed_at IS NULL)
UNION ALL
SELECT w.operation_id, w.lane, 'overdue by more than ' || :bound_s || ' s'
FROM counterfoil.wake AS w
WHERE w.fleet = :fleet AND w.due_at < counterfoil.ledger_now() - make_interval(secs => :bound_s)
UNION ALL
SELECT DISTINCT e.operation_id, e.kind, 'evidence unconsumed for 30 s'
FROM counterfoil.evidence AS e
WHERE e.fleet = :fleet AND e.consumed_at IS NULL AND e.received_at < counterfoil.ledger_now() - interval '30 s'
