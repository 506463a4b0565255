-- The same functions with fewer statements, which is what they cost: what was asked in five is one look, what was written row by row
-- is one statement for all. Arguments and answers are as before, so the release before goes on with them.

-- The producers' door: one call inserts the register row, the operation and its wake row, in the producer's own transaction.
-- Answers opened | same | conflict | create_off | draining | no_fleet | no_target | other_fleet, and the operation's id; or
-- not_selected without one: this call node is the old path's business, for ever (SPEC section 8). What was said first stands,
-- whatever the percentage becomes. A shadow's own life is an operation in a namespace of its own, without a ready row.
-- With `opened` come the epoch and the moment, so that nobody has to read again what was just written.
DROP FUNCTION counterfoil.open_operation(uuid, text, text, text, bytea, text, text, text, bytea, uuid);
CREATE FUNCTION counterfoil.open_operation(
    p_id uuid, p_fleet text, p_namespace text, p_call_node_id text, p_digest bytea, p_target text, p_tool text, p_principal text,
    p_arguments bytea, p_submission_key uuid
) RETURNS TABLE (verdict text, operation_id uuid, execution_epoch bigint, opened_at timestamptz)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, counterfoil, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    v_epoch bigint;
    v_seen record;
    v_mode text := 'live';
    v_stopped text;
    v_namespace text := p_namespace;
    v_shadow boolean := false;
BEGIN
    SELECT e.epoch INTO v_epoch FROM execution_epoch AS e WHERE e.fleet = p_fleet FOR SHARE;
    IF v_epoch IS NULL THEN
        verdict := 'no_fleet';
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT n.request_digest, n.operation_id, n.mode, t.target, c.create_on, m.mode AS adapter_mode, r.percent, r.shadow, s.fleet
    INTO v_seen
    FROM (SELECT) AS one
    LEFT JOIN call_node AS n ON n.namespace = p_namespace AND n.call_node_id = p_call_node_id
    LEFT JOIN target_state AS t ON t.fleet = p_fleet AND t.target = p_target
    LEFT JOIN control AS c ON c.fleet = p_fleet
    LEFT JOIN adapter_mode AS m ON m.fleet = t.fleet AND m.protocol = t.protocol
    LEFT JOIN rollout AS r ON r.fleet = p_fleet AND r.target = p_target AND r.tool = p_tool
    LEFT JOIN namespace AS s ON s.namespace = p_namespace;
    -- Known first: a repeat is answered whatever the switches say now.
    IF v_seen.mode IS NOT NULL THEN
        verdict := CASE WHEN v_seen.request_digest <> p_digest THEN 'conflict'
            WHEN v_seen.mode <> 'live' THEN 'not_selected' ELSE 'same' END;
        operation_id := v_seen.operation_id;
        RETURN NEXT;
        RETURN;
    END IF;
    IF v_seen.target IS NULL THEN
        verdict := 'no_target';
        RETURN NEXT;
        RETURN;
    END IF;
    v_stopped := CASE WHEN NOT v_seen.create_on THEN 'create_off' WHEN v_seen.adapter_mode <> 'open' THEN 'draining' END;
    -- The first 32 bits of a hash of the call node: a node that was in at 5 % is in at 50 % as well.
    IF v_seen.percent IS NOT NULL
        AND ('x' || encode(substring(sha256(convert_to(p_namespace || chr(10) || p_call_node_id, 'UTF8')) FOR 4), 'hex'))::bit(32)::bigint
        >= v_seen.percent / 100.0 * 4294967296.0 THEN
        v_mode := CASE WHEN v_seen.shadow AND v_stopped IS NULL THEN 'shadow' ELSE 'not_selected' END;
    END IF;
    -- A roll-back stops what we take on. Who is not selected makes no operation, and the old path goes on for them.
    IF v_mode = 'live' AND v_stopped IS NOT NULL THEN
        verdict := v_stopped;
        RETURN NEXT;
        RETURN;
    END IF;
    IF v_seen.fleet IS NULL THEN
        INSERT INTO namespace AS n (namespace, fleet) VALUES (p_namespace, p_fleet) ON CONFLICT DO NOTHING;
        SELECT n.fleet INTO v_seen.fleet FROM namespace AS n WHERE n.namespace = p_namespace;
    END IF;
    IF v_seen.fleet <> p_fleet THEN
        verdict := 'other_fleet';
        RETURN NEXT;
        RETURN;
    END IF;
    INSERT INTO call_node AS n (namespace, call_node_id, request_digest, operation_id, mode)
    VALUES (p_namespace, p_call_node_id, p_digest, CASE WHEN v_mode = 'live' THEN p_id END, v_mode) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        -- Another door was first; its commit ended our wait, so its row is visible to this new statement.
        SELECT CASE WHEN n.request_digest <> p_digest THEN 'conflict' WHEN n.mode <> 'live' THEN 'not_selected' ELSE 'same' END,
            n.operation_id
        INTO verdict, operation_id
        FROM call_node AS n WHERE n.namespace = p_namespace AND n.call_node_id = p_call_node_id;
        RETURN NEXT;
        RETURN;
    END IF;
    IF v_mode = 'not_selected' THEN
        verdict := 'not_selected';
        RETURN NEXT;
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
            verdict := 'not_selected';
            RETURN NEXT;
            RETURN;
        END IF;
    END IF;
    opened_at := ledger_now();
    WITH opened AS (
        INSERT INTO operation (id, fleet, namespace, call_node_id, request_digest, target, tool, principal, arguments, submission_key,
            state, execution_epoch, journal_seq, shadow, created_at, updated_at)
        VALUES (p_id, p_fleet, v_namespace, p_call_node_id, p_digest, p_target, p_tool, p_principal, p_arguments, p_submission_key,
            'SUBMITTING', v_epoch, 1, v_shadow, opened_at, opened_at)
    ), due AS (
        INSERT INTO wake (operation_id, lane, fleet, target, due_at) VALUES (p_id, 'submit', p_fleet, p_target, opened_at)
    )
    INSERT INTO journal (operation_id, seq, at, epoch, actor, event, target, lane)
    VALUES (p_id, 1, opened_at, v_epoch, 'door', 'opened', 'SUBMITTING', 'door');
    IF v_shadow THEN
        verdict := 'not_selected';
        opened_at := NULL;
    ELSE
        verdict := 'opened';
        operation_id := p_id;
        execution_epoch := v_epoch;
    END IF;
    RETURN NEXT;
