-- A server asked everyone to wait: kept here, so that a lost Redis does not reopen it. Only ever later.
UPDATE counterfoil.target_state
SET closed_until = greatest(closed_until, counterfoil.ledger_now() + make_interval(secs => :for_s))
WHERE fleet = :fleet AND target = :target
RETURNING extract(epoch FROM closed_until - counterfoil.ledger_now())::float8 AS closed_s
