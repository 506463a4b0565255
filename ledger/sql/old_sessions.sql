-- Sessions of servers that were ended: sealed secrets without a use.
SELECT s.id FROM counterfoil.remote_session AS s
WHERE s.ended_at < counterfoil.ledger_now() - make_interval(days => :days)
  AND NOT EXISTS (SELECT FROM counterfoil.operation AS o WHERE o.session_id = s.id AND o.audit_ends_at > counterfoil.ledger_now())
LIMIT :batch
