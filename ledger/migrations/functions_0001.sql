CREATE SEQUENCE counterfoil.read_seq;
COMMENT ON SEQUENCE counterfoil.read_seq IS 'Orders readings of one task, whoever made them: drawn at each claim and renewal.';

CREATE FUNCTION counterfoil.ledger_now() RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE
AS $$ SELECT coalesce((SELECT c.frozen_at FROM counterfoil.ledger_clock AS c), clock_timestamp()) $$;
COMMENT ON FUNCTION counterfoil.ledger_now() IS
    'The only clock of a safety decision. STABLE: a volatile one drops the index bound (2 to 3.7 ms instead of 0.01).';

CREATE FUNCTION counterfoil.refuse_change() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    RAISE EXCEPTION '% is immutable', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END
$$;

CREATE TRIGGER terminal_receipt_immutable BEFORE UPDATE OR DELETE ON counterfoil.terminal_receipt
    FOR EACH ROW EXECUTE FUNCTION counterfoil.refuse_change();
CREATE TRIGGER terminal_receipt_no_truncate BEFORE TRUNCATE ON counterfoil.terminal_receipt
    FOR EACH STATEMENT EXECUTE FUNCTION counterfoil.refuse_change();
CREATE TRIGGER call_node_never_forgotten BEFORE DELETE ON counterfoil.call_node
    FOR EACH ROW EXECUTE FUNCTION counterfoil.refuse_change();
CREATE TRIGGER call_node_no_truncate BEFORE TRUNCATE ON counterfoil.call_node
    FOR EACH STATEMENT EXECUTE FUNCTION counterfoil.refuse_change();
CREATE TRIGGER evidence_never_forgotten BEFORE DELETE ON counterfoil.evidence
    FOR EACH ROW EXECUTE FUNCTION counterfoil.refuse_change();

-- The producers' door: one call inserts the register row, the operation and its wake row, in the producer's own transaction.
-- Answers opened | same | conflict | create_off | no_fleet | no_target | other_fleet, and the operation's id.
CREATE FUNCTION counterfoil.open_operation(
    p_id uuid, p_fleet text, p_namespace text, p_call_node_id text, p_digest bytea, p_target text, p_tool text, p_principal text,
    p_arguments bytea, p_submission_key uuid
) RETURNS TABLE (verdict text, operation_id uuid)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, counterfoil, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_epoch bigint;
    v_known record;
    v_fleet text;
BEGIN
    SELECT e.epoch INTO v_epoch FROM execution_epoch AS e WHERE e.fleet = p_fleet FOR SHARE;
    IF v_epoch IS NULL THEN
        RETURN QUERY SELECT 'no_fleet', NULL::uuid;
        RETURN;
    END IF;
    -- Known first: a repeat is answered whatever the switches say now.
    SELECT n.request_digest, n.operation_id INTO v_known
    FROM call_node AS n WHERE n.namespace = p_namespace AND n.call_node_id = p_call_node_id;
    IF FOUND THEN
        RETURN QUERY SELECT CASE WHEN v_known.request_digest = p_digest THEN 'same' ELSE 'conflict' END, v_known.operation_id;
        RETURN;
    END IF;
    IF EXISTS (SELECT 1 FROM control AS c WHERE c.fleet = p_fleet AND NOT c.create_on) THEN
        RETURN QUERY SELECT 'create_off', NULL::uuid;
        RETURN;
    END IF;
    IF NOT EXISTS (SELECT 1 FROM target_state AS t WHERE t.fleet = p_fleet AND t.target = p_target) THEN
        RETURN QUERY SELECT 'no_target', NULL::uuid;
        RETURN;
    END IF;
    INSERT INTO namespace AS n (namespace, fleet) VALUES (p_namespace, p_fleet) ON CONFLICT DO NOTHING;
    SELECT n.fleet INTO v_fleet FROM namespace AS n WHERE n.namespace = p_namespace;
    IF v_fleet <> p_fleet THEN
        RETURN QUERY SELECT 'other_fleet', NULL::uuid;
        RETURN;
    END IF;
    INSERT INTO call_node AS n (namespace, call_node_id, request_digest, operation_id)
    VALUES (p_namespace, p_call_node_id, p_digest, p_id) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        -- Another door was first; its commit ended our wait, so its row is visible to this new statement.
        SELECT n.request_digest, n.operation_id INTO v_known
        FROM call_node AS n WHERE n.namespace = p_namespace AND n.call_node_id = p_call_node_id;
        RETURN QUERY SELECT CASE WHEN v_known.request_digest = p_digest THEN 'same' ELSE 'conflict' END, v_known.operation_id;
        RETURN;
    END IF;
    INSERT INTO operation (id, fleet, namespace, call_node_id, request_digest, target, tool, principal, arguments, submission_key, state,
        execution_epoch, journal_seq, created_at, updated_at)
    VALUES (p_id, p_fleet, p_namespace, p_call_node_id, p_digest, p_target, p_tool, p_principal, p_arguments, p_submission_key,
        'SUBMITTING', v_epoch, 1, ledger_now(), ledger_now());
    INSERT INTO wake (operation_id, lane, fleet, target, due_at) VALUES (p_id, 'submit', p_fleet, p_target, ledger_now());
    INSERT INTO journal (operation_id, seq, at, epoch, actor, event, target, lane)
    VALUES (p_id, 1, ledger_now(), v_epoch, 'door', 'opened', 'SUBMITTING', 'door');
    RETURN QUERY SELECT 'opened', p_id;
