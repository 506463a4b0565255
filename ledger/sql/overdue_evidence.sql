-- Unconsumed evidence is itself due work, whatever the operation's state: its bearer died between evidence and transition.
-- The grace leaves a living bearer the time to consume its own.
SELECT DISTINCT operation_id FROM (
    SELECT e.operation_id FROM counterfoil.evidence AS e
    JOIN counterfoil.operation AS o ON o.id = e.operation_id
    WHERE e.fleet = :fleet AND e.consumed_at IS NULL AND o.target = ANY(CAST(:targets AS text[]))
      AND e.received_at < counterfoil.ledger_now() - make_interval(secs => :grace_s)
    ORDER BY e.received_at
    LIMIT :limit
) AS overdue
