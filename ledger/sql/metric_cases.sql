-- Open cases by what they ask, and how long the oldest has waited for a person.
SELECT k.kind, k.code, count(*)::float8 AS n, extract(epoch FROM counterfoil.ledger_now() - min(k.opened_at))::float8 AS oldest_s
FROM counterfoil.reconciliation_case AS k
JOIN counterfoil.operation AS o ON o.id = k.operation_id
WHERE k.closed_at IS NULL AND o.fleet = :fleet
GROUP BY 1, 2
