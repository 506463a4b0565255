"""azure-core: `LROPoller` with the base polling method over the pipeline of generated clients, RetryPolicy included.

Variant `key`: the caller gives an Operation-Id, as a generated client of such an API does.
"""

import uuid
from typing import Any

import azure.core
import program
from azure.core import PipelineClient
from azure.core.pipeline import policies
from azure.core.polling import LROPoller
from azure.core.polling.base_polling import LROBasePolling
from azure.core.rest import HttpRequest


def _policies() -> list[Any]:
    """The pipeline as generated clients build it, with nobody to authenticate to."""
    return [
        policies.RequestIdPolicy(),
        policies.HeadersPolicy(),
        policies.UserAgentPolicy(),
        policies.ProxyPolicy(),
        policies.ContentDecodePolicy(),
        policies.RedirectPolicy(),
        policies.RetryPolicy(),
        policies.CustomHookPolicy(),
        policies.NetworkTraceLoggingPolicy(),
    ]


class Azure:
    def __init__(self, job: program.Job, variant: str) -> None:
        self._job = job
        self._headers = {"Operation-Id": str(uuid.uuid4())} if variant == "key" else {}
        self._client: Any = PipelineClient(job.url, policies=_policies())

    def submit(self) -> Any:
        request = HttpRequest("POST", f"{self._job.url}/reports", headers=self._headers, json={"month": "2026-10"})
        options = {} if self._job.timeout_s is None else {"read_timeout": self._job.timeout_s}
        initial = self._client._pipeline.run(request, **options)
        if initial.http_response.status_code >= 400:
            initial.http_response.read()
            initial.http_response.raise_for_status()
        return LROPoller(self._client, initial, self._read, LROBasePolling())

    @staticmethod
    def _read(response: Any) -> Any:
        return response.http_response.json()

    def keep(self, handle: Any) -> str | None:
        return str(handle.continuation_token())

    def resume(self, kept: str) -> Any:
        return LROPoller.from_continuation_token(
            LROBasePolling(), kept, client=self._client, deserialization_callback=self._read
        )

    def cancel(self, handle: Any) -> None:
        raise program.NotOffered

    def result(self, handle: Any) -> Any:
        return handle.result(self._job.patience_s)


if __name__ == "__main__":
    program.main(Azure, azure.core.__version__)
