-- Sessions that no open operation and no audit needs any more. `idle_s` is longer than any process believes a contract, so no new operation can
-- still be on its way into one of these.
WITH over AS MATERIALIZED (
    SELECT s.id FROM counterfoil.remote_session AS s
    WHERE s.fleet = :fleet AND s.ended_at IS NULL
      AND s.begun_at < counterfoil.ledger_now() - make_interval(secs => :idle_s)
      AND NOT EXISTS (
        SELECT 1 FROM counterfoil.operation AS o
        WHERE o.session_id = s.id
          AND (o.state NOT IN ('ACCEPTED', 'CANCELLED_ACCEPTED', 'REFUSED') OR o.audit_ends_at > counterfoil.ledger_now())
      )
    ORDER BY s.begun_at
    LIMIT :limit
    FOR UPDATE SKIP LOCKED
)
UPDATE counterfoil.remote_session AS s SET ended_at = counterfoil.ledger_now()
FROM over WHERE s.id = over.id
RETURNING s.id, s.target, s.credential, s.sealed
