"""The tables beside operations: sessions of servers, letters that could not be delivered, notices, webhooks."""

from sqlalchemy import CheckConstraint, Column, Index, Integer, LargeBinary, Table, Text, Uuid, text

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
