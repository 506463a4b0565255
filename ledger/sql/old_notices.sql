-- Notices that were acknowledged long ago.
SELECT x.id FROM counterfoil.namespace AS n
CROSS JOIN LATERAL (
    SELECT m.id FROM counterfoil.notice AS m
    WHERE m.namespace = n.namespace AND m.acked_at < counterfoil.ledger_now() - make_interval(days => :days)
    LIMIT :batch
) AS x
LIMIT :batch
