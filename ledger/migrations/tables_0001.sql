CREATE TABLE counterfoil.call_node (
    namespace TEXT NOT NULL,
    call_node_id TEXT NOT NULL,
    request_digest BYTEA NOT NULL,
    mode TEXT DEFAULT 'live' NOT NULL,
    operation_id UUID,
    outcome TEXT,
    receipt_id UUID,
    receipt_digest BYTEA,
    first_seen_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    PRIMARY KEY (namespace, call_node_id),
    CONSTRAINT call_node_outcome_with_receipt CHECK ((outcome IS NULL) = (receipt_id IS NULL)),
    CONSTRAINT call_node_mode CHECK (mode IN ('live', 'shadow', 'not_selected'))
);
COMMENT ON TABLE counterfoil.call_node IS 'The register: never pruned, never partitioned. One receipt a call node, for ever.';
CREATE TABLE counterfoil.control (
    fleet TEXT NOT NULL,
    create_on BOOLEAN DEFAULT true NOT NULL,
    reason TEXT,
    changed_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    PRIMARY KEY (fleet)
);
CREATE TABLE counterfoil.evidence (
    id UUID NOT NULL,
    fleet TEXT NOT NULL,
    operation_id UUID NOT NULL,
    kind TEXT NOT NULL,
    attempt SMALLINT NOT NULL,
    generation INTEGER NOT NULL,
    send_token UUID,
    epoch BIGINT NOT NULL,
    status INTEGER NOT NULL,
    headers JSONB NOT NULL,
    body BYTEA NOT NULL,
    received_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    consumed_at TIMESTAMP WITH TIME ZONE,
    PRIMARY KEY (id)
);
CREATE INDEX evidence_operation ON counterfoil.evidence (operation_id);
CREATE INDEX evidence_unconsumed ON counterfoil.evidence (fleet, received_at) WHERE consumed_at IS NULL;
COMMENT ON TABLE counterfoil.evidence IS 'What a server said, exact bytes. Appended without any fence; consumed_at is the only thing that changes.';
CREATE TABLE counterfoil.execution_epoch (
    fleet TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    system_identifier BIGINT NOT NULL,
    timeline INTEGER NOT NULL,
    reason TEXT DEFAULT 'created' NOT NULL,
    bumped_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    PRIMARY KEY (fleet),
    CONSTRAINT execution_epoch_positive CHECK (epoch >= 1)
);
CREATE TABLE counterfoil.intent (
    send_token UUID NOT NULL,
    operation_id UUID NOT NULL,
    effect TEXT NOT NULL,
    attempt SMALLINT NOT NULL,
    generation INTEGER NOT NULL,
    epoch BIGINT NOT NULL,
    send_by TIMESTAMP WITH TIME ZONE NOT NULL,
    answer_by TIMESTAMP WITH TIME ZONE NOT NULL,
    opened_at TIMESTAMP WITH TIME ZONE NOT NULL,
    closed_at TIMESTAMP WITH TIME ZONE,
    how TEXT,
    PRIMARY KEY (send_token),
    CONSTRAINT intent_effect CHECK (effect IN ('submit', 'answer', 'cancel')),
    CONSTRAINT intent_closed_whole CHECK ((closed_at IS NULL) = (how IS NULL))
);
CREATE UNIQUE INDEX intent_open ON counterfoil.intent (operation_id, effect) WHERE closed_at IS NULL;
COMMENT ON TABLE counterfoil.intent IS 'Committed before the first byte of the one request that has the effect.';
CREATE TABLE counterfoil.journal (
    operation_id UUID NOT NULL,
    seq INTEGER NOT NULL,
    at TIMESTAMP WITH TIME ZONE NOT NULL,
    epoch BIGINT NOT NULL,
    actor TEXT NOT NULL,
    event TEXT NOT NULL,
    source TEXT,
    target TEXT,
    lane TEXT,
    code TEXT,
    why TEXT,
    PRIMARY KEY (operation_id, seq)
);
CREATE TABLE counterfoil.ledger_clock (
    one BOOLEAN DEFAULT true NOT NULL,
    frozen_at TIMESTAMP WITH TIME ZONE,
    PRIMARY KEY (one),
    CONSTRAINT ledger_clock_one CHECK (one)
);
COMMENT ON TABLE counterfoil.ledger_clock IS 'Empty in production; the owner alone may freeze the ledger''s clock (tests, transcripts).';
CREATE TABLE counterfoil.ledger_identity (
    one BOOLEAN DEFAULT true NOT NULL,
    ledger_id UUID DEFAULT gen_random_uuid() NOT NULL,
    PRIMARY KEY (one),
    CONSTRAINT ledger_identity_one CHECK (one)
);
CREATE TABLE counterfoil.namespace (
    namespace TEXT NOT NULL,
    fleet TEXT NOT NULL,
    PRIMARY KEY (namespace)
);
COMMENT ON TABLE counterfoil.namespace IS 'A namespace belongs to one fleet, from its first call on.';
CREATE TABLE counterfoil.operation (
    id UUID NOT NULL,
    fleet TEXT NOT NULL,
    namespace TEXT NOT NULL,
    call_node_id TEXT NOT NULL,
    request_digest BYTEA NOT NULL,
    target TEXT NOT NULL,
    tool TEXT NOT NULL,
    principal TEXT NOT NULL,
    arguments BYTEA NOT NULL,
    submission_key UUID NOT NULL,
    state TEXT NOT NULL,
    attempt SMALLINT DEFAULT 1 NOT NULL,
    sent_attempt SMALLINT DEFAULT 0 NOT NULL,
    protocol TEXT,
    tool_version TEXT,
    descriptor_digest BYTEA,
    policy_digest BYTEA,
    task_id TEXT,
    server_status TEXT,
    remote_created_at TEXT,
    ttl_ms BIGINT,
    interval_ms BIGINT,
    observed_seq BIGINT DEFAULT 0 NOT NULL,
    tries INTEGER DEFAULT 0 NOT NULL,
    auth_tries SMALLINT DEFAULT 0 NOT NULL,
    not_found_count SMALLINT DEFAULT 0 NOT NULL,
    cancel_generation INTEGER DEFAULT 0 NOT NULL,
    cancel_due BOOLEAN DEFAULT false NOT NULL,
    cancel_sends SMALLINT DEFAULT 0 NOT NULL,
    cancel_acked BOOLEAN DEFAULT false NOT NULL,
    input_round INTEGER DEFAULT 0 NOT NULL,
    input_digest BYTEA,
    unanswered_rounds INTEGER DEFAULT 0 NOT NULL,
    last_code TEXT,
    settle_as TEXT,
    outcome TEXT,
    error_code TEXT,
    effects_possible BOOLEAN DEFAULT false NOT NULL,
    terminal_status TEXT,
    result_digest BYTEA,
    result_pointer TEXT,
    budget_s FLOAT,
    budget_ends_at TIMESTAMP WITH TIME ZONE,
    input_ends_at TIMESTAMP WITH TIME ZONE,
    confirm_ends_at TIMESTAMP WITH TIME ZONE,
    first_intent_at TIMESTAMP WITH TIME ZONE,
    last_send_by TIMESTAMP WITH TIME ZONE,
    execution_epoch BIGINT NOT NULL,
    journal_seq INTEGER DEFAULT 0 NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT operation_call_node UNIQUE (namespace, call_node_id),
    CONSTRAINT operation_state CHECK (state IN ('SUBMITTING', 'SUBMISSION_UNKNOWN', 'NOT_FOUND_SAFE', 'WORKING', 'INPUT_REQUIRED', 'CANCEL_REQUESTED', 'TERMINAL_OBSERVED', 'FETCHING_RESULT', 'ACCEPTED', 'CANCELLED_ACCEPTED', 'REFUSED')),
    CONSTRAINT operation_outcome CHECK (outcome IS NULL OR outcome IN ('succeeded', 'failed', 'cancelled', 'refused', 'abandoned')),
    CONSTRAINT operation_settle_as CHECK (settle_as IS NULL OR settle_as IN ('ACCEPTED', 'CANCELLED_ACCEPTED', 'REFUSED')),
    CONSTRAINT operation_terminal_has_outcome CHECK (state NOT IN ('ACCEPTED', 'CANCELLED_ACCEPTED', 'REFUSED') OR outcome IS NOT NULL),
    CONSTRAINT operation_working_has_task CHECK (state NOT IN ('WORKING', 'CANCEL_REQUESTED') OR task_id IS NOT NULL),
    CONSTRAINT operation_attempts CHECK (attempt BETWEEN 1 AND 2 AND sent_attempt BETWEEN 0 AND attempt),
    CONSTRAINT operation_budget_runs_or_rests CHECK (budget_ends_at IS NULL OR budget_s IS NULL),
    CONSTRAINT operation_success_has_result CHECK (outcome IS DISTINCT FROM 'succeeded' OR result_digest IS NOT NULL)
);
CREATE INDEX operation_open_task ON counterfoil.operation (target, task_id) WHERE task_id IS NOT NULL AND state IN ('CANCEL_REQUESTED', 'FETCHING_RESULT', 'INPUT_REQUIRED', 'NOT_FOUND_SAFE', 'SUBMISSION_UNKNOWN', 'SUBMITTING', 'TERMINAL_OBSERVED', 'WORKING');
CREATE INDEX operation_submission_key ON counterfoil.operation (submission_key);
COMMENT ON TABLE counterfoil.operation IS 'Cold and wide: nothing is written here per unchanged poll.';
CREATE TABLE counterfoil.operation_result (
    operation_id UUID NOT NULL,
    body BYTEA NOT NULL,
    pointer TEXT NOT NULL,
    digest BYTEA NOT NULL,
    stored_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    PRIMARY KEY (operation_id)
);
CREATE TABLE counterfoil.ready_outbox (
    id UUID NOT NULL,
    namespace TEXT NOT NULL,
    call_node_id TEXT NOT NULL,
    receipt_id UUID NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    lease_until TIMESTAMP WITH TIME ZONE,
    deliveries INTEGER DEFAULT 0 NOT NULL,
    acked_at TIMESTAMP WITH TIME ZONE,
    PRIMARY KEY (id),
    CONSTRAINT ready_outbox_receipt UNIQUE (receipt_id)
);
CREATE INDEX ready_outbox_waiting ON counterfoil.ready_outbox (namespace, created_at) WHERE acked_at IS NULL;
CREATE TABLE counterfoil.reconciliation_case (
    id UUID NOT NULL,
    operation_id UUID NOT NULL,
    kind TEXT NOT NULL,
    code TEXT NOT NULL,
    why TEXT NOT NULL,
    version INTEGER DEFAULT 1 NOT NULL,
    opened_at TIMESTAMP WITH TIME ZONE NOT NULL,
    closed_at TIMESTAMP WITH TIME ZONE,
    closed_by TEXT,
    PRIMARY KEY (id),
    CONSTRAINT case_closed_whole CHECK ((closed_at IS NULL) = (closed_by IS NULL))
);
CREATE UNIQUE INDEX case_open ON counterfoil.reconciliation_case (operation_id, kind, code) WHERE closed_at IS NULL;
CREATE INDEX case_operation ON counterfoil.reconciliation_case (operation_id);
CREATE TABLE counterfoil.refused_write (
    id UUID NOT NULL,
    operation_id UUID,
    fleet TEXT NOT NULL,
    code TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    what TEXT NOT NULL,
    at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    PRIMARY KEY (id)
);
COMMENT ON TABLE counterfoil.refused_write IS 'What an older epoch tried: refused, kept, counted.';
CREATE TABLE counterfoil.target_state (
    fleet TEXT NOT NULL,
    target TEXT NOT NULL,
    protocol TEXT NOT NULL,
    closed_until TIMESTAMP WITH TIME ZONE,
    seen_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    PRIMARY KEY (fleet, target)
);
CREATE TABLE counterfoil.terminal_receipt (
    id UUID NOT NULL,
    namespace TEXT NOT NULL,
    call_node_id TEXT NOT NULL,
    operation_id UUID NOT NULL,
    request_digest BYTEA NOT NULL,
    submission_key UUID NOT NULL,
    target TEXT NOT NULL,
    tool TEXT NOT NULL,
    tool_version TEXT,
    descriptor_digest BYTEA,
    principal TEXT NOT NULL,
    protocol TEXT,
    task_id TEXT,
    state TEXT NOT NULL,
    outcome TEXT NOT NULL,
    terminal_status TEXT,
    error_code TEXT,
    effects_possible BOOLEAN NOT NULL,
    attempt SMALLINT NOT NULL,
    cancel_generation INTEGER NOT NULL,
    unanswered_rounds INTEGER NOT NULL,
    execution_epoch BIGINT NOT NULL,
    result_digest BYTEA,
    result_pointer TEXT,
    digest BYTEA NOT NULL,
    accepted_at TIMESTAMP WITH TIME ZONE NOT NULL,
    PRIMARY KEY (id),
    CONSTRAINT terminal_receipt_call_node UNIQUE (namespace, call_node_id),
    CONSTRAINT terminal_receipt_state CHECK (state IN ('ACCEPTED', 'CANCELLED_ACCEPTED', 'REFUSED')),
    CONSTRAINT terminal_receipt_outcome CHECK (outcome IN ('succeeded', 'failed', 'cancelled', 'refused', 'abandoned'))
);
COMMENT ON TABLE counterfoil.terminal_receipt IS 'Immutable. Written only by accept_terminal.';
CREATE TABLE counterfoil.tool_descriptor (
    digest BYTEA NOT NULL,
    target TEXT NOT NULL,
    tool TEXT NOT NULL,
    protocol TEXT NOT NULL,
    tool_version TEXT,
    body BYTEA NOT NULL,
    first_seen_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    PRIMARY KEY (digest)
);
CREATE TABLE counterfoil.tool_policy (
    digest BYTEA NOT NULL,
    body BYTEA NOT NULL,
    first_seen_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    PRIMARY KEY (digest)
);
CREATE TABLE counterfoil.wake (
    operation_id UUID NOT NULL,
    lane TEXT NOT NULL,
    fleet TEXT NOT NULL,
    target TEXT NOT NULL,
    due_at TIMESTAMP WITH TIME ZONE NOT NULL,
    kick INTEGER DEFAULT 0 NOT NULL,
    lease_until TIMESTAMP WITH TIME ZONE,
    lease_token UUID,
    lease_epoch BIGINT,
    read_seq BIGINT DEFAULT 0 NOT NULL,
    claim_count SMALLINT DEFAULT 0 NOT NULL,
    PRIMARY KEY (operation_id, lane),
    CONSTRAINT wake_lane CHECK (lane IN ('submit', 'lookup', 'poll', 'answer', 'cancel', 'fetch', 'audit', 'sync', 'timer', 'door')),
    CONSTRAINT wake_lease_whole CHECK ((lease_token IS NULL) = (lease_until IS NULL) AND (lease_token IS NULL) = (lease_epoch IS NULL))
);
CREATE INDEX wake_due ON counterfoil.wake (fleet, lane, target, due_at);
COMMENT ON TABLE counterfoil.wake IS 'Hot and narrow. While leased, due_at is the lease''s end: a dead worker''s row is simply due again.';
-- wake is the hot table: dead rows must go early (measured: dead rows stay under 9,000 at scale 0.02 over 1.4 million updates).
ALTER TABLE counterfoil.wake SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 1);
