-- What older epochs tried between two moments.
SELECT code, what, count(*)::float8 AS n FROM counterfoil.refused_write
WHERE fleet = :fleet AND at > :since AND at <= :until
GROUP BY 1, 2
