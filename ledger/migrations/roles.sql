-- Roles: an owner that can't log in, two that work under it, and one that reads for metrics. Needs CREATEROLE; without it `counterfoil db upgrade` prints
-- this file and stops. Safe to run again and by two at once.
DO $roles$
DECLARE
    wanted text;
    -- Since 16 the maker of a role is a member that may not SET ROLE to it; before, there was no such privilege to ask for.
    needed text := CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['counterfoil_owner', 'counterfoil_app', 'counterfoil_producer', 'counterfoil_reader'] LOOP
        IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = wanted) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                NULL;
            END;
        END IF;
        IF NOT pg_has_role(current_user, wanted, needed) THEN
            EXECUTE format('GRANT %I TO CURRENT_USER', wanted);
        END IF;
    END LOOP;
END
$roles$;
