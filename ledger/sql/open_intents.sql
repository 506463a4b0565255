-- The intents themselves, after epoch, operation and lease were locked and judged. The partial unique index allows one open intent
-- per operation and effect whatever the judge thought. With each: what the first one pins (policy, descriptor, protocol), what each
-- one moves (attempt sent, budget, cancel count), the adoption of the row by this epoch, and the journal's line.
WITH granted AS MATERIALIZED (
    SELECT v.*, (SELECT counterfoil.ledger_now()) AS now
    FROM (
        SELECT unnest(CAST(:ids AS uuid[])) AS id, unnest(CAST(:send_tokens AS uuid[])) AS send_token,
            unnest(CAST(:effects AS text[])) AS effect, unnest(CAST(:lanes AS text[])) AS lane,
            unnest(CAST(:attempts AS int[])) AS attempt, unnest(CAST(:generations AS int[])) AS generation,
            unnest(CAST(:protocols AS text[])) AS protocol, unnest(CAST(:tool_versions AS text[])) AS tool_version,
            unnest(CAST(:descriptors AS bytea[])) AS descriptor_digest, unnest(CAST(:policies AS bytea[])) AS policy_digest,
            unnest(CAST(:sessions AS uuid[])) AS session_id, unnest(CAST(:budgets_s AS float8[])) AS budget_s,
            unnest(CAST(:send_by_s AS float8[])) AS send_by_s, unnest(CAST(:answer_by_s AS float8[])) AS answer_by_s
    ) AS v
), opened AS (
    INSERT INTO counterfoil.intent (send_token, operation_id, effect, attempt, generation, epoch, send_by, answer_by, opened_at)
    SELECT v.send_token, v.id, v.effect, v.attempt, v.generation, :epoch,
        v.now + make_interval(secs => v.send_by_s), v.now + make_interval(secs => v.answer_by_s), v.now
    FROM granted AS v
), pinned AS (
    UPDATE counterfoil.operation AS o
    SET sent_attempt = CASE WHEN v.effect = 'submit' THEN greatest(o.sent_attempt, o.attempt) ELSE o.sent_attempt END,
        cancel_sends = o.cancel_sends + CASE WHEN v.effect = 'cancel' THEN 1 ELSE 0 END,
        cancel_due = o.cancel_due AND v.effect <> 'cancel',
        protocol = coalesce(o.protocol, v.protocol),
        tool_version = coalesce(o.tool_version, v.tool_version),
        descriptor_digest = coalesce(o.descriptor_digest, v.descriptor_digest),
        policy_digest = coalesce(o.policy_digest, v.policy_digest),
        session_id = coalesce(v.session_id, o.session_id),
        first_intent_at = coalesce(o.first_intent_at, v.now),
        budget_ends_at = CASE WHEN o.first_intent_at IS NULL AND o.budget_ends_at IS NULL
            THEN v.now + make_interval(secs => v.budget_s) ELSE o.budget_ends_at END,
        last_send_by = CASE WHEN v.effect IN ('submit', 'replay') THEN v.now + make_interval(secs => v.send_by_s) ELSE o.last_send_by END,
        execution_epoch = greatest(o.execution_epoch, :epoch),
        journal_seq = o.journal_seq + 1,
        updated_at = v.now
    FROM granted AS v
    WHERE o.id = v.id
    RETURNING o.id, o.journal_seq
)
INSERT INTO counterfoil.journal (operation_id, seq, at, epoch, actor, event, lane, why)
SELECT v.id, p.journal_seq, v.now, :epoch, 'worker', 'intent', v.lane,
    concat(v.effect, ', attempt ', v.attempt, ', generation ', v.generation)
FROM granted AS v JOIN pinned AS p ON p.id = v.id
