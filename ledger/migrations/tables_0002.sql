ALTER TABLE counterfoil.operation ADD COLUMN session_id UUID;
ALTER TABLE counterfoil.ready_outbox ADD COLUMN push_at TIMESTAMP WITH TIME ZONE;
CREATE INDEX operation_session ON counterfoil.operation (session_id) WHERE session_id IS NOT NULL;

CREATE TABLE counterfoil.remote_session (
    id UUID NOT NULL,
    fleet TEXT NOT NULL,
    target TEXT NOT NULL,
    credential TEXT NOT NULL,
    sealed BYTEA NOT NULL,
    begun_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    ended_at TIMESTAMP WITH TIME ZONE,
    PRIMARY KEY (id)
);
CREATE INDEX remote_session_open ON counterfoil.remote_session (fleet, begun_at) WHERE ended_at IS NULL;
COMMENT ON TABLE counterfoil.remote_session IS
    'A server''s session, encrypted: whoever holds it may read and cancel its tasks. Ended after its last operation.';

CREATE TABLE counterfoil.dead_letter (
    id UUID NOT NULL,
    fleet TEXT NOT NULL,
    code TEXT NOT NULL,
    why TEXT NOT NULL,
    key_id TEXT,
    body_digest BYTEA NOT NULL,
    body BYTEA NOT NULL,
    received_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX dead_letter_recent ON counterfoil.dead_letter (fleet, received_at);
COMMENT ON TABLE counterfoil.dead_letter IS
    'A submit message that could not become a row, with the reason. Never a silent drop.';

CREATE TABLE counterfoil.notice (
    id UUID NOT NULL,
    namespace TEXT NOT NULL,
    call_node_id TEXT NOT NULL,
    operation_id UUID NOT NULL,
    kind TEXT NOT NULL,
    code TEXT,
    why TEXT,
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    lease_until TIMESTAMP WITH TIME ZONE,
    deliveries INTEGER DEFAULT 0 NOT NULL,
    push_at TIMESTAMP WITH TIME ZONE,
    acked_at TIMESTAMP WITH TIME ZONE,
    PRIMARY KEY (id),
    CONSTRAINT notice_kind CHECK (kind IN ('input_required', 'attention'))
);
CREATE INDEX notice_waiting ON counterfoil.notice (namespace, created_at) WHERE acked_at IS NULL;
COMMENT ON TABLE counterfoil.notice IS
    'What a call node''s owner should know before there is a receipt. At least once, deduped by id.';

CREATE TABLE counterfoil.webhook_endpoint (
    namespace TEXT NOT NULL,
    failures INTEGER DEFAULT 0 NOT NULL,
    next_at TIMESTAMP WITH TIME ZONE,
    failing_since TIMESTAMP WITH TIME ZONE,
    stopped_at TIMESTAMP WITH TIME ZONE,
    why TEXT,
    PRIMARY KEY (namespace)
);
COMMENT ON TABLE counterfoil.webhook_endpoint IS
    'The state of a namespace''s webhook; no row: well. Stopped by a 410, or after three days of failures.';

GRANT SELECT ON counterfoil.remote_session, counterfoil.dead_letter, counterfoil.notice, counterfoil.webhook_endpoint TO counterfoil_app;
GRANT INSERT, UPDATE ON counterfoil.remote_session, counterfoil.webhook_endpoint TO counterfoil_app;
GRANT INSERT ON counterfoil.dead_letter, counterfoil.notice TO counterfoil_app;
GRANT UPDATE (lease_until, deliveries, acked_at) ON counterfoil.notice TO counterfoil_app, counterfoil_producer;
GRANT UPDATE (push_at) ON counterfoil.notice, counterfoil.ready_outbox TO counterfoil_app;
GRANT SELECT ON counterfoil.notice TO counterfoil_producer;
