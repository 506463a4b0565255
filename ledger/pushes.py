"""Ready rows and notices on their way to a webhook: taken under a lease, acknowledged once the receiver said yes.

Push and pull share the lease and the acknowledgement; when to push again is a push's own affair, so that a consumer may
pull meanwhile. How often a failed one is repeated is the caller's; what a namespace's endpoint may be told stands here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import select

from .database import Database, execute
from .reads import plain
from .records import Record
from .side_tables import webhook_endpoint


@dataclass(frozen=True, slots=True)
class Push:
    """One event to push. `word` is the receipt's outcome or the notice's kind; receipt fields are None on a notice.

    `deliveries` counts this one; `fresh`: no push of it has failed yet. `failures` are the endpoint's, `now_s` the
    ledger's clock in seconds since 1970, both as of the lease.
    """

    id: UUID
    deliveries: int
    fresh: bool
    created_at: datetime
    call_node_id: str
    operation_id: UUID
    word: str
    code: str | None
    why: str | None
    receipt_id: UUID | None
    receipt_digest: bytes | None
    target: str
    tool: str
    effects_possible: bool | None
    result_digest: bytes | None
    result_pointer: str | None
    result_body: bytes | None
    failures: int
    now_s: int
    ledger_id: UUID


@dataclass(frozen=True, slots=True)
class Failing:
    """What a batch says against its endpoint: it waits `delay_s`; `gone`: it is stopped until somebody resumes it.

    `failures` is the count from now on, `why` for people (no secret), `give_up_s` how long it may go without a success.
    """

    failures: int
    delay_s: float
    why: str
    gone: bool
    give_up_s: float


class WebhookEndpoint(Record):
    """The state of a namespace's webhook; there is none for one that is well and never failed."""

    namespace: str
    failures: int
    next_at: datetime | None
    failing_since: datetime | None
    stopped_at: datetime | None
    why: str | None


class Pushes:
    """The outbox as webhooks see it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def due(self, namespaces: Sequence[str]) -> list[str]:
        """Which of these namespaces have something to push, and an endpoint that may be tried."""
        with self._database.autocommit() as connection:
            return [row[0] for row in execute(connection, "due_webhooks", {"namespaces": list(namespaces)})]

    def take(self, namespace: str, *, limit: int, lease_s: float, result_bytes: int) -> list[Push]:
        """Lease up to `limit` events for `lease_s`; one, by one process, while the endpoint is failing.

        A result of at most `result_bytes` comes along.
        """
        arguments = {"namespace": namespace, "limit": limit, "lease_s": lease_s, "result_bytes": result_bytes}
        with self._database.autocommit() as connection:
            rows = execute(connection, "take_webhook_events", arguments)
            return sorted((Push(**row._asdict()) for row in rows), key=lambda push: (push.created_at, push.id))

    def settle(
        self, namespace: str, delivered: Sequence[Push], failed: Sequence[tuple[Push, float]], failing: Failing | None
    ) -> bool:
        """Acknowledge what was delivered, give back what was not (due again after so many seconds), and keep what the
        endpoint showed. Returns whether the endpoint is stopped."""
        told = [(push, None) for push in delivered] + list(failed)
        events = {
            "namespace": namespace,
            "ids": [push.id for push, _ in told],
            "deliveries": [push.deliveries for push, _ in told],
            "delays_s": [delay_s for _, delay_s in told],
        }

        def work() -> bool:
            with self._database.begin() as connection:
                execute(connection, "settle_webhook_events", events)
                if failing is None:
                    if any(push.failures for push in delivered):
                        execute(connection, "clear_webhook", {"namespace": namespace})
                    return False
                noted = {name: getattr(failing, name) for name in Failing.__slots__}
                ((stopped,),) = execute(connection, "fail_webhook", noted | {"namespace": namespace})
                return bool(stopped)

        return self._database.again(work)


def webhook_endpoints(database: Database) -> list[WebhookEndpoint]:
    """The endpoints that fail or were stopped, by namespace."""
    table = webhook_endpoint.c
    ill = select(webhook_endpoint).where((table.failures > 0) | table.stopped_at.is_not(None))
    with database.autocommit() as connection:
        rows = connection.execute(ill.order_by(table.namespace)).mappings()
        return [WebhookEndpoint(**plain(row)) for row in rows]


def resume_webhook(database: Database, namespace: str) -> bool:
    """Start a stopped or failing endpoint anew; everything that waits is due at once. False: it was neither."""
    with database.begin() as connection:
        found = execute(connection, "resume_webhook", {"namespace": namespace}).fetchone()
    return found is not None