END
$$;

-- The text that a receipt's digest is taken over: RFC 8785, keys in order. Python makes the same text to verify.
CREATE FUNCTION counterfoil.receipt_text(r counterfoil.terminal_receipt) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, counterfoil, pg_temp
AS $$
    SELECT '{"accepted_at":' || to_json(to_char(r.accepted_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))::text
        || ',"attempt":' || r.attempt
        || ',"call_node_id":' || to_json(r.call_node_id)::text
        || ',"cancel_generation":' || r.cancel_generation
        || ',"descriptor_digest":' || coalesce(to_json(encode(r.descriptor_digest, 'hex'))::text, 'null')
        || ',"effects_possible":' || r.effects_possible::text
        || ',"error_code":' || coalesce(to_json(r.error_code)::text, 'null')
        || ',"execution_epoch":' || r.execution_epoch
        || ',"id":' || to_json(r.id::text)::text
        || ',"namespace":' || to_json(r.namespace)::text
        || ',"operation_id":' || to_json(r.operation_id::text)::text
        || ',"outcome":' || to_json(r.outcome)::text
        || ',"principal":' || to_json(r.principal)::text
        || ',"protocol":' || coalesce(to_json(r.protocol)::text, 'null')
        || ',"request_digest":' || to_json(encode(r.request_digest, 'hex'))::text
        || ',"result_digest":' || coalesce(to_json(encode(r.result_digest, 'hex'))::text, 'null')
        || ',"result_pointer":' || coalesce(to_json(r.result_pointer)::text, 'null')
        || ',"state":' || to_json(r.state)::text
        || ',"submission_key":' || to_json(r.submission_key::text)::text
        || ',"target":' || to_json(r.target)::text
        || ',"task_id":' || coalesce(to_json(r.task_id)::text, 'null')
        || ',"terminal_status":' || coalesce(to_json(r.terminal_status)::text, 'null')
        || ',"tool":' || to_json(r.tool)::text
        || ',"tool_version":' || coalesce(to_json(r.tool_version)::text, 'null')
        || ',"unanswered_rounds":' || r.unanswered_rounds
        || '}'
$$;

-- The only writer of receipts: one round trip for a batch, one verdict a row:
--   accepted | same | differs | stale_epoch | generation | state | failed
-- Epoch FOR SHARE first, operations locked in order of id, compared with IS NOT DISTINCT FROM against what the caller saw; then
-- receipt, ready row, register, state, wake rows and journal in this same call. A failing row costs the others nothing.
CREATE FUNCTION counterfoil.accept_terminal(
    p_fleet text, p_epoch bigint, p_ids uuid[], p_receipt_ids uuid[], p_ready_ids uuid[], p_namespaces text[], p_call_node_ids text[],
    p_request_digests bytea[], p_task_ids text[], p_tool_versions text[], p_settle_as text[], p_generations int[],
    p_result_digests bytea[], p_lanes text[]
) RETURNS TABLE (operation_id uuid, verdict text, receipt_id uuid)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, counterfoil, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_epoch bigint;
    o record;
    v_receipt terminal_receipt;
    v_now timestamptz;
