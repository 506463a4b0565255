-- Ready rows that were acknowledged long ago. Their ids are derived and their receipts stay, so none is ever written again.
SELECT x.id FROM counterfoil.namespace AS n
CROSS JOIN LATERAL (
    SELECT r.id FROM counterfoil.ready_outbox AS r
    WHERE r.namespace = n.namespace AND r.acked_at < counterfoil.ledger_now() - make_interval(days => :days)
    LIMIT :batch
) AS x
LIMIT :batch
