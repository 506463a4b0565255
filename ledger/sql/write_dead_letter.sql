-- One letter, unless the fleet had its fill in this hour: whoever reaches the broker could fill the disk otherwise. Bodies have a
-- budget of their own, so that many large ones cost the rows behind them only their bodies. Writers side by side may each see room
-- for one more: the caps are bounds on disk, not counts that anything depends on. octet_length reads no stored-aside bytes.
WITH hour AS (
    SELECT count(*) AS letters, coalesce(sum(octet_length(d.body)), 0) AS bytes
    FROM counterfoil.dead_letter AS d
    WHERE d.fleet = :fleet AND d.received_at > counterfoil.ledger_now() - interval '1 hour'
)
INSERT INTO counterfoil.dead_letter (id, fleet, code, why, key_id, body_digest, body, received_at)
SELECT :id, :fleet, :code, :why, :key_id, :body_digest,
    CASE WHEN hour.bytes + octet_length(CAST(:body AS bytea)) <= :max_bytes THEN CAST(:body AS bytea) ELSE ''::bytea END,
    counterfoil.ledger_now()
FROM hour
WHERE hour.letters < :max_letters
RETURNING id