BEGIN
    SELECT e.epoch INTO v_epoch FROM execution_epoch AS e WHERE e.fleet = p_fleet FOR SHARE;
    IF v_epoch IS DISTINCT FROM p_epoch THEN
        INSERT INTO refused_write (id, operation_id, fleet, code, epoch, what)
        SELECT gen_random_uuid(), i, p_fleet, 'E_STALE_EPOCH', p_epoch, 'accept_terminal' FROM unnest(p_ids) AS i;
        RETURN QUERY SELECT i, 'stale_epoch', NULL::uuid FROM unnest(p_ids) AS i;
        RETURN;
    END IF;
    FOR o IN
        SELECT w.*, a.receipt_id AS a_receipt_id, a.ready_id, a.a_namespace, a.a_call_node_id, a.a_request_digest, a.a_task_id,
            a.a_tool_version, a.a_settle_as, a.a_generation, a.a_result_digest, a.a_lane
        FROM unnest(p_ids, p_receipt_ids, p_ready_ids, p_namespaces, p_call_node_ids, p_request_digests, p_task_ids, p_tool_versions,
            p_settle_as, p_generations, p_result_digests, p_lanes)
            AS a(id, receipt_id, ready_id, a_namespace, a_call_node_id, a_request_digest, a_task_id, a_tool_version, a_settle_as,
                a_generation, a_result_digest, a_lane)
        JOIN operation AS w ON w.id = a.id
        ORDER BY w.id
        FOR NO KEY UPDATE OF w
    LOOP
        BEGIN
            v_now := ledger_now();
            IF o.settle_as IS NULL OR o.state IN ('ACCEPTED', 'CANCELLED_ACCEPTED', 'REFUSED') THEN
                -- A repeat. The winner's receipt is read and compared, never passed over in silence.
                SELECT t.* INTO v_receipt FROM terminal_receipt AS t
                WHERE t.namespace = o.a_namespace AND t.call_node_id = o.a_call_node_id;
                RETURN QUERY SELECT o.id, CASE
                    WHEN v_receipt.id IS NULL THEN 'state'
                    WHEN v_receipt.operation_id = o.id AND v_receipt.state = o.a_settle_as
                        AND v_receipt.result_digest IS NOT DISTINCT FROM o.a_result_digest THEN 'same'
                    ELSE 'differs' END, v_receipt.id;
                CONTINUE;
            END IF;
            IF o.cancel_generation <> o.a_generation THEN
                RETURN QUERY SELECT o.id, 'generation', NULL::uuid;
                CONTINUE;
            END IF;
            IF o.fleet <> p_fleet OR o.namespace <> o.a_namespace OR o.call_node_id <> o.a_call_node_id
                OR o.request_digest <> o.a_request_digest OR o.task_id IS DISTINCT FROM o.a_task_id
                OR o.tool_version IS DISTINCT FROM o.a_tool_version OR o.settle_as <> o.a_settle_as
                OR o.result_digest IS DISTINCT FROM o.a_result_digest OR o.execution_epoch > p_epoch THEN
                RETURN QUERY SELECT o.id, 'state', NULL::uuid;
                CONTINUE;
            END IF;
            IF o.result_digest IS NOT NULL AND NOT EXISTS (
                SELECT 1 FROM operation_result AS b
                WHERE b.operation_id = o.id AND b.digest = o.result_digest AND sha256(b.body) = o.result_digest
            ) THEN
                RETURN QUERY SELECT o.id, 'state', NULL::uuid;
                CONTINUE;
            END IF;
            v_receipt := ROW(
                o.a_receipt_id, o.namespace, o.call_node_id, o.id, o.request_digest, o.submission_key, o.target, o.tool, o.tool_version,
                o.descriptor_digest, o.principal, o.protocol, o.task_id, o.settle_as, o.outcome, o.terminal_status, o.error_code,
                o.effects_possible, o.attempt, o.cancel_generation, o.unanswered_rounds, p_epoch,
                o.result_digest, o.result_pointer, '\x00'::bytea, v_now
            )::terminal_receipt;
            v_receipt.digest := sha256(convert_to(receipt_text(v_receipt), 'UTF8'));
            INSERT INTO terminal_receipt VALUES (v_receipt.*) ON CONFLICT DO NOTHING;
            IF NOT FOUND THEN
                RETURN QUERY SELECT o.id, 'differs', NULL::uuid;
                CONTINUE;
            END IF;
            INSERT INTO ready_outbox (id, namespace, call_node_id, receipt_id, created_at)
            VALUES (o.ready_id, o.namespace, o.call_node_id, v_receipt.id, v_now);
            UPDATE call_node AS n SET outcome = o.outcome, receipt_id = v_receipt.id, receipt_digest = v_receipt.digest
            WHERE n.namespace = o.namespace AND n.call_node_id = o.call_node_id;
            UPDATE operation AS w SET state = o.settle_as, settle_as = NULL, execution_epoch = p_epoch,
                journal_seq = w.journal_seq + 1, updated_at = v_now
            WHERE w.id = o.id;
            DELETE FROM wake AS w WHERE w.operation_id = o.id;
            INSERT INTO journal (operation_id, seq, at, epoch, actor, event, source, target, lane, code)
            VALUES (o.id, o.journal_seq + 1, v_now, p_epoch, 'accept_terminal', 'accepted', o.state, o.settle_as, o.a_lane, o.error_code);
            RETURN QUERY SELECT o.id, 'accepted', v_receipt.id;
        EXCEPTION WHEN data_exception OR integrity_constraint_violation THEN
            RETURN QUERY SELECT o.id, 'failed', NULL::uuid;
        END;
    END LOOP;
