-- Journal and evidence by month, so that old months can be archived and dropped whole: nothing of either is ever deleted row by row.
-- Both are partitioned by the column that their key already begins with, so uniqueness holds over all partitions and the statements
-- of the release before go on as they are. Ids are UUIDv7: a range of them is a range of time. A journal line lies in the month in
-- which its operation was opened, a piece of evidence in the month in which it was heard.
-- The old tables become the first partitions, up to the end of this month: they are read once and nothing is written anew.

-- The smallest id of a moment.
CREATE FUNCTION counterfoil.id_floor(p_at timestamptz) RETURNS uuid
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT (lpad(to_hex(floor(extract(epoch FROM p_at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid $$;

-- The partitions with their bounds; `until_at` is the moment of the upper one. Without bounds: what lies in no month (ids that are no
-- UUIDv7; months that nobody had prepared).
CREATE VIEW counterfoil.partition AS
SELECT b.parent, b.name, b.lower_id, b.upper_id,
    to_timestamp(('x' || substr(replace(b.upper_id::text, '-', ''), 1, 12))::bit(48)::bigint / 1000.0) AS until_at
FROM (
    SELECT p.relname::text AS parent, c.relname::text AS name,
        substring(pg_get_expr(c.relpartbound, c.oid) FROM 'FROM \(''([^'']+)''\)')::uuid AS lower_id,
        substring(pg_get_expr(c.relpartbound, c.oid) FROM 'TO \(''([^'']+)''\)')::uuid AS upper_id
    FROM pg_inherits AS i
    JOIN pg_class AS c ON c.oid = i.inhrelid
    JOIN pg_class AS p ON p.oid = i.inhparent
    WHERE p.relkind = 'p' AND p.relnamespace = 'counterfoil'::regnamespace
) AS b;

ALTER TABLE counterfoil.journal RENAME TO journal_before;
ALTER INDEX counterfoil.journal_pkey RENAME TO journal_before_pkey;
CREATE TABLE counterfoil.journal (
    LIKE counterfoil.journal_before INCLUDING DEFAULTS,
    CONSTRAINT journal_pkey PRIMARY KEY (operation_id, seq)
) PARTITION BY RANGE (operation_id);
CREATE TABLE counterfoil.journal_rest PARTITION OF counterfoil.journal DEFAULT;

ALTER TABLE counterfoil.evidence RENAME TO evidence_before;
ALTER INDEX counterfoil.evidence_pkey RENAME TO evidence_before_pkey;
ALTER INDEX counterfoil.evidence_unconsumed RENAME TO evidence_before_unconsumed;
ALTER INDEX counterfoil.evidence_operation RENAME TO evidence_before_operation;
DROP TRIGGER evidence_never_forgotten ON counterfoil.evidence_before;
CREATE TABLE counterfoil.evidence (
    LIKE counterfoil.evidence_before INCLUDING DEFAULTS,
    CONSTRAINT evidence_pkey PRIMARY KEY (id)
) PARTITION BY RANGE (id);
CREATE TABLE counterfoil.evidence_rest PARTITION OF counterfoil.evidence DEFAULT;
COMMENT ON TABLE counterfoil.evidence IS
    'What a server said, exact bytes. Appended without any fence; consumed_at is the only thing that changes.';
CREATE INDEX evidence_unconsumed ON counterfoil.evidence (fleet, received_at) WHERE consumed_at IS NULL;
CREATE INDEX evidence_operation ON counterfoil.evidence (operation_id);
-- What is not consumed yet is asked for under each operation's lock: in the partitions of old months this index is empty.
CREATE INDEX evidence_waiting ON counterfoil.evidence (operation_id) WHERE consumed_at IS NULL;

DO $move$
DECLARE
    v_end uuid := counterfoil.id_floor(date_trunc('month', counterfoil.ledger_now() AT TIME ZONE 'UTC' + interval '1 month') AT TIME ZONE 'UTC');
BEGIN
    WITH strays AS (DELETE FROM counterfoil.journal_before WHERE operation_id >= v_end RETURNING *)
    INSERT INTO counterfoil.journal_rest SELECT * FROM strays;
    WITH strays AS (DELETE FROM counterfoil.evidence_before WHERE id >= v_end RETURNING *)
    INSERT INTO counterfoil.evidence_rest SELECT * FROM strays;
    EXECUTE format('ALTER TABLE counterfoil.journal ATTACH PARTITION counterfoil.journal_before FOR VALUES FROM (MINVALUE) TO (%L)', v_end);
    EXECUTE format('ALTER TABLE counterfoil.evidence ATTACH PARTITION counterfoil.evidence_before FOR VALUES FROM (MINVALUE) TO (%L)', v_end);
END
$move$;

-- Append-only. A partition is dropped whole, by housekeeping; its rows are not to be deleted and it is not to be emptied. Row triggers
-- come with a partition, statement triggers are each partition's own.
CREATE TRIGGER evidence_never_forgotten BEFORE DELETE ON counterfoil.evidence
    FOR EACH ROW EXECUTE FUNCTION counterfoil.refuse_change();
CREATE TRIGGER evidence_no_truncate BEFORE TRUNCATE ON counterfoil.evidence
    FOR EACH STATEMENT EXECUTE FUNCTION counterfoil.refuse_change();
CREATE TRIGGER journal_no_truncate BEFORE TRUNCATE ON counterfoil.journal
    FOR EACH STATEMENT EXECUTE FUNCTION counterfoil.refuse_change();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON counterfoil.evidence_before
    FOR EACH STATEMENT EXECUTE FUNCTION counterfoil.refuse_change();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON counterfoil.evidence_rest
    FOR EACH STATEMENT EXECUTE FUNCTION counterfoil.refuse_change();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON counterfoil.journal_before
    FOR EACH STATEMENT EXECUTE FUNCTION counterfoil.refuse_change();
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON counterfoil.journal_rest
    FOR EACH STATEMENT EXECUTE FUNCTION counterfoil.refuse_change();

-- Makes the partitions of this month and the next p_ahead; returns how many it made. Called by workers now and then, by any number at
-- once. ATTACH lets writers of the other partitions go on (CREATE … PARTITION OF would lock them out); it locks the rest partition for a
-- moment, so it waits 200 ms for it at most and is tried again later. A month of which the rest holds rows already stays there.
CREATE FUNCTION counterfoil.make_partitions(p_ahead int) RETURNS int
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, counterfoil, pg_temp SET lock_timeout = '200ms'
AS $$
DECLARE
    v_month timestamptz;
    v_parent text;
    v_name text;
    v_made int := 0;
BEGIN
    IF p_ahead NOT BETWEEN 0 AND 24 THEN
        RAISE EXCEPTION 'p_ahead is % months, not 0 to 24', p_ahead USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF NOT pg_try_advisory_xact_lock(7401002) THEN
        RETURN 0;
    END IF;
    FOREACH v_parent IN ARRAY ARRAY['journal', 'evidence'] LOOP
        FOR v_month IN
            SELECT m AT TIME ZONE 'UTC'
            FROM generate_series(date_trunc('month', ledger_now() AT TIME ZONE 'UTC'),
                date_trunc('month', ledger_now() AT TIME ZONE 'UTC') + make_interval(months => p_ahead), interval '1 month') AS m
            ORDER BY m
        LOOP
            CONTINUE WHEN EXISTS (SELECT 1 FROM partition AS p WHERE p.parent = v_parent AND p.upper_id > id_floor(v_month));
            v_name := v_parent || to_char(v_month AT TIME ZONE 'UTC', '_YYYY_MM');
            BEGIN
                EXECUTE format('CREATE TABLE counterfoil.%I (LIKE counterfoil.%I INCLUDING DEFAULTS)', v_name, v_parent);
                EXECUTE format('ALTER TABLE counterfoil.%I ATTACH PARTITION counterfoil.%I FOR VALUES FROM (%L) TO (%L)',
                    v_parent, v_name, id_floor(v_month), id_floor((v_month AT TIME ZONE 'UTC' + interval '1 month') AT TIME ZONE 'UTC'));
                EXECUTE format('CREATE TRIGGER no_truncate BEFORE TRUNCATE ON counterfoil.%I'
                    ' FOR EACH STATEMENT EXECUTE FUNCTION counterfoil.refuse_change()', v_name);
                v_made := v_made + 1;
            EXCEPTION WHEN check_violation OR duplicate_table THEN
                NULL;
            END;
        END LOOP;
    END LOOP;
    RETURN v_made;
END
$$;
REVOKE EXECUTE ON FUNCTION counterfoil.make_partitions(int), counterfoil.id_floor(timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION counterfoil.make_partitions(int) TO counterfoil_app;
SELECT counterfoil.make_partitions(2);

GRANT SELECT, INSERT ON counterfoil.journal, counterfoil.evidence TO counterfoil_app;
GRANT UPDATE (consumed_at) ON counterfoil.evidence TO counterfoil_app;
GRANT SELECT ON counterfoil.journal TO counterfoil_producer;
GRANT SELECT ON counterfoil.partition TO counterfoil_app, counterfoil_reader;
-- Through their parents alone.
REVOKE ALL ON counterfoil.journal_before, counterfoil.evidence_before FROM counterfoil_app, counterfoil_producer;

-- Which releases may work here: a migration that an older release can't live with raises the floor to its own version.
CREATE TABLE counterfoil.schema_floor (
    one BOOLEAN DEFAULT true NOT NULL,
    version TEXT NOT NULL,
    why TEXT NOT NULL,
    PRIMARY KEY (one),
    CONSTRAINT schema_floor_one CHECK (one)
);
COMMENT ON TABLE counterfoil.schema_floor IS 'The oldest schema version whose release may still work on this ledger, and why.';
INSERT INTO counterfoil.schema_floor (version, why) VALUES ('0005', 'the first release that looks at this');
GRANT SELECT ON counterfoil.schema_floor TO counterfoil_app, counterfoil_producer, counterfoil_reader;
