"""A program that uses a client as its documentation says: submit, keep what can be kept, wait, tell how it ended.

One JSON line a job. Where the client has a documented way to go on from what was kept, a program that is started again
goes on; else it runs again from the beginning, as a scheduler starts a killed one. Each job runs on a thread.
"""

import json
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True)
class Job:
    fault: str
    url: str
    kept: str
    cancels: bool
    timeout_s: float | None
    patience_s: float | None


class NotOffered(Exception):
    """The client has no such thing."""


class Client(Protocol):
    """`submit` returns a handle; `keep` what a new process can go on from; `result` the value, or raises."""

    def submit(self) -> Any: ...

    def keep(self, handle: Any) -> str | None: ...

    def resume(self, kept: str) -> Any: ...

    def cancel(self, handle: Any) -> None: ...

    def result(self, handle: Any) -> Any: ...


def main(make: Any, version: str) -> None:
    """Run the jobs that stand in the first argument."""
    told: dict[str, Any] = json.loads(sys.argv[1])
    _tell({"version": version})
    threads = [
        threading.Thread(target=_run, args=(Job(**job), make, told["variant"]), daemon=True) for job in told["jobs"]
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _tell(said: dict[str, Any]) -> None:
    """One line in one write: `print` makes two, and threads would come between them."""
    sys.stdout.write(json.dumps(said, default=str) + "\n")
    sys.stdout.flush()


def _run(job: Job, make: Any, variant: str) -> None:
    try:
        said = {"end": "returned", "value": _live(job, make(job, variant))}
    except NotOffered:
        said = {"end": "not offered"}
    except Exception as error:  # noqa: BLE001  whatever the caller would have had to catch
        said = {"end": "raised", "why": type(error).__name__}
    _tell({"fault": job.fault} | said)


def _live(job: Job, client: Client) -> Any:
    kept = Path(job.kept)
    if kept.exists():
        handle = client.resume(kept.read_text())
    else:
        handle = client.submit()
        text = client.keep(handle)
        if text is not None:
            new = kept.with_suffix(".new")
            new.write_text(text)
            new.rename(kept)  # whoever is killed now leaves the whole of it or nothing
    if job.cancels:
        client.cancel(handle)
    return client.result(handle)