END
$$;
REVOKE EXECUTE ON FUNCTION counterfoil.open_operation(uuid, text, text, text, bytea, text, text, text, bytea, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION counterfoil.open_operation(uuid, text, text, text, bytea, text, text, text, bytea, uuid)
    TO counterfoil_app, counterfoil_producer;

-- The text that a receipt's digest is taken over: RFC 8785, keys in order. Python makes the same text to verify. Parsed now and with no
-- setting of its own, so that it becomes a part of the statement that calls it.
CREATE OR REPLACE FUNCTION counterfoil.receipt_text(r counterfoil.terminal_receipt) RETURNS text
LANGUAGE sql STABLE
    RETURN '{"accepted_at":' || to_json(to_char(r.accepted_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))::text
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
        || '}';

-- The only writer of receipts: one round trip for a batch, one verdict a row:
--   accepted | same | differs | stale_epoch | generation | state | failed
-- Epoch FOR SHARE first, operations locked in order of id and then their wake rows (a release holds those without their operations);
-- one statement that began after the locks compares with IS NOT DISTINCT FROM against what the caller saw, and writes receipt, ready
-- row, register, state, wake rows and journal. A failing row costs the others nothing: after a batch that fails it is row by row.
-- The sub-SELECTs hide how many rows there are: one plan a connection, by keys however small the tables were when it was made.
CREATE OR REPLACE FUNCTION counterfoil.accept_terminal(
    p_fleet text, p_epoch bigint, p_ids uuid[], p_receipt_ids uuid[], p_ready_ids uuid[], p_namespaces text[], p_call_node_ids text[],
    p_request_digests bytea[], p_task_ids text[], p_tool_versions text[], p_settle_as text[], p_generations int[],
    p_result_digests bytea[], p_lanes text[]
) RETURNS TABLE (operation_id uuid, verdict text, receipt_id uuid)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, counterfoil, pg_temp SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    v_epoch bigint;
    v_now timestamptz;
    v_rows int := cardinality(p_ids);
    v_from int := 1;
    v_to int := cardinality(p_ids);
    v_ids uuid[];
    v_verdicts text[];
    v_receipts uuid[];
    v_audits boolean;
BEGIN
    SELECT e.epoch INTO v_epoch FROM execution_epoch AS e WHERE e.fleet = p_fleet FOR SHARE;
    IF v_epoch IS DISTINCT FROM p_epoch THEN
        INSERT INTO refused_write (id, operation_id, fleet, code, epoch, what)
        SELECT gen_random_uuid(), i, p_fleet, 'E_STALE_EPOCH', p_epoch, 'accept_terminal' FROM unnest(p_ids) AS i;
        RETURN QUERY SELECT i, 'stale_epoch', NULL::uuid FROM unnest(p_ids) AS i;
        RETURN;
    END IF;
    PERFORM FROM (SELECT i FROM unnest((SELECT p_ids)) AS i ORDER BY i) AS v
    CROSS JOIN LATERAL (SELECT FROM operation AS w WHERE w.id = v.i LIMIT 1 FOR NO KEY UPDATE OF w) AS locked;
    PERFORM FROM wake AS w WHERE w.operation_id = ANY ((SELECT p_ids)::uuid[]) ORDER BY w.operation_id, w.lane FOR UPDATE OF w;
    v_now := ledger_now();
    WHILE v_from <= v_rows LOOP
        BEGIN
            WITH judged AS MATERIALIZED (
                SELECT o.*, a.receipt_id, a.ready_id, a.lane, t.id AS known_id, CASE
                    -- A repeat. The winner's receipt is read and compared, never passed over in silence.
                    WHEN o.settle_as IS NULL OR o.state IN ('ACCEPTED', 'CANCELLED_ACCEPTED', 'REFUSED') THEN CASE
                        WHEN t.id IS NULL THEN 'state'
                        WHEN t.operation_id = o.id AND t.state = a.settle_as AND t.result_digest IS NOT DISTINCT FROM a.result_digest
                            THEN 'same'
                        ELSE 'differs' END
                    WHEN o.cancel_generation <> a.generation THEN 'generation'
                    WHEN o.fleet <> p_fleet OR o.namespace <> a.namespace OR o.call_node_id <> a.call_node_id
                        OR o.request_digest <> a.request_digest OR o.task_id IS DISTINCT FROM a.task_id
                        OR o.tool_version IS DISTINCT FROM a.tool_version OR o.settle_as <> a.settle_as
                        OR o.result_digest IS DISTINCT FROM a.result_digest OR o.execution_epoch > p_epoch THEN 'state'
                    -- A value and no EXISTS, which would be planned as a hash of all results.
                    WHEN o.result_digest IS DISTINCT FROM (
                        SELECT sha256(b.body) FROM operation_result AS b WHERE b.operation_id = o.id AND b.digest = o.result_digest
                    ) THEN 'state'
                    ELSE 'accepted' END AS verdict
                FROM (
                    SELECT unnest((SELECT p_ids[v_from:v_to])) AS id, unnest((SELECT p_receipt_ids[v_from:v_to])) AS receipt_id,
                        unnest((SELECT p_ready_ids[v_from:v_to])) AS ready_id, unnest((SELECT p_namespaces[v_from:v_to])) AS namespace,
                        unnest((SELECT p_call_node_ids[v_from:v_to])) AS call_node_id,
                        unnest((SELECT p_request_digests[v_from:v_to])) AS request_digest,
                        unnest((SELECT p_task_ids[v_from:v_to])) AS task_id,
                        unnest((SELECT p_tool_versions[v_from:v_to])) AS tool_version,
                        unnest((SELECT p_settle_as[v_from:v_to])) AS settle_as,
                        unnest((SELECT p_generations[v_from:v_to])) AS generation,
                        unnest((SELECT p_result_digests[v_from:v_to])) AS result_digest, unnest((SELECT p_lanes[v_from:v_to])) AS lane
                ) AS a
                CROSS JOIN LATERAL (SELECT * FROM operation AS w WHERE w.id = a.id LIMIT 1) AS o
                LEFT JOIN LATERAL (
                    SELECT * FROM terminal_receipt AS r WHERE r.namespace = a.namespace AND r.call_node_id = a.call_node_id LIMIT 1
                ) AS t ON true
            ), written AS (
                INSERT INTO terminal_receipt
                SELECT j.receipt_id, j.namespace, j.call_node_id, j.id, j.request_digest, j.submission_key, j.target, j.tool,
                    j.tool_version, j.descriptor_digest, j.principal, j.protocol, j.task_id, j.settle_as, j.outcome, j.terminal_status,
                    j.error_code, j.effects_possible, j.attempt, j.cancel_generation, j.unanswered_rounds, p_epoch,
                    j.result_digest, j.result_pointer, sha256(convert_to(receipt_text(ROW(
                        j.receipt_id, j.namespace, j.call_node_id, j.id, j.request_digest, j.submission_key, j.target, j.tool,
                        j.tool_version, j.descriptor_digest, j.principal, j.protocol, j.task_id, j.settle_as, j.outcome,
                        j.terminal_status, j.error_code, j.effects_possible, j.attempt, j.cancel_generation, j.unanswered_rounds,
                        p_epoch, j.result_digest, j.result_pointer, NULL, v_now
                    )::terminal_receipt), 'UTF8')), v_now
                FROM judged AS j WHERE j.verdict = 'accepted'
                ON CONFLICT DO NOTHING
                RETURNING operation_id, digest
            ), accepted AS MATERIALIZED (
                SELECT j.*, r.digest FROM judged AS j JOIN written AS r ON r.operation_id = j.id
            ), ready AS (
                INSERT INTO ready_outbox (id, namespace, call_node_id, receipt_id, created_at)
                SELECT j.ready_id, j.namespace, j.call_node_id, j.receipt_id, v_now FROM accepted AS j WHERE NOT j.shadow
            ), registered AS (
                UPDATE call_node AS n SET outcome = j.outcome, receipt_id = j.receipt_id, receipt_digest = j.digest
                FROM accepted AS j WHERE n.namespace = j.namespace AND n.call_node_id = j.call_node_id
            ), moved AS (
                UPDATE operation AS w SET state = j.settle_as, settle_as = NULL, execution_epoch = p_epoch,
                    journal_seq = w.journal_seq + 1, updated_at = v_now,
                    audit_ends_at = CASE WHEN w.audit_s > 0 THEN v_now + make_interval(secs => w.audit_s) END
                FROM accepted AS j WHERE w.id = j.id
            ), dropped AS (
                DELETE FROM wake AS w USING accepted AS j WHERE w.operation_id = j.id
            ), told AS (
                INSERT INTO journal (operation_id, seq, at, epoch, actor, event, source, target, lane, code)
                SELECT j.id, j.journal_seq + 1, v_now, p_epoch, 'accept_terminal', 'accepted', j.state, j.settle_as, j.lane, j.error_code
                FROM accepted AS j
            )
            SELECT array_agg(j.id), array_agg(CASE WHEN j.verdict = 'accepted' AND a.id IS NULL THEN 'differs' ELSE j.verdict END),
                array_agg(CASE j.verdict WHEN 'accepted' THEN a.receipt_id WHEN 'same' THEN j.known_id WHEN 'differs' THEN j.known_id END),
                bool_or(a.audit_s > 0)
            INTO v_ids, v_verdicts, v_receipts, v_audits
            FROM judged AS j LEFT JOIN accepted AS a ON a.id = j.id;
            IF v_audits THEN
                INSERT INTO wake (operation_id, lane, fleet, target, due_at)
                SELECT o.id, 'audit', o.fleet, o.target, v_now + make_interval(secs => least(o.audit_s, 30))
                FROM (SELECT unnest(v_ids) AS id, unnest(v_verdicts) AS verdict) AS v JOIN operation AS o ON o.id = v.id
                WHERE v.verdict = 'accepted' AND o.audit_s > 0;
            END IF;
            RETURN QUERY SELECT * FROM unnest(v_ids, v_verdicts, v_receipts);
            v_from := v_to + 1;
        EXCEPTION WHEN data_exception OR integrity_constraint_violation THEN
            IF v_from = v_to THEN
                RETURN QUERY SELECT p_ids[v_from], 'failed', NULL::uuid;
                v_from := v_from + 1;
            END IF;
        END;
        v_to := v_from;  -- all at once, or one by one
    END LOOP;
END
$$;
