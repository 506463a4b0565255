"""Acceptance: one call of the SQL function that alone may write receipts (SPEC section 6)."""

from collections.abc import Sequence
from typing import TypeAlias
from uuid import UUID

from .database import Database, execute
from .digest import ready_id, receipt_id
from .rows import Row
from .states import Lane

Settled: TypeAlias = tuple[Row, Lane | None]
"""A row whose end is decided, and the lane whose evidence decided it (None: long ago, by a bearer that died)."""


def accept(database: Database, fleet: str, epoch: int, settled: Sequence[Settled]) -> dict[UUID, str]:
    """Accept operations whose end is decided (`settle_as`). One round trip, one verdict a row:

    accepted | same | differs | stale_epoch | generation | state | failed. Anything but the first two leaves the row
    as it is; its fetch lane comes by again.
    """
    rows = [row for row, _ in settled]
    arguments = {
        "fleet": fleet,
        "epoch": epoch,
        "lanes": [None if lane is None else str(lane) for _, lane in settled],
        "ids": [row.id for row in rows],
        "receipt_ids": [receipt_id(row.namespace, row.call_node_id) for row in rows],
        "ready_ids": [ready_id(row.namespace, row.call_node_id) for row in rows],
        "namespaces": [row.namespace for row in rows],
        "call_node_ids": [row.call_node_id for row in rows],
        "request_digests": [row.request_digest for row in rows],
        "task_ids": [row.operation.task_id for row in rows],
        "tool_versions": [row.tool_version for row in rows],
        "settle_as": [str(row.operation.settle_as or row.operation.state) for row in rows],
        "generations": [row.operation.cancel_generation for row in rows],
        "result_digests": [row.operation.result_digest for row in rows],
    }

    def call() -> dict[UUID, str]:
        with database.autocommit() as connection:
            return {row[0]: row[1] for row in execute(connection, "accept", arguments)}

    return database.again(call)
