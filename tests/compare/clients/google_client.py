"""google-api-core: what a generated client is made of, against the REST binding.

A generated client fills in `request_id` where AIP-155 is followed, wraps the method without a retry of its own, and
hands out `operation.from_gapic`. Variant `retry`: the documented `Retry()` is given to the call and to the polls.
"""

import uuid
from typing import Any
from urllib.parse import urlsplit

import program
from google.api_core import exceptions, gapic_v1, operation, operations_v1, retry, version
from google.api_core.operations_v1.transports.rest import OperationsRestTransport
from google.auth.credentials import AnonymousCredentials
from google.auth.transport.requests import AuthorizedSession
from google.longrunning import operations_pb2
from google.protobuf import json_format, struct_pb2

DEFAULT_TIMEOUT_S = 60.0
"""What generated clients give a call most often."""


class Google:
    def __init__(self, job: program.Job, variant: str) -> None:
        self._job = job
        self._retry = retry.Retry() if variant == "retry" else None
        self._session = AuthorizedSession(AnonymousCredentials())
        parts = urlsplit(job.url)
        transport = OperationsRestTransport(
            host=f"{parts.netloc}{parts.path}", url_scheme=parts.scheme, credentials=AnonymousCredentials()
        )
        transport._host = job.url  # the path of a run is not thought of there
        self._operations = operations_v1.AbstractOperationsClient(transport=transport)

    def submit(self) -> Any:
        call = gapic_v1.method.wrap_method(self._post, default_timeout=DEFAULT_TIMEOUT_S)
        options: dict[str, Any] = {} if self._retry is None else {"retry": self._retry}
        if self._job.timeout_s is not None:
            options["timeout"] = self._job.timeout_s
        return self._future(call({"month": "2026-10", "requestId": str(uuid.uuid4())}, **options))

    def _post(self, request: Any, timeout: Any = None, metadata: Any = (), **_: Any) -> Any:
        """As generated code has it."""
        response = self._session.post(
            f"{self._job.url}/v1/reports:generate", timeout=timeout, headers=dict(metadata), json=request
        )
        if response.status_code >= 400:
            raise exceptions.from_http_response(response)
        return json_format.Parse(response.content, operations_pb2.Operation(), ignore_unknown_fields=True)

    def _future(self, started: Any) -> Any:
        return operation.from_gapic(started, self._operations, struct_pb2.Struct)

    def keep(self, handle: Any) -> str | None:
        return str(handle.operation.name)

    def resume(self, kept: str) -> Any:
        return self._future(operations_pb2.Operation(name=kept))

    def cancel(self, handle: Any) -> None:
        handle.cancel()

    def result(self, handle: Any) -> Any:
        options: dict[str, Any] = {} if self._retry is None else {"retry": self._retry}
        if self._job.patience_s is not None:
            options["timeout"] = self._job.patience_s
        return json_format.MessageToDict(handle.result(**options))


if __name__ == "__main__":
    program.main(Google, version.__version__)
