-- Months of the journal or of the evidence that ended long ago, oldest first; before them tables that a run detached and did not come
-- to drop.
SELECT c.relname::text AS name, greatest(c.reltuples, 0)::int8 AS rows, pg_total_relation_size(c.oid) AS size_bytes,
    p.name IS NOT NULL AS attached
FROM pg_class AS c
LEFT JOIN counterfoil.partition AS p ON p.name = c.relname AND p.parent = :parent
WHERE c.relnamespace = 'counterfoil'::regnamespace AND c.relkind = 'r' AND c.relname ~ ('^' || :parent || '_(before|\d{4}_\d{2})$')
  AND (p.name IS NULL OR p.until_at < counterfoil.ledger_now() - make_interval(days => :days))
ORDER BY attached, p.until_at
