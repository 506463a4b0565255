-- Messages that became no operation, long ago.
SELECT id FROM counterfoil.dead_letter WHERE received_at < counterfoil.ledger_now() - make_interval(days => :days) LIMIT :batch
