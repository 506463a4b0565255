"""The tables, as SQLAlchemy Core: what Alembic compares against and what reads are written with.

Everything lives in the schema `counterfoil`. CHECKs restate the invariants of the machine, so that a bug in a writer
meets the database before it meets a person. Contested writes are in `sql/`, receipts only in the function
`accept_terminal`.
"""

from datetime import datetime

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from .states import TERMINAL, Lane, Outcome, State

SCHEMA = "counterfoil"
metadata = MetaData(schema=SCHEMA)

NOW = text("clock_timestamp()")


def _words(kind: type, column: str) -> str:
    return f"{column} IN ({', '.join(repr(str(word)) for word in kind)})"  # type: ignore[attr-defined]


def moment(name: str, *, nullable: bool = True, default: bool = False) -> Column[datetime]:
    return Column(name, DateTime(timezone=True), nullable=nullable, server_default=NOW if default else None)


_TERMINAL = ", ".join(repr(str(state)) for state in sorted(TERMINAL))

ledger_identity = Table(
    "ledger_identity",
    metadata,
    Column("one", Boolean, primary_key=True, server_default=text("true")),
    Column("ledger_id", Uuid, nullable=False, server_default=text("gen_random_uuid()")),
    CheckConstraint("one", name="ledger_identity_one"),
)

ledger_clock = Table(
    "ledger_clock",
    metadata,
    Column("one", Boolean, primary_key=True, server_default=text("true")),
    moment("frozen_at"),
    CheckConstraint("one", name="ledger_clock_one"),
    comment="Empty in production; the owner alone may freeze the ledger's clock (tests, transcripts).",
)

execution_epoch = Table(
    "execution_epoch",
    metadata,
    Column("fleet", Text, primary_key=True),
    Column("epoch", BigInteger, nullable=False),
    Column("system_identifier", BigInteger, nullable=False),
    Column("timeline", Integer, nullable=False),
    Column("reason", Text, nullable=False, server_default=text("'created'")),
    moment("bumped_at", nullable=False, default=True),
    Column("generation", BigInteger),
    Column("bump_key", Text),
    CheckConstraint("epoch >= 1", name="execution_epoch_positive"),
)

control = Table(
    "control",
    metadata,
    Column("fleet", Text, primary_key=True),
    Column("create_on", Boolean, nullable=False, server_default=text("true")),
    Column("reason", Text),
    moment("changed_at", nullable=False, default=True),
    Column("by_values", Boolean, nullable=False, server_default=text("false")),
)

namespace = Table(
    "namespace",
    metadata,
    Column("namespace", Text, primary_key=True),
    Column("fleet", Text, nullable=False),
    comment="A namespace belongs to one fleet, from its first call on.",
)

target_state = Table(
    "target_state",
    metadata,
    Column("fleet", Text),
    Column("target", Text),
    Column("protocol", Text, nullable=False),
    moment("closed_until"),
    moment("seen_at", nullable=False, default=True),
    PrimaryKeyConstraint("fleet", "target"),
)

