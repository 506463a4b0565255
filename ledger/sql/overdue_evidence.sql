-- Unconsumed evidence is itself due work, whatever the operation's state: its bearer died between evidence and transition.
-- The grace leaves a living bearer the time to consume its own.
SELECT DISTINCT operation_id FROM (
    SELECT operation_id FROM counterfoil.evidence
    WHERE fleet = :fleet AND consumed_at IS NULL
      AND received_at < counterfoil.ledger_now() - make_interval(secs => :grace_s)
    ORDER BY received_at
    LIMIT :limit
) AS overdue
