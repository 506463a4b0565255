-- Messages between two moments that became no operation.
SELECT code, count(*)::float8 AS n FROM counterfoil.dead_letter
WHERE fleet = :fleet AND received_at > :since AND received_at <= :until
GROUP BY 1
