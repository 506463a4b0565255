-- One row about the fleet: its epoch and switch, when a tick of beat last came through, evidence that nobody has consumed, webhooks.
SELECT e.epoch::float8 AS epoch, extract(epoch FROM counterfoil.ledger_now() - e.bumped_at)::float8 AS bumped_s,
    coalesce(c.create_on, true)::int::float8 AS create_on, extract(epoch FROM counterfoil.ledger_now() - p.seen_at)::float8 AS beat_s,
    v.n::float8 AS evidence, coalesce(extract(epoch FROM counterfoil.ledger_now() - v.oldest), 0)::float8 AS evidence_s,
    w.failing::float8 AS webhooks_failing, w.stopped::float8 AS webhooks_stopped
FROM counterfoil.execution_epoch AS e
LEFT JOIN counterfoil.control AS c ON c.fleet = e.fleet
LEFT JOIN counterfoil.pulse AS p ON p.fleet = e.fleet AND p.name = 'beat'
CROSS JOIN LATERAL (
    SELECT count(*) AS n, min(received_at) AS oldest FROM counterfoil.evidence
    WHERE fleet = e.fleet AND consumed_at IS NULL
) AS v
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE h.failures > 0 AND h.stopped_at IS NULL) AS failing, count(h.stopped_at) AS stopped
    FROM counterfoil.webhook_endpoint AS h JOIN counterfoil.namespace AS n ON n.namespace = h.namespace AND n.fleet = e.fleet
) AS w
WHERE e.fleet = :fleet
