-- This database is the fleet's from now on. Last statement of a recovery: until here every connection was refused.
UPDATE counterfoil.execution_epoch AS e
SET system_identifier = s.system_identifier,
    timeline = ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int
FROM pg_control_system() AS s
WHERE e.fleet = :fleet
