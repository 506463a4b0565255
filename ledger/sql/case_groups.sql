-- Open cases, one line for one outage: by target and code, the oldest first. `case_id` and the call node are the oldest one's.
SELECT o.target, c.code, c.kind, count(*)::int AS count, min(c.opened_at) AS opened_at,
    (array_agg(c.id ORDER BY c.opened_at, c.id))[1] AS case_id,
    (array_agg(o.namespace ORDER BY c.opened_at, c.id))[1] AS namespace,
    (array_agg(o.call_node_id ORDER BY c.opened_at, c.id))[1] AS call_node_id,
    (array_agg(c.why ORDER BY c.opened_at, c.id))[1] AS why
FROM counterfoil.reconciliation_case AS c
JOIN counterfoil.operation AS o ON o.id = c.operation_id
WHERE o.fleet = :fleet AND c.closed_at IS NULL
  AND o.namespace = coalesce(CAST(:namespace AS text), o.namespace) AND o.target = coalesce(CAST(:target AS text), o.target)
  AND c.code = coalesce(CAST(:code AS text), c.code)
GROUP BY o.target, c.code, c.kind, CASE WHEN :each THEN c.id END
ORDER BY min(c.opened_at), o.target, c.code
LIMIT :limit
