-- What a lost database intended last may still be on its way: a lookup counts only after its `send_by`, the pinned one, or the
-- longest that there is.
UPDATE counterfoil.operation AS o
SET last_send_by = greatest(o.last_send_by, counterfoil.ledger_now() + make_interval(secs => coalesce(
    (SELECT (convert_from(p.body, 'UTF8')::json ->> 'send_by_s')::float8 FROM counterfoil.tool_policy AS p WHERE p.digest = o.policy_digest),
    60)))
WHERE o.fleet = :fleet AND o.state IN ('SUBMITTING', 'NOT_FOUND_SAFE')
