-- No orphan (SPEC section 7): every operation that is not over has the wake rows that its state needs (`wakes()` in wakes.py; a test
-- keeps the two in step), each due within its bound, no lease of an older epoch; or a case that waits for a person. An end that is
-- still looked at has its audit row. No evidence lies unconsumed for 30 s. Must return nothing. A leased row is due at its lease's end, so
-- a dead holder shows here as well; a target that asked for quiet delays its rows, which makes none of them an orphan.
-- Costs what is open, not what was ever called: the register's open rows, the wake rows and the audits have indexes of their own.
-- Between two ids: over a million open rows at once it takes 5.5 s, longer than a statement may.
WITH open AS MATERIALIZED (
    SELECT o.id, o.state, o.settle_as, o.task_id, o.cancel_due, o.budget_ends_at, o.input_ends_at, o.confirm_ends_at,
        EXISTS (
            SELECT 1 FROM counterfoil.reconciliation_case AS c
            WHERE c.operation_id = o.id AND c.closed_at IS NULL AND c.kind = 'UNKNOWN' AND c.code <> ALL(CAST(:not_parking AS text[]))
        ) AND o.settle_as IS NULL AS parked
    FROM counterfoil.call_node AS n
    JOIN counterfoil.operation AS o ON o.id = n.operation_id
    WHERE n.outcome IS NULL AND n.operation_id > :after AND n.operation_id <= :until
      AND o.id > :after AND o.id <= :until AND o.fleet = :fleet
), needed AS (
    SELECT o.id, need.lane
    FROM open AS o
    CROSS JOIN LATERAL (
        SELECT
            EXISTS (SELECT 1 FROM counterfoil.input_round AS r WHERE r.operation_id = o.id AND r.state = 'open') AS asks,
            EXISTS (SELECT 1 FROM counterfoil.input_round AS r WHERE r.operation_id = o.id AND r.state = 'replied') AS replied,
            EXISTS (SELECT 1 FROM counterfoil.intent AS i
                WHERE i.operation_id = o.id AND i.effect = 'submit' AND i.closed_at IS NULL) AS submitting,
            EXISTS (SELECT 1 FROM counterfoil.intent AS i
                WHERE i.operation_id = o.id AND i.effect = 'answer' AND i.closed_at IS NULL) AS answering,
            EXISTS (SELECT 1 FROM counterfoil.intent AS i
                WHERE i.operation_id = o.id AND i.effect = 'cancel' AND i.closed_at IS NULL) AS cancelling
    ) AS has
    CROSS JOIN LATERAL (VALUES
        ('fetch', o.settle_as IS NOT NULL OR o.state IN ('TERMINAL_OBSERVED', 'FETCHING_RESULT')),
        ('submit', o.settle_as IS NULL AND o.state IN ('SUBMITTING', 'NOT_FOUND_SAFE')),
        ('lookup', o.settle_as IS NULL AND o.state = 'SUBMISSION_UNKNOWN'),
        ('poll', o.settle_as IS NULL AND (o.state IN ('WORKING', 'CANCEL_REQUESTED')
            OR o.state = 'INPUT_REQUIRED' AND o.task_id IS NOT NULL AND NOT has.asks)),
        ('answer', o.settle_as IS NULL AND o.state = 'INPUT_REQUIRED' AND o.task_id IS NOT NULL
            AND (has.replied OR has.answering)),
        ('cancel', o.settle_as IS NULL AND o.state = 'CANCEL_REQUESTED' AND (o.cancel_due OR has.cancelling)),
        ('timer', o.settle_as IS NULL AND CASE o.state
            WHEN 'SUBMISSION_UNKNOWN' THEN true
            WHEN 'CANCEL_REQUESTED' THEN o.confirm_ends_at IS NOT NULL
            WHEN 'INPUT_REQUIRED' THEN o.task_id IS NULL OR o.input_ends_at IS NOT NULL OR o.budget_ends_at IS NOT NULL
            -- A budget that ends while the intent is open is judged when the intent closes, and the row is written then.
            WHEN 'SUBMITTING' THEN o.budget_ends_at IS NOT NULL AND NOT has.submitting
            ELSE o.state IN ('NOT_FOUND_SAFE', 'WORKING') AND o.budget_ends_at IS NOT NULL END)
    ) AS need(lane, holds)
    WHERE need.holds AND NOT o.parked
    UNION ALL
    SELECT o.id, 'audit' FROM counterfoil.operation AS o
    WHERE o.fleet = :fleet AND o.audit_ends_at > counterfoil.ledger_now() AND o.state IN ('ACCEPTED', 'CANCELLED_ACCEPTED', 'REFUSED')
      AND o.id > :after AND o.id <= :until
), found AS (
    SELECT needed.id, needed.lane, 'no wake row of this lane, and no case that waits for a person' AS why, NULL::timestamptz AS since
    FROM needed
    WHERE NOT EXISTS (
        SELECT 1 FROM counterfoil.wake AS w
        WHERE w.operation_id = needed.id AND w.operation_id > :after AND w.operation_id <= :until
          AND (w.lane = needed.lane OR needed.lane = 'submit' AND w.lane = 'sync')
    )
    UNION ALL
    SELECT w.operation_id, w.lane, 'overdue', w.waits_since
    FROM (
        SELECT w.operation_id, w.lane,
            greatest(w.due_at, CASE WHEN w.lane NOT IN ('timer', 'fetch') THEN t.closed_until END) AS waits_since
        FROM counterfoil.wake AS w
        LEFT JOIN counterfoil.target_state AS t ON t.fleet = w.fleet AND t.target = w.target
        WHERE w.fleet = :fleet AND w.due_at < counterfoil.ledger_now() - make_interval(secs => :bound_s)
          AND w.operation_id > :after AND w.operation_id <= :until
    ) AS w
    WHERE w.waits_since < counterfoil.ledger_now() - make_interval(secs => :bound_s)
    UNION ALL
    SELECT w.operation_id, w.lane, 'due too late: beyond the slowest pace of its policy', NULL
    FROM counterfoil.wake AS w
    JOIN counterfoil.operation AS o ON o.id = w.operation_id
    LEFT JOIN counterfoil.tool_policy AS p ON p.digest = o.policy_digest
    LEFT JOIN LATERAL (SELECT convert_from(p.body, 'UTF8')::jsonb AS said) AS policy ON true
    WHERE w.operation_id > :after AND w.operation_id <= :until
      AND w.fleet = :fleet AND w.lane NOT IN ('timer', 'audit') AND w.lease_token IS NULL
      AND w.due_at > counterfoil.ledger_now() + make_interval(secs => :ahead_s)
      AND w.due_at > counterfoil.ledger_now() + make_interval(secs => 2 * greatest(
            (policy.said ->> 'poll_max_s')::float8, (policy.said ->> 'input_watch_s')::float8, :ahead_s / 2))
    UNION ALL
    SELECT w.operation_id, w.lane, 'leased by epoch ' || w.lease_epoch || ', which is over', e.bumped_at
    FROM counterfoil.wake AS w
    JOIN counterfoil.execution_epoch AS e ON e.fleet = w.fleet
    WHERE w.operation_id > :after AND w.operation_id <= :until
      AND w.fleet = :fleet AND w.lease_epoch < e.epoch AND e.bumped_at < counterfoil.ledger_now() - make_interval(secs => :bound_s)
    UNION ALL
    SELECT e.operation_id, e.kind, 'evidence unconsumed for 30 s', min(e.received_at)
    FROM counterfoil.evidence AS e
    WHERE e.fleet = :fleet AND e.consumed_at IS NULL AND e.received_at < counterfoil.ledger_now() - interval '30 s'
      AND e.operation_id > :after AND e.operation_id <= :until
    GROUP BY e.operation_id, e.kind
)
SELECT f.id AS operation_id, o.namespace, o.call_node_id, o.target, o.state, f.lane, f.why,
    extract(epoch FROM counterfoil.ledger_now() - coalesce(f.since, o.updated_at))::float8 AS age_s
FROM found AS f
LEFT JOIN counterfoil.operation AS o ON o.id = f.id
ORDER BY age_s DESC, f.id, f.lane
LIMIT :limit
