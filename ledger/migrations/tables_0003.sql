ALTER TABLE counterfoil.operation
    DROP COLUMN input_digest,
    ADD COLUMN leg SMALLINT DEFAULT 1 NOT NULL,
    ADD COLUMN request_state TEXT,
    ADD COLUMN result_value_digest BYTEA,
    ADD COLUMN audit_s FLOAT,
    ADD COLUMN audit_ends_at TIMESTAMP WITH TIME ZONE,
    ADD COLUMN shadow BOOLEAN DEFAULT false NOT NULL;

-- Asked for by people, by hints, and before every bind: also of operations that are over.
DROP INDEX counterfoil.operation_open_task;
CREATE INDEX operation_task ON counterfoil.operation (target, task_id) WHERE task_id IS NOT NULL;

-- What is not over, without a look at what is: the question for orphans costs 70 ms for 5,000 open
-- operations among 500,000 with these, and grows with every call ever made without.
CREATE INDEX call_node_open ON counterfoil.call_node (operation_id) WHERE outcome IS NULL AND operation_id IS NOT NULL;
CREATE INDEX operation_audit ON counterfoil.operation (audit_ends_at) WHERE audit_ends_at IS NOT NULL;

ALTER TABLE counterfoil.intent DROP CONSTRAINT intent_effect;
ALTER TABLE counterfoil.intent ADD CONSTRAINT intent_effect CHECK (effect IN ('submit', 'replay', 'answer', 'cancel'));

ALTER TABLE counterfoil.evidence ADD COLUMN seq BIGINT DEFAULT 0 NOT NULL;

ALTER TABLE counterfoil.reconciliation_case
    ADD COLUMN verdict TEXT,
    ADD COLUMN reason TEXT,
    ADD COLUMN second_actor TEXT;

CREATE TABLE counterfoil.input_round (
    operation_id UUID NOT NULL,
    number SMALLINT NOT NULL,
    leg SMALLINT NOT NULL,
    key TEXT NOT NULL,
    method TEXT NOT NULL,
    params BYTEA NOT NULL,
    schema_digest BYTEA NOT NULL,
    reply_to TEXT NOT NULL,
    state TEXT DEFAULT 'open' NOT NULL,
    sends SMALLINT DEFAULT 0 NOT NULL,
    reply BYTEA,
    replied_by TEXT,
    replied_at TIMESTAMP WITH TIME ZONE,
    opened_at TIMESTAMP WITH TIME ZONE NOT NULL,
    closed_at TIMESTAMP WITH TIME ZONE,
    how TEXT,
    PRIMARY KEY (operation_id, number),
    CONSTRAINT input_round_key UNIQUE (operation_id, leg, key),
    CONSTRAINT input_round_state CHECK (state IN ('open', 'replied', 'sent', 'unclear', 'closed')),
    CONSTRAINT input_round_closed_whole CHECK ((state = 'closed') = (closed_at IS NOT NULL) AND (closed_at IS NULL) = (how IS NULL)),
    CONSTRAINT input_round_reply_whole CHECK ((reply IS NULL) = (replied_at IS NULL) AND (reply IS NULL) = (replied_by IS NULL))
);
CREATE INDEX input_round_open ON counterfoil.input_round (opened_at) WHERE state <> 'closed';
COMMENT ON TABLE counterfoil.input_round IS 'One question of a tool to a person. Its reply is used once.';

CREATE TABLE counterfoil.adapter_mode (
    fleet TEXT NOT NULL,
    protocol TEXT NOT NULL,
    mode TEXT NOT NULL,
    reason TEXT NOT NULL,
    changed_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    PRIMARY KEY (fleet, protocol),
    CONSTRAINT adapter_mode_mode CHECK (mode IN ('open', 'drain', 'off'))
);
COMMENT ON TABLE counterfoil.adapter_mode IS 'A protocol version that takes no new submits any more; no row: open.';

CREATE TABLE counterfoil.rollout (
    fleet TEXT NOT NULL,
    target TEXT NOT NULL,
    tool TEXT NOT NULL,
    percent FLOAT NOT NULL,
    shadow BOOLEAN NOT NULL,
    reason TEXT NOT NULL,
    changed_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    PRIMARY KEY (fleet, target, tool),
    CONSTRAINT rollout_percent CHECK (percent BETWEEN 0 AND 100)
);
COMMENT ON TABLE counterfoil.rollout IS 'Which part of a tool''s call nodes is taken on, and whether the rest runs as a shadow; no row: all.';

CREATE TABLE counterfoil.shadow_report (
    namespace TEXT NOT NULL,
    call_node_id TEXT NOT NULL,
    outcome TEXT NOT NULL,
    result BYTEA,
    reported_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    PRIMARY KEY (namespace, call_node_id),
    CONSTRAINT shadow_report_outcome CHECK (outcome IN ('succeeded', 'failed', 'cancelled'))
);
COMMENT ON TABLE counterfoil.shadow_report IS 'What the old path made of a call node that also ran as a shadow.';

GRANT SELECT, INSERT, UPDATE ON counterfoil.input_round, counterfoil.adapter_mode, counterfoil.rollout, counterfoil.shadow_report
    TO counterfoil_app;
GRANT SELECT ON counterfoil.input_round, counterfoil.adapter_mode, counterfoil.rollout TO counterfoil_producer;
