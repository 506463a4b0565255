"""Three protocols over one body of work. Bytes are as exact as the vendors' own servers write them."""

from typing import Any, ClassVar
from urllib.parse import urlsplit

from .faults import Kind
from .service import Asked, Operation, Said


class Aip151:
    """google.longrunning over HTTP/JSON, exact protobuf JSON; `request_id` as AIP-155 has it."""

    _NAMES = "projects/acme/operations/"

    def read(self, verb: str, path: str, headers: dict[str, str], body: Any) -> Asked:
        if path == "/v1/reports:generate":
            return Asked(Kind.SUBMIT, body.get("requestId"))
        name, _, action = path.removeprefix(f"/v1/{self._NAMES}").partition(":")
        return Asked(Kind.CANCEL if action == "cancel" else Kind.STATUS, id=name)

    def started(self, base: str, asked: Asked, operation: Operation, word: str) -> Said:
        return Said(200, {"name": f"{self._NAMES}{operation.id}"})

    def shown(self, base: str, asked: Asked, operation: Operation, word: str) -> Said:
        done: dict[str, dict[str, Any]] = {
            "completed": {"done": True, "response": _struct(operation)},
            "empty": {"done": True},
            "failed": {"done": True, "error": {"code": 13, "message": "it broke"}},
            "unknown": {"done": "PERHAPS"},
        }
        return Said(200, {"name": f"{self._NAMES}{operation.id}"} | done.get(word, {}))

    def cancelled(self, asked: Asked, operation: Operation) -> Said:
        return Said(200, {})

    def found(self, base: str, asked: Asked, operations: list[tuple[Operation, str]]) -> Said:
        return self.unknown(asked)

    def other(self, base: str, asked: Asked) -> Said:
        return self.unknown(asked)

    def unknown(self, asked: Asked) -> Said:
        return Said(404, {"error": {"code": 404, "status": "NOT_FOUND", "message": "not found"}})

    def error_200(self, asked: Asked) -> Said:
        return Said(200, {"error": {"code": 503, "status": "UNAVAILABLE", "message": "try again"}})


def _struct(operation: Operation) -> dict[str, Any]:
    return {"@type": "type.googleapis.com/google.protobuf.Struct", "value": {"rows": operation.rows}}


class Azure:
    """A status monitor as the Azure guidelines have it: Operation-Location, Operation-Id, resourceLocation."""

    _WORDS: ClassVar = {
        "working": "Running",
        "cancelled": "Running",
        "completed": "Succeeded",
        "empty": "Succeeded",
        "failed": "Failed",
        "unknown": "Perhaps",
    }

    def read(self, verb: str, path: str, headers: dict[str, str], body: Any) -> Asked:
        if verb == "POST" and path == "/reports":
            key = headers.get("operation-id")
            return Asked(Kind.SUBMIT, key, id=key)
        name, _, action = path.removeprefix("/operations/").removeprefix("/reports/").partition(":")
        if action == "cancel":
            return Asked(Kind.CANCEL, id=name)
        return Asked(Kind.STATUS, id=name, message="result" if path.startswith("/reports/") else None)

    def started(self, base: str, asked: Asked, operation: Operation, word: str) -> Said:
        place = f"{base}/operations/{operation.id}"
        headers = (("Operation-Location", place), ("Retry-After", "1"))
        return Said(202, {"id": operation.id, "status": "NotStarted"}, headers)

    def shown(self, base: str, asked: Asked, operation: Operation, word: str) -> Said:
        if asked.message == "result":
            return Said(204) if word == "empty" else Said(200, {"rows": operation.rows})
        said = {"id": operation.id, "status": self._WORDS[word]}
        if word in ("working", "cancelled", "unknown"):
            return Said(200, said, (("Retry-After", "1"),))
        if word == "failed":
            return Said(200, said | {"error": {"code": "Broken", "message": "it broke"}})
        return Said(200, said | {"resourceLocation": f"{base}/reports/{operation.id}"})

    def cancelled(self, asked: Asked, operation: Operation) -> Said:
        return Said(202, {"id": operation.id, "status": "Canceling"})

    def found(self, base: str, asked: Asked, operations: list[tuple[Operation, str]]) -> Said:
        return self.unknown(asked)

    def other(self, base: str, asked: Asked) -> Said:
        return self.unknown(asked)

    def unknown(self, asked: Asked) -> Said:
        return Said(404, {"error": {"code": "NotFound", "message": "not found"}})

    def error_200(self, asked: Asked) -> Said:
        return Said(200, {"error": {"code": "ServiceUnavailable", "message": "try again"}})


