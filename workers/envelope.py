"""A look at each broker entry before Celery's own code meets it: whoever reaches the broker must not stop a worker.

Measured with Celery 5.7 and kombu 5.7: a body that is JSON but not `[args, kwargs, embed]` ends the worker
("Unrecoverable error"), a missing task id makes it reconnect for ever, and both put the message back for the next
worker, so that one slip in a producer's script takes the fleet down. An entry that is no JSON ends the worker that
popped it. An ETA is held in memory, a time limit kills the process that runs the task, a compressed body is unpacked
without a cap.
"""

import base64
import json
import logging
from collections.abc import Callable, Container
from typing import Any, TypeGuard

from celery.worker.consumer import Consumer
from kombu.serialization import loads
from kombu.utils.uuid import uuid

from ..adapters import strict_json
from ..adapters.strict_json import BadJson, Json
from ..ledger.digest import sha256
from .messages import MAX_BODY_BYTES, SUBMIT

log = logging.getLogger(__name__)

MAX_ENTRY_BYTES = 8 * MAX_BODY_BYTES
"""A body as a text in a text in base64 is at most some five times as long."""

_UNUSED = (
    "compression", "eta", "timelimit", "shadow", "retries", "group_index", "replaced_task_nesting", "stamped_headers",
    "stamps",
)  # fmt: skip
_EMPTY: tuple[object, ...] = (None, 0, "", [], {}, [None, None])


def envelope_fault(entry: bytes, queue: str, tasks: Container[object]) -> str:
    """What is wrong with the form of a queue's entry; "" if it is a task message that Celery can take: protocol 2,
    JSON, with nothing but a task to run now."""
    if len(entry) > MAX_ENTRY_BYTES:
        return f"it has {len(entry)} bytes; the cap is {MAX_ENTRY_BYTES}."
    try:
        envelope = strict_json.loads(entry)
    except BadJson as error:
        return f"{error}."
    if not isinstance(envelope, dict) or not _is_mapping(envelope.get("headers")):
        return "it has no `headers`."
    return (
        _headers_fault(envelope["headers"], queue, tasks)
        or _properties_fault(envelope.get("properties"))
        or _body_fault(envelope)
    )


def _is_mapping(value: object) -> TypeGuard[dict[str, Json]]:
    return isinstance(value, dict)


def _headers_fault(headers: Json, queue: str, tasks: Container[object]) -> str:
    assert isinstance(headers, dict)
    task = headers.get("task")
    # An expired one would be dropped by Celery without a word to the ledger.
    unused = (*_UNUSED, "expires") if SUBMIT in (queue, task) else _UNUSED
    # Elsewhere Celery itself drops what it doesn't know: beat may be of a newer release than the worker.
    if not isinstance(task, str) or (queue == SUBMIT and task not in tasks):
        return f"the header `task` is not {SUBMIT}."
    if not isinstance(headers.get("id"), str) or not headers["id"]:
        return "the header `id` is missing."
    wrong = [name for name in unused if headers.get(name) not in _EMPTY]
    return f"the header `{wrong[0]}` must be null." if wrong else ""


def _properties_fault(properties: Json) -> str:
    if not _is_mapping(properties):
        return "it has no `properties`."
    where = properties.get("delivery_info")
    if not _is_mapping(where) or not all(isinstance(where.get(name), str) for name in ("exchange", "routing_key")):
        return "`delivery_info` has no `exchange` and `routing_key`."
    if not isinstance(properties.get("delivery_tag"), str):
        return "`delivery_tag` is missing."
    if properties.get("body_encoding") != "base64":
        return "`body_encoding` is not base64."
    named = all(isinstance(properties.get(name), str | None) for name in ("correlation_id", "reply_to"))
    return "" if named else "`correlation_id` or `reply_to` is no string."


def _body_fault(envelope: dict[str, Json]) -> str:
    body = envelope.get("body")
    if not isinstance(body, str):
        return "it has no `body`."
    if envelope.get("content-type") != "application/json" or envelope.get("content-encoding") != "utf-8":
        return "its content type is not application/json in utf-8."
    try:
        payload = _as_kombu_reads(base64.b64decode(body, validate=True))
    except Exception as error:  # noqa: BLE001  whatever a decoder says to whatever bytes
        return f"its body can't be decoded ({type(error).__name__})."
    match payload:
        case [list(), dict(), dict() | None as embed]:
            return "its body asks for further tasks." if any((embed or {}).values()) else ""
        case _:
            return "its body is not [args, kwargs, embed]."


def _as_kombu_reads(body: bytes) -> object:
    """kombu's JSON has types of its own, whose values may not be what they say."""
    return loads(body, "application/json", "utf-8", accept=["application/json"])  # type: ignore[no-untyped-call]


def dead_envelope(entry: bytes, fault: str) -> bytes:
    """A task message that tells what the entry was and what is wrong with it, to be run in the entry's place."""
    text = entry[:MAX_BODY_BYTES].decode("utf-8", "replace").replace("\0", strict_json.REPLACEMENT)
    body = json.dumps([[text], {"fault": fault}, {}]).encode()
    identity = uuid()
    properties = {
        "delivery_tag": uuid(),
        "delivery_info": {"exchange": "counterfoil", "routing_key": SUBMIT},
        "body_encoding": "base64",
        "correlation_id": identity,
    }
    envelope = {
        "body": base64.b64encode(body).decode(),
        "content-type": "application/json",
        "content-encoding": "utf-8",
        "headers": {"task": SUBMIT, "id": identity, "root_id": identity},
        "properties": properties,
    }
    return json.dumps(envelope).encode()


class CheckedConsumer(Consumer):  # type: ignore[misc]  # Celery ships no types
    """Celery's consumer. What has not the form of a task message reaches it as the message of a dead letter."""

    def create_task_handler(self, *arguments: Any, **options: Any) -> Callable[..., None]:
        """Called whenever a connection begins to be read."""
        client = self.task_consumer.channel.client
        read = client.parse_response

        def parse_response(connection: Any, command: str, **options: Any) -> Any:
            reply = read(connection, command, **options)
            return self._checked(reply) if command == "BRPOP" and reply else reply

        client.parse_response = parse_response
        handler: Callable[..., None] = super().create_task_handler(*arguments, **options)
        return handler

    def _checked(self, reply: tuple[bytes | str, bytes | str]) -> tuple[bytes | str, bytes | str]:
        name, given = reply
        queue = (name.decode() if isinstance(name, bytes) else name).partition("\x06")[0]  # behind it: a priority
        entry = given if isinstance(given, bytes) else given.encode()
        fault = envelope_fault(entry, queue, self.strategies)
        if not fault:
            return reply
        log.error("an entry of %s is no task message (sha256 %s): %s", queue, sha256(entry).hex(), fault)
        return name, dead_envelope(entry, fault)
