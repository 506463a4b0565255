-- Is this the database that the fleet's epoch was written for? A promotion starts a new timeline; a restore into another cluster
-- has another system identifier. Run once per connection: a promotion ends connections. (Driver parameters, not SQLAlchemy's.)
-- NULL: a standby, which has no write position to ask for.
SELECT CASE WHEN NOT pg_is_in_recovery() THEN e.system_identifier = s.system_identifier
    AND e.timeline = ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int END
FROM counterfoil.execution_epoch AS e, pg_control_system() AS s
WHERE e.fleet = %(fleet)s