tool_descriptor = Table(
    "tool_descriptor",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("target", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("protocol", Text, nullable=False),
    Column("tool_version", Text),
    Column("body", LargeBinary, nullable=False),
    moment("first_seen_at", nullable=False, default=True),
)

tool_policy = Table(
    "tool_policy",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("body", LargeBinary, nullable=False),
    moment("first_seen_at", nullable=False, default=True),
)

call_node = Table(
    "call_node",
    metadata,
    Column("namespace", Text),
    Column("call_node_id", Text),
    Column("request_digest", LargeBinary, nullable=False),
    Column("mode", Text, nullable=False, server_default=text("'live'")),
    Column("operation_id", Uuid),
    Column("outcome", Text),
    Column("receipt_id", Uuid),
    Column("receipt_digest", LargeBinary),
    moment("first_seen_at", nullable=False, default=True),
    PrimaryKeyConstraint("namespace", "call_node_id"),
    CheckConstraint("(outcome IS NULL) = (receipt_id IS NULL)", name="call_node_outcome_with_receipt"),
    CheckConstraint("mode IN ('live', 'shadow', 'not_selected')", name="call_node_mode"),
    Index("call_node_open", "operation_id", postgresql_where=text("outcome IS NULL AND operation_id IS NOT NULL")),
    comment="The register: never pruned, never partitioned. One receipt a call node, for ever.",
)

operation = Table(
    "operation",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("fleet", Text, nullable=False),
    Column("namespace", Text, nullable=False),
    Column("call_node_id", Text, nullable=False),
    Column("request_digest", LargeBinary, nullable=False),
    Column("target", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("principal", Text, nullable=False),
    Column("arguments", LargeBinary, nullable=False),
    Column("submission_key", Uuid, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempt", SmallInteger, nullable=False, server_default=text("1")),
    Column("sent_attempt", SmallInteger, nullable=False, server_default=text("0")),
    Column("protocol", Text),
    Column("tool_version", Text),
    Column("descriptor_digest", LargeBinary),
    Column("policy_digest", LargeBinary),
    Column("session_id", Uuid),
    Column("task_id", Text),
    Column("server_status", Text),
    Column("remote_created_at", Text),
    Column("ttl_ms", BigInteger),
    Column("interval_ms", BigInteger),
    Column("observed_seq", BigInteger, nullable=False, server_default=text("0")),
    Column("tries", Integer, nullable=False, server_default=text("0")),
    Column("auth_tries", SmallInteger, nullable=False, server_default=text("0")),
    Column("not_found_count", SmallInteger, nullable=False, server_default=text("0")),
    Column("cancel_generation", Integer, nullable=False, server_default=text("0")),
    Column("cancel_due", Boolean, nullable=False, server_default=text("false")),
    Column("cancel_sends", SmallInteger, nullable=False, server_default=text("0")),
    Column("cancel_acked", Boolean, nullable=False, server_default=text("false")),
    Column("input_round", Integer, nullable=False, server_default=text("0")),
    Column("unanswered_rounds", Integer, nullable=False, server_default=text("0")),
    Column("last_code", Text),
    Column("settle_as", Text),
    Column("outcome", Text),
    Column("error_code", Text),
    Column("effects_possible", Boolean, nullable=False, server_default=text("false")),
    Column("terminal_status", Text),
    Column("result_digest", LargeBinary),
    Column("result_pointer", Text),
    Column("budget_s", Float),
    moment("budget_ends_at"),
    moment("input_ends_at"),
    moment("confirm_ends_at"),
    moment("first_intent_at"),
    moment("last_send_by"),
    Column("leg", SmallInteger, nullable=False, server_default=text("1")),
    Column("request_state", Text),
    Column("result_value_digest", LargeBinary),
    Column("audit_s", Float),
    moment("audit_ends_at"),
    Column("shadow", Boolean, nullable=False, server_default=text("false")),
    Column("execution_epoch", BigInteger, nullable=False),
    Column("journal_seq", Integer, nullable=False, server_default=text("0")),
    moment("created_at", nullable=False, default=True),
    moment("updated_at", nullable=False, default=True),
    UniqueConstraint("namespace", "call_node_id", name="operation_call_node"),
    CheckConstraint(_words(State, "state"), name="operation_state"),
    CheckConstraint(f"outcome IS NULL OR {_words(Outcome, 'outcome')}", name="operation_outcome"),
    CheckConstraint(f"settle_as IS NULL OR settle_as IN ({_TERMINAL})", name="operation_settle_as"),
    CheckConstraint(f"state NOT IN ({_TERMINAL}) OR outcome IS NOT NULL", name="operation_terminal_has_outcome"),
    CheckConstraint(
        "state NOT IN ('WORKING', 'CANCEL_REQUESTED') OR task_id IS NOT NULL", name="operation_working_has_task"
    ),
    CheckConstraint("attempt BETWEEN 1 AND 2 AND sent_attempt BETWEEN 0 AND attempt", name="operation_attempts"),
    CheckConstraint("budget_ends_at IS NULL OR budget_s IS NULL", name="operation_budget_runs_or_rests"),
    CheckConstraint(
        "outcome IS DISTINCT FROM 'succeeded' OR result_digest IS NOT NULL", name="operation_success_has_result"
    ),
    Index("operation_task", "target", "task_id", postgresql_where=text("task_id IS NOT NULL")),
    Index("operation_submission_key", "submission_key"),
    Index("operation_session", "session_id", postgresql_where=text("session_id IS NOT NULL")),
    Index("operation_audit", "audit_ends_at", postgresql_where=text("audit_ends_at IS NOT NULL")),
    comment="Cold and wide: nothing is written here per unchanged poll.",
)

wake = Table(
    "wake",
    metadata,
    Column("operation_id", Uuid),
    Column("lane", Text),
    Column("fleet", Text, nullable=False),
    Column("target", Text, nullable=False),
    moment("due_at", nullable=False),
    Column("kick", Integer, nullable=False, server_default=text("0")),
    moment("lease_until"),
    Column("lease_token", Uuid),
    Column("lease_epoch", BigInteger),
    Column("read_seq", BigInteger, nullable=False, server_default=text("0")),
    Column("claim_count", SmallInteger, nullable=False, server_default=text("0")),
    PrimaryKeyConstraint("operation_id", "lane"),
    CheckConstraint(_words(Lane, "lane"), name="wake_lane"),
    CheckConstraint(
        "(lease_token IS NULL) = (lease_until IS NULL) AND (lease_token IS NULL) = (lease_epoch IS NULL)",
        name="wake_lease_whole",
    ),
    Index("wake_due", "fleet", "lane", "target", "due_at"),
    comment="Hot and narrow. While leased, due_at is the lease's end: a dead worker's row is simply due again.",
)

intent = Table(
    "intent",
    metadata,
    Column("send_token", Uuid, primary_key=True),
    Column("operation_id", Uuid, nullable=False),
    Column("effect", Text, nullable=False),
    Column("attempt", SmallInteger, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    moment("send_by", nullable=False),
    moment("answer_by", nullable=False),
    moment("opened_at", nullable=False),
    moment("closed_at"),
    Column("how", Text),
    CheckConstraint("effect IN ('submit', 'replay', 'answer', 'cancel')", name="intent_effect"),
    CheckConstraint("(closed_at IS NULL) = (how IS NULL)", name="intent_closed_whole"),
    Index("intent_open", "operation_id", "effect", unique=True, postgresql_where=text("closed_at IS NULL")),
    comment="Committed before the first byte of the one request that has the effect.",
)

evidence = Table(
    "evidence",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("fleet", Text, nullable=False),
    Column("operation_id", Uuid, nullable=False),
    Column("kind", Text, nullable=False),
    Column("attempt", SmallInteger, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("send_token", Uuid),
    Column("epoch", BigInteger, nullable=False),
    Column("status", Integer, nullable=False),
    Column("headers", JSONB, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("seq", BigInteger, nullable=False, server_default=text("0")),
    moment("received_at", nullable=False, default=True),
    moment("consumed_at"),
    Index("evidence_unconsumed", "fleet", "received_at", postgresql_where=text("consumed_at IS NULL")),
    Index("evidence_operation", "operation_id"),
    Index("evidence_waiting", "operation_id", postgresql_where=text("consumed_at IS NULL")),
    postgresql_partition_by="RANGE (id)",
    comment="What a server said, exact bytes. Appended without any fence; consumed_at is the only thing that changes.",
)

operation_result = Table(
    "operation_result",
    metadata,
    Column("operation_id", Uuid, primary_key=True),
    Column("body", LargeBinary, nullable=False),
    Column("pointer", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    moment("stored_at", nullable=False, default=True),
)

terminal_receipt = Table(
    "terminal_receipt",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("call_node_id", Text, nullable=False),
    Column("operation_id", Uuid, nullable=False),
    Column("request_digest", LargeBinary, nullable=False),
    Column("submission_key", Uuid, nullable=False),
    Column("target", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("tool_version", Text),
    Column("descriptor_digest", LargeBinary),
    Column("principal", Text, nullable=False),
    Column("protocol", Text),
    Column("task_id", Text),
    Column("state", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("terminal_status", Text),
    Column("error_code", Text),
    Column("effects_possible", Boolean, nullable=False),
    Column("attempt", SmallInteger, nullable=False),
    Column("cancel_generation", Integer, nullable=False),
    Column("unanswered_rounds", Integer, nullable=False),
    Column("execution_epoch", BigInteger, nullable=False),
    Column("result_digest", LargeBinary),
    Column("result_pointer", Text),
    Column("digest", LargeBinary, nullable=False),
    moment("accepted_at", nullable=False),
    UniqueConstraint("namespace", "call_node_id", name="terminal_receipt_call_node"),
    CheckConstraint(f"state IN ({_TERMINAL})", name="terminal_receipt_state"),
    CheckConstraint(_words(Outcome, "outcome"), name="terminal_receipt_outcome"),
    Index("terminal_receipt_accepted", "accepted_at"),
    comment="Immutable. Written only by accept_terminal.",
)

ready_outbox = Table(
    "ready_outbox",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("namespace", Text, nullable=False),
    Column("call_node_id", Text, nullable=False),
    Column("receipt_id", Uuid, nullable=False),
    moment("created_at", nullable=False),
    moment("lease_until"),
    Column("deliveries", Integer, nullable=False, server_default=text("0")),
    moment("push_at"),
    moment("acked_at"),
    UniqueConstraint("receipt_id", name="ready_outbox_receipt"),
    Index("ready_outbox_waiting", "namespace", "created_at", postgresql_where=text("acked_at IS NULL")),
    Index("ready_outbox_acked", "namespace", "acked_at", postgresql_where=text("acked_at IS NOT NULL")),
)

reconciliation_case = Table(
    "reconciliation_case",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("operation_id", Uuid, nullable=False),
    Column("kind", Text, nullable=False),
    Column("code", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("version", Integer, nullable=False, server_default=text("1")),
    moment("opened_at", nullable=False),
    moment("closed_at"),
    Column("closed_by", Text),
    Column("verdict", Text),
    Column("reason", Text),
    Column("second_actor", Text),
    Index("case_open", "operation_id", "kind", "code", unique=True, postgresql_where=text("closed_at IS NULL")),
    Index("case_operation", "operation_id"),
    CheckConstraint("(closed_at IS NULL) = (closed_by IS NULL)", name="case_closed_whole"),
)

journal = Table(
    "journal",
    metadata,
    Column("operation_id", Uuid),
    Column("seq", Integer),
    moment("at", nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("actor", Text, nullable=False),
    Column("event", Text, nullable=False),
    Column("source", Text),
    Column("target", Text),
    Column("lane", Text),
    Column("code", Text),
    Column("why", Text),
    PrimaryKeyConstraint("operation_id", "seq"),
    postgresql_partition_by="RANGE (operation_id)",
)

refused_write = Table(
    "refused_write",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("operation_id", Uuid),
    Column("fleet", Text, nullable=False),
    Column("code", Text, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("what", Text, nullable=False),
    moment("at", nullable=False, default=True),
    Index("refused_write_at", "fleet", "at"),
    comment="What an older epoch tried: refused, kept, counted.",
)