END
$$;

REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA counterfoil FROM PUBLIC;
GRANT USAGE ON SCHEMA counterfoil TO counterfoil_app, counterfoil_producer;
GRANT EXECUTE ON FUNCTION counterfoil.ledger_now() TO counterfoil_app, counterfoil_producer;
GRANT EXECUTE ON FUNCTION counterfoil.open_operation(uuid, text, text, text, bytea, text, text, text, bytea, uuid)
    TO counterfoil_app, counterfoil_producer;
GRANT EXECUTE ON FUNCTION counterfoil.accept_terminal(
    text, bigint, uuid[], uuid[], uuid[], text[], text[], bytea[], text[], text[], text[], int[], bytea[], text[]) TO counterfoil_app;
GRANT USAGE ON SEQUENCE counterfoil.read_seq TO counterfoil_app;
GRANT SELECT ON ALL TABLES IN SCHEMA counterfoil TO counterfoil_app;
GRANT INSERT, UPDATE, DELETE ON counterfoil.wake TO counterfoil_app;
GRANT INSERT, UPDATE ON counterfoil.operation, counterfoil.intent, counterfoil.reconciliation_case, counterfoil.target_state,
    counterfoil.control TO counterfoil_app;
GRANT INSERT ON counterfoil.evidence, counterfoil.journal, counterfoil.operation_result, counterfoil.tool_descriptor,
    counterfoil.tool_policy, counterfoil.refused_write TO counterfoil_app;
GRANT UPDATE (consumed_at) ON counterfoil.evidence TO counterfoil_app;
GRANT UPDATE ON counterfoil.execution_epoch TO counterfoil_app;
GRANT UPDATE (lease_until, deliveries, acked_at) ON counterfoil.ready_outbox TO counterfoil_app, counterfoil_producer;
GRANT SELECT ON counterfoil.ledger_identity, counterfoil.ledger_clock, counterfoil.execution_epoch, counterfoil.call_node, counterfoil.operation,
    counterfoil.terminal_receipt, counterfoil.operation_result, counterfoil.ready_outbox, counterfoil.reconciliation_case,
    counterfoil.target_state, counterfoil.wake, counterfoil.journal TO counterfoil_producer;

INSERT INTO counterfoil.ledger_identity DEFAULT VALUES;
INSERT INTO counterfoil.execution_epoch (fleet, epoch, system_identifier, timeline)
SELECT 'main', 1, s.system_identifier, ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int
FROM pg_control_system() AS s;
INSERT INTO counterfoil.control (fleet) VALUES ('main');