class A2a:
    """Agent2Agent 1.0, JSON-RPC. It keeps a client's contextId and dedupes nothing, as the reference server does; a
    cancel is answered CANCELED while the work runs on, as two of its handlers on one store did."""

    _STATES: ClassVar = {
        "working": "WORKING",
        "cancelled": "CANCELED",
        "completed": "COMPLETED",
        "empty": "COMPLETED",
        "failed": "FAILED",
        "unknown": "PERHAPS",
    }
    _METHODS: ClassVar = {
        "SendMessage": Kind.SUBMIT,
        "GetTask": Kind.STATUS,
        "CancelTask": Kind.CANCEL,
        "ListTasks": Kind.LOOKUP,
    }

    def read(self, verb: str, path: str, headers: dict[str, str], body: Any) -> Asked:
        if verb == "GET":
            return Asked(Kind.OTHER, message=urlsplit(path).path)
        kind, params = self._METHODS[body["method"]], body["params"]
        if kind is Kind.SUBMIT:
            waits = not params.get("configuration", {}).get("returnImmediately", False)
            return Asked(kind, params["message"].get("contextId"), waits=waits, message=body)
        return Asked(kind, params.get("contextId"), params.get("id"), message=body)

    def started(self, base: str, asked: Asked, operation: Operation, word: str) -> Said:
        return _rpc(asked, result={"task": self._task(asked, operation, word)})

    def shown(self, base: str, asked: Asked, operation: Operation, word: str) -> Said:
        return _rpc(asked, result=self._task(asked, operation, word))

    def cancelled(self, asked: Asked, operation: Operation) -> Said:
        return _rpc(asked, result=self._task(asked, operation, "cancelled"))

    def found(self, base: str, asked: Asked, operations: list[tuple[Operation, str]]) -> Said:
        tasks = [self._task(asked, one, word) for one, word in operations]
        shown = [{name: value for name, value in task.items() if name != "artifacts"} for task in tasks]
        return _rpc(asked, result={"tasks": shown, "nextPageToken": "", "pageSize": 50, "totalSize": len(tasks)})

    def other(self, base: str, asked: Asked) -> Said:
        if asked.message != "/.well-known/agent-card.json":
            return Said(404, {"error": "not found"})
        interface = {"url": f"{base}/agent", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        card = {
            "name": "Reports",
            "description": "Makes reports.",
            "version": "1.0.0",
            "supportedInterfaces": [interface],
            "capabilities": {"streaming": False, "pushNotifications": False},
            "defaultInputModes": ["application/json"],
            "defaultOutputModes": ["application/json"],
            "skills": [{"id": "generate", "name": "generate", "description": "Makes one.", "tags": ["reports"]}],
        }
        return Said(200, card)

    def unknown(self, asked: Asked) -> Said:
        return _rpc(asked, error={"code": -32001, "message": "Task not found"})

    def error_200(self, asked: Asked) -> Said:
        return _rpc(asked, error={"code": -32603, "message": "Internal error"})

    def _task(self, asked: Asked, operation: Operation, word: str) -> dict[str, Any]:
        status = {"state": f"TASK_STATE_{self._STATES[word]}", "timestamp": "2026-11-29T10:00:00.000Z"}
        task = {"id": operation.id, "contextId": operation.context or f"context-{operation.id}", "status": status}
        if word == "completed":
            task["artifacts"] = [{"artifactId": "a-1", "name": "report", "parts": [{"data": {"rows": operation.rows}}]}]
        return task


def _rpc(asked: Asked, **members: Any) -> Said:
    return Said(200, {"jsonrpc": "2.0", "id": asked.message["id"], **members})
