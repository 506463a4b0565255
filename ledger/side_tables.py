"""The tables beside operations: questions to people, switches, sessions of servers, letters that could not be
delivered, notices, webhooks."""

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)

from .tables import metadata, moment

remote_session = Table(
    "remote_session",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("fleet", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("credential", Text, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    moment("begun_at", nullable=False, default=True),
    moment("ended_at"),
    Index("remote_session_open", "fleet", "begun_at", postgresql_where=text("ended_at IS NULL")),
    comment="A server's session, encrypted: whoever holds it may read and cancel its tasks. "
    "Ended after its last operation.",
)

dead_letter = Table(
    "dead_letter",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("fleet", Text, nullable=False),
    Column("code", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("key_id", Text),
    Column("body_digest", LargeBinary, nullable=False),
    Column("body", LargeBinary, nullable=False),
    moment("received_at", nullable=False, default=True),
    Index("dead_letter_recent", "fleet", "received_at"),
    comment="A submit message that could not become a row, with the reason. Never a silent drop.",
)

notice = Table(
    "notice",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("call_node_id", Text, nullable=False),
    Column("operation_id", Uuid, nullable=False),
    Column("kind", Text, nullable=False),
    Column("code", Text),
    Column("why", Text),
    moment("created_at", nullable=False),
    moment("lease_until"),
    Column("deliveries", Integer, nullable=False, server_default=text("0")),
    moment("push_at"),
    moment("acked_at"),
    CheckConstraint("kind IN ('input_required', 'attention')", name="notice_kind"),
    Index("notice_waiting", "namespace", "created_at", postgresql_where=text("acked_at IS NULL")),
    Index("notice_acked", "namespace", "acked_at", postgresql_where=text("acked_at IS NOT NULL")),
    comment="What a call node's owner should know before there is a receipt. At least once, deduped by id.",
)

webhook_endpoint = Table(
    "webhook_endpoint",
    metadata,
    Column("namespace", Text, primary_key=True),
    Column("failures", Integer, nullable=False, server_default=text("0")),
    moment("next_at"),
    moment("failing_since"),
    moment("stopped_at"),
    Column("why", Text),
    comment="The state of a namespace's webhook; no row: well. Stopped by a 410, or after three days of failures.",
)

input_round = Table(
    "input_round",
    metadata,
    Column("operation_id", Uuid),
    Column("number", SmallInteger),
    Column("leg", SmallInteger, nullable=False),
    Column("key", Text, nullable=False),
    Column("method", Text, nullable=False),
    Column("params", LargeBinary, nullable=False),
    Column("schema_digest", LargeBinary, nullable=False),
    Column("reply_to", Text, nullable=False),
    Column("state", Text, nullable=False, server_default=text("'open'")),
    Column("sends", SmallInteger, nullable=False, server_default=text("0")),
    Column("reply", LargeBinary),
    Column("replied_by", Text),
    moment("replied_at"),
    moment("opened_at", nullable=False),
    moment("closed_at"),
    Column("how", Text),
    PrimaryKeyConstraint("operation_id", "number"),
    UniqueConstraint("operation_id", "leg", "key", name="input_round_key"),
    CheckConstraint("state IN ('open', 'replied', 'sent', 'unclear', 'closed')", name="input_round_state"),
    CheckConstraint(
        "(state = 'closed') = (closed_at IS NOT NULL) AND (closed_at IS NULL) = (how IS NULL)",
        name="input_round_closed_whole",
    ),
    CheckConstraint(
        "(reply IS NULL) = (replied_at IS NULL) AND (reply IS NULL) = (replied_by IS NULL)",
        name="input_round_reply_whole",
    ),
    Index("input_round_open", "opened_at", postgresql_where=text("state <> 'closed'")),
    comment="One question of a tool to a person. Its reply is used once.",
)

adapter_mode = Table(
    "adapter_mode",
    metadata,
    Column("fleet", Text),
    Column("protocol", Text),
    Column("mode", Text, nullable=False),
    Column("reason", Text, nullable=False),
    moment("changed_at", nullable=False, default=True),
    PrimaryKeyConstraint("fleet", "protocol"),
    CheckConstraint("mode IN ('open', 'drain', 'off')", name="adapter_mode_mode"),
    comment="A protocol version that takes no new submits any more; no row: open.",
)

rollout = Table(
    "rollout",
    metadata,
    Column("fleet", Text),
    Column("target", Text),
    Column("tool", Text),
    Column("percent", Float, nullable=False),
    Column("shadow", Boolean, nullable=False),
    Column("reason", Text, nullable=False),
    moment("changed_at", nullable=False, default=True),
    PrimaryKeyConstraint("fleet", "target", "tool"),
    CheckConstraint("percent BETWEEN 0 AND 100", name="rollout_percent"),
    comment="Which part of a tool's call nodes is taken on, and whether the rest runs as a shadow; no row: all.",
)

shadow_report = Table(
    "shadow_report",
    metadata,
    Column("namespace", Text),
    Column("call_node_id", Text),
    Column("outcome", Text, nullable=False),
    Column("result", LargeBinary),
    moment("reported_at", nullable=False, default=True),
    PrimaryKeyConstraint("namespace", "call_node_id"),
    CheckConstraint("outcome IN ('succeeded', 'failed', 'cancelled')", name="shadow_report_outcome"),
    comment="What the old path made of a call node that also ran as a shadow.",
)

pulse = Table(
    "pulse",
    metadata,
    Column("fleet", Text),
    Column("name", Text),
    moment("seen_at", nullable=False),
    PrimaryKeyConstraint("fleet", "name"),
    comment="When a part of the fleet was last heard of: a tick of beat that reached a worker.",
)

schema_floor = Table(
    "schema_floor",
    metadata,
    Column("one", Boolean, primary_key=True, server_default=text("true")),
    Column("version", Text, nullable=False),
    Column("why", Text, nullable=False),
    CheckConstraint("one", name="schema_floor_one"),
    comment="The oldest schema version whose release may still work on this ledger, and why.",
)
