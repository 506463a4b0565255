-- The producers' door: one call inserts the register row, the operation and its wake row, in the producer's own transaction.
-- Answers opened | same | conflict | create_off | draining | no_fleet | no_target | other_fleet, and the operation's id; or
-- not_selected without one: this call node is the old path's business, for ever (SPEC section 8). What was said first stands,
-- whatever the percentage becomes. A shadow's own life is an operation in a namespace of its own, without a ready row.
CREATE OR REPLACE FUNCTION counterfoil.open_operation(
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
    v_rollout record;
    v_mode text := 'live';
    v_stopped text;
    v_namespace text := p_namespace;
    v_shadow boolean := false;
BEGIN
    SELECT e.epoch INTO v_epoch FROM execution_epoch AS e WHERE e.fleet = p_fleet FOR SHARE;
    IF v_epoch IS NULL THEN
        RETURN QUERY SELECT 'no_fleet', NULL::uuid;
        RETURN;
    END IF;
    -- Known first: a repeat is answered whatever the switches say now.
    SELECT n.request_digest, n.operation_id, n.mode INTO v_known
    FROM call_node AS n WHERE n.namespace = p_namespace AND n.call_node_id = p_call_node_id;
    IF FOUND THEN
        RETURN QUERY SELECT CASE WHEN v_known.request_digest <> p_digest THEN 'conflict'
            WHEN v_known.mode <> 'live' THEN 'not_selected' ELSE 'same' END, v_known.operation_id;
        RETURN;
    END IF;
    IF NOT EXISTS (SELECT 1 FROM target_state AS t WHERE t.fleet = p_fleet AND t.target = p_target) THEN
        RETURN QUERY SELECT 'no_target', NULL::uuid;
        RETURN;
    END IF;
    v_stopped := CASE
        WHEN EXISTS (SELECT 1 FROM control AS c WHERE c.fleet = p_fleet AND NOT c.create_on) THEN 'create_off'
        WHEN EXISTS (
            SELECT 1 FROM target_state AS t JOIN adapter_mode AS m ON m.fleet = t.fleet AND m.protocol = t.protocol
            WHERE t.fleet = p_fleet AND t.target = p_target AND m.mode <> 'open'
        ) THEN 'draining' END;
    SELECT r.percent, r.shadow INTO v_rollout
    FROM rollout AS r WHERE r.fleet = p_fleet AND r.target = p_target AND r.tool = p_tool;
    -- The first 32 bits of a hash of the call node: a node that was in at 5 % is in at 50 % as well.
    IF FOUND AND ('x' || encode(substring(sha256(convert_to(p_namespace || chr(10) || p_call_node_id, 'UTF8')) FOR 4), 'hex'))::bit(32)::bigint
        >= v_rollout.percent / 100.0 * 4294967296.0 THEN
        v_mode := CASE WHEN v_rollout.shadow AND v_stopped IS NULL THEN 'shadow' ELSE 'not_selected' END;
    END IF;
    -- A roll-back stops what we take on. Who is not selected makes no operation, and the old path goes on for them.
    IF v_mode = 'live' AND v_stopped IS NOT NULL THEN
        RETURN QUERY SELECT v_stopped, NULL::uuid;
        RETURN;
    END IF;
    INSERT INTO namespace AS n (namespace, fleet) VALUES (p_namespace, p_fleet) ON CONFLICT DO NOTHING;
    SELECT n.fleet INTO v_fleet FROM namespace AS n WHERE n.namespace = p_namespace;
    IF v_fleet <> p_fleet THEN
        RETURN QUERY SELECT 'other_fleet', NULL::uuid;
        RETURN;
    END IF;
    INSERT INTO call_node AS n (namespace, call_node_id, request_digest, operation_id, mode)
    VALUES (p_namespace, p_call_node_id, p_digest, CASE WHEN v_mode = 'live' THEN p_id END, v_mode) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        -- Another door was first; its commit ended our wait, so its row is visible to this new statement.
        SELECT n.request_digest, n.operation_id, n.mode INTO v_known
        FROM call_node AS n WHERE n.namespace = p_namespace AND n.call_node_id = p_call_node_id;
        RETURN QUERY SELECT CASE WHEN v_known.request_digest <> p_digest THEN 'conflict'
            WHEN v_known.mode <> 'live' THEN 'not_selected' ELSE 'same' END, v_known.operation_id;
        RETURN;
    END IF;
    IF v_mode = 'not_selected' THEN
        RETURN QUERY SELECT 'not_selected', NULL::uuid;
        RETURN;
    END IF;
    IF v_mode = 'shadow' THEN
        v_namespace := p_namespace || '~shadow';
        v_shadow := true;
        INSERT INTO namespace AS n (namespace, fleet) VALUES (v_namespace, p_fleet) ON CONFLICT DO NOTHING;
        INSERT INTO call_node AS n (namespace, call_node_id, request_digest, operation_id)
        VALUES (v_namespace, p_call_node_id, p_digest, p_id) ON CONFLICT DO NOTHING;
        IF NOT FOUND THEN
            -- Somebody hands calls in in that namespace by itself: no shadow runs, and the old path goes on.
            RETURN QUERY SELECT 'not_selected', NULL::uuid;
            RETURN;
        END IF;
    END IF;
    INSERT INTO operation (id, fleet, namespace, call_node_id, request_digest, target, tool, principal, arguments, submission_key, state,
        execution_epoch, journal_seq, shadow, created_at, updated_at)
    VALUES (p_id, p_fleet, v_namespace, p_call_node_id, p_digest, p_target, p_tool, p_principal, p_arguments, p_submission_key,
        'SUBMITTING', v_epoch, 1, v_shadow, ledger_now(), ledger_now());
    INSERT INTO wake (operation_id, lane, fleet, target, due_at) VALUES (p_id, 'submit', p_fleet, p_target, ledger_now());
    INSERT INTO journal (operation_id, seq, at, epoch, actor, event, target, lane)
    VALUES (p_id, 1, ledger_now(), v_epoch, 'door', 'opened', 'SUBMITTING', 'door');
    RETURN QUERY SELECT CASE WHEN v_shadow THEN 'not_selected' ELSE 'opened' END, CASE WHEN NOT v_shadow THEN p_id END;
END
$$;

-- The only writer of receipts: one round trip for a batch, one verdict a row:
--   accepted | same | differs | stale_epoch | generation | state | failed
-- Epoch FOR SHARE first, operations locked in order of id, compared with IS NOT DISTINCT FROM against what the caller saw; then
-- receipt, ready row, register, state, wake rows and journal in this same call. A failing row costs the others nothing.
CREATE OR REPLACE FUNCTION counterfoil.accept_terminal(
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
            IF NOT o.shadow THEN
                INSERT INTO ready_outbox (id, namespace, call_node_id, receipt_id, created_at)
                VALUES (o.ready_id, o.namespace, o.call_node_id, v_receipt.id, v_now);
            END IF;
            UPDATE call_node AS n SET outcome = o.outcome, receipt_id = v_receipt.id, receipt_digest = v_receipt.digest
            WHERE n.namespace = o.namespace AND n.call_node_id = o.call_node_id;
            UPDATE operation AS w SET state = o.settle_as, settle_as = NULL, execution_epoch = p_epoch,
                journal_seq = w.journal_seq + 1, updated_at = v_now,
                audit_ends_at = CASE WHEN w.audit_s > 0 THEN v_now + make_interval(secs => w.audit_s) END
            WHERE w.id = o.id;
            DELETE FROM wake AS w WHERE w.operation_id = o.id;
            IF o.audit_s > 0 THEN
                INSERT INTO wake (operation_id, lane, fleet, target, due_at)
                VALUES (o.id, 'audit', o.fleet, o.target, v_now + make_interval(secs => least(o.audit_s, 30)));
            END IF;
            INSERT INTO journal (operation_id, seq, at, epoch, actor, event, source, target, lane, code)
            VALUES (o.id, o.journal_seq + 1, v_now, p_epoch, 'accept_terminal', 'accepted', o.state, o.settle_as, o.a_lane, o.error_code);
            RETURN QUERY SELECT o.id, 'accepted', v_receipt.id;
        EXCEPTION WHEN data_exception OR integrity_constraint_violation THEN
            RETURN QUERY SELECT o.id, 'failed', NULL::uuid;
        END;
    END LOOP;
END
$$;
