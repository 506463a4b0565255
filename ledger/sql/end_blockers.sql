-- Whoever holds a lock on the epoch table inside a transaction and does nothing: a stopped or cut-off client.
SELECT pg_terminate_backend(a.pid)
FROM pg_locks AS l
JOIN pg_stat_activity AS a ON a.pid = l.pid
WHERE l.relation = 'counterfoil.execution_epoch'::regclass AND l.granted AND a.pid <> pg_backend_pid()
  AND a.datname = current_database()
  AND (a.state LIKE 'idle in transaction%' OR a.state_change < clock_timestamp() - interval '1 s')
