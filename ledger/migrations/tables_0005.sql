CREATE TABLE counterfoil.pulse (
    fleet TEXT NOT NULL,
    name TEXT NOT NULL,
    seen_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (fleet, name)
);
COMMENT ON TABLE counterfoil.pulse IS 'When a part of the fleet was last heard of: a tick of beat that reached a worker.';

-- What a metric counts since it looked last, and what housekeeping takes away, without a look at everything else.
CREATE INDEX terminal_receipt_accepted ON counterfoil.terminal_receipt (accepted_at);
CREATE INDEX refused_write_at ON counterfoil.refused_write (fleet, at);
CREATE INDEX ready_outbox_acked ON counterfoil.ready_outbox (namespace, acked_at) WHERE acked_at IS NOT NULL;
CREATE INDEX notice_acked ON counterfoil.notice (namespace, acked_at) WHERE acked_at IS NOT NULL;

GRANT SELECT, INSERT, UPDATE ON counterfoil.pulse TO counterfoil_app;

-- The reader of metrics and of due work: counts and moments, no argument, no result, no word of a server, no session.
GRANT USAGE ON SCHEMA counterfoil TO counterfoil_reader;
GRANT EXECUTE ON FUNCTION counterfoil.ledger_now() TO counterfoil_reader;
GRANT SELECT ON counterfoil.execution_epoch, counterfoil.control, counterfoil.pulse, counterfoil.target_state, counterfoil.adapter_mode,
    counterfoil.rollout, counterfoil.wake, counterfoil.call_node, counterfoil.ledger_clock, counterfoil.namespace,
    counterfoil.webhook_endpoint, counterfoil.tool_policy TO counterfoil_reader;
GRANT SELECT (id, fleet, namespace, call_node_id, target, tool, protocol, state, settle_as, task_id, cancel_due, budget_ends_at,
    input_ends_at, confirm_ends_at, audit_ends_at, policy_digest, shadow, created_at, updated_at)
    ON counterfoil.operation TO counterfoil_reader;
GRANT SELECT (operation_id, seq, at, event, source, target, lane, code) ON counterfoil.journal TO counterfoil_reader;
GRANT SELECT (id, fleet, operation_id, kind, received_at, consumed_at) ON counterfoil.evidence TO counterfoil_reader;
GRANT SELECT (operation_id, effect, closed_at) ON counterfoil.intent TO counterfoil_reader;
GRANT SELECT (operation_id, state) ON counterfoil.input_round TO counterfoil_reader;
GRANT SELECT (id, operation_id, kind, code, opened_at, closed_at) ON counterfoil.reconciliation_case TO counterfoil_reader;
GRANT SELECT (operation_id, namespace, target, tool, outcome, error_code, cancel_generation, accepted_at)
    ON counterfoil.terminal_receipt TO counterfoil_reader;
GRANT SELECT (namespace, created_at, acked_at) ON counterfoil.ready_outbox, counterfoil.notice TO counterfoil_reader;
GRANT SELECT (fleet, code, what, at) ON counterfoil.refused_write TO counterfoil_reader;
GRANT SELECT (fleet, code, received_at) ON counterfoil.dead_letter TO counterfoil_reader;
