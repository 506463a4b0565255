-- For how long the months of journal and evidence are prepared. Behind the last one everything goes into the rest.
SELECT parent AS "table", extract(epoch FROM max(until_at) - counterfoil.ledger_now())::float8 AS ahead_s
FROM counterfoil.partition
GROUP BY 1
