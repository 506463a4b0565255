-- What older epochs tried, long ago.
SELECT id FROM counterfoil.refused_write WHERE at < counterfoil.ledger_now() - make_interval(days => :days) LIMIT :batch
