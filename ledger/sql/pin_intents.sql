-- What the first intent pins (policy, descriptor, protocol), what each one moves (attempt sent, budget, cancel count), and the
-- adoption of the row by this epoch. Rows are locked by this transaction.
UPDATE counterfoil.operation AS o
SET sent_attempt = CASE WHEN v.effect = 'submit' THEN greatest(o.sent_attempt, o.attempt) ELSE o.sent_attempt END,
    cancel_sends = o.cancel_sends + CASE WHEN v.effect = 'cancel' THEN 1 ELSE 0 END,
    cancel_due = o.cancel_due AND v.effect <> 'cancel',
    protocol = coalesce(o.protocol, v.protocol),
    tool_version = coalesce(o.tool_version, v.tool_version),
    descriptor_digest = coalesce(o.descriptor_digest, v.descriptor_digest),
    policy_digest = coalesce(o.policy_digest, v.policy_digest),
    session_id = coalesce(v.session_id, o.session_id),
    first_intent_at = coalesce(o.first_intent_at, (SELECT counterfoil.ledger_now())),
    budget_ends_at = CASE WHEN o.first_intent_at IS NULL AND o.budget_ends_at IS NULL
        THEN (SELECT counterfoil.ledger_now()) + make_interval(secs => v.budget_s) ELSE o.budget_ends_at END,
    last_send_by = CASE WHEN v.effect IN ('submit', 'replay') THEN (SELECT counterfoil.ledger_now()) + make_interval(secs => v.send_by_s) ELSE o.last_send_by END,
    execution_epoch = greatest(o.execution_epoch, :epoch),
    journal_seq = o.journal_seq + 1,
    updated_at = (SELECT counterfoil.ledger_now())
FROM unnest(CAST(:ids AS uuid[]), CAST(:effects AS text[]), CAST(:protocols AS text[]), CAST(:tool_versions AS text[]),
    CAST(:descriptors AS bytea[]), CAST(:policies AS bytea[]), CAST(:sessions AS uuid[]), CAST(:budgets_s AS float8[]), CAST(:send_by_s AS float8[]))
    AS v(id, effect, protocol, tool_version, descriptor_digest, policy_digest, session_id, budget_s, send_by_s)
WHERE o.id = v.id
RETURNING o.id, o.journal_seq
