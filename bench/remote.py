"""The remote server of every measurement: jobs over HTTP 202, and the log that is the clock and the count.

    python -m counterfoil.bench.remote [--submits-after-s S] [--polls-after-s S]        prints its port

A submit is answered after the first so many seconds, a poll after the second; `inf`: never.

POST /jobs             {"call", "work_s"} -> 202 {"id", "status"}; it dedupes nothing: two submits are two jobs
GET  /jobs/ID          {"id", "status": "running" | "completed"}, `Retry-After: 1` while it runs
GET  /jobs/ID/result   what came of it
POST /jobs/ID/cancel   the job ends as "cancelled"
GET  /jobs?key=K       the jobs that were submitted under this Idempotency-Key
GET  /bench/log        one JSON array a request: [moment in Unix seconds, what, call]
GET  /bench/count      {"submit": n, "result": n, ..., "most_out": how many waited for a late answer, at most at once}
POST /bench/reset      forgets the log and the jobs

An id `seeded-…` was never submitted and works on for ever: a ledger that was filled by SQL asks for such. On asyncio's
own protocols, since on two cores the server must not be what is measured.
"""

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from dataclasses import dataclass
from urllib.parse import parse_qs

INTERVAL_S = 1
"""What the server suggests between two polls."""

RESULT_CHARS = 64
_NOTHING = (404, {"error": "there is no such thing"})
SEEDED = "seeded-"


@dataclass(slots=True)
class Job:
    """One job: who asked for it, under which key, and when it is over."""

    id: str
    call: str
    key: str
    until_s: float
    cancelled: bool = False

    def status(self, now_s: float) -> str:
        if self.cancelled:
            return "cancelled"
        return "completed" if now_s >= self.until_s else "running"


class Jobs:
    """The jobs of this process, and the log of what was asked."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._log: list[tuple[float, str, str]] = []
        self._counts: Counter[str] = Counter()
        self._out = 0

    def begun(self) -> None:
        """One more request waits for a late answer."""
        self._out += 1
        self._counts["most_out"] = max(self._counts["most_out"], self._out)

    def over(self, count: int = 1) -> None:
        """So many have it, or are not waited for any more."""
        self._out -= count

    def handle(self, verb: str, target: str, headers: dict[str, str], body: bytes) -> tuple[int, object]:
        """One request; the answer's status and its body."""
        path, _, query = target.partition("?")
        if path.startswith("/bench/"):
            return self._about_itself(path)
        now_s = time.time()
        match path.strip("/").split("/"), verb:
            case ["jobs"], "POST":
                return self._submit(now_s, headers, body)
            case ["jobs"], "GET":
                key = parse_qs(query).get("key", [""])[0]
                self._note(now_s, "lookup", key)
                found = [job for job in self._jobs.values() if job.key == key]
                return 200, {"jobs": [{"id": job.id, "status": job.status(now_s)} for job in found]}
            case ["jobs", job_id, *rest], _:
                return self._one(now_s, job_id, rest)
            case _:
                return _NOTHING

    def _submit(self, now_s: float, headers: dict[str, str], body: bytes) -> tuple[int, object]:
        asked = json.loads(body)
        job = Job(
            f"job-{len(self._jobs)}",
            str(asked["call"]),
            headers.get("idempotency-key", ""),
            now_s + float(asked["work_s"]),
        )
        self._jobs[job.id] = job
        self._note(now_s, "submit", job.call)
        return 202, {"id": job.id, "status": "running"}

    def _one(self, now_s: float, job_id: str, rest: list[str]) -> tuple[int, object]:
        job = self._jobs.get(job_id)
        if job is None and job_id.startswith(SEEDED):
            job = Job(job_id, job_id, "", float("inf"))
        if job is None:
            return 404, {"error": "there is no such job"}
        match rest:
            case []:
                status = job.status(now_s)
                self._note(now_s, "poll" if status == "running" else "end", job.call)
                return 200, {"id": job_id, "status": status}
            case ["result"]:
                self._note(now_s, "result", job.call)
                return 200, {"id": job_id, "value": "x" * RESULT_CHARS}
            case ["cancel"]:
                job.cancelled = True
                self._note(now_s, "cancel", job.call)
                return 200, {"id": job_id, "status": "cancelled"}
            case _:
                return _NOTHING

    def _about_itself(self, path: str) -> tuple[int, object]:
        if path == "/bench/log":
            return 200, self._log
        if path == "/bench/count":
            return 200, self._counts
        self._jobs.clear()
        self._log.clear()
        self._counts.clear()
        return 200, {}

    def _note(self, at_s: float, what: str, call: str) -> None:
        self._log.append((at_s, what, call))
        self._counts[what] += 1


@dataclass(frozen=True, slots=True)
class Delays:
    """How long a request waits for its answer, in seconds."""

    submits_s: float = 0.0
    polls_s: float = 0.0

    def of(self, verb: str, target: str) -> float:
        if (verb, target) == ("POST", "/jobs"):
            return self.submits_s
        poll = verb == "GET" and target.startswith("/jobs/") and not target.endswith("/result")
        return self.polls_s if poll else 0.0


class Connection(asyncio.Protocol):
    """One connection, kept alive; whole requests only."""

    def __init__(self, jobs: Jobs, delays: Delays) -> None:
        self._jobs = jobs
        self._delays = delays
        self._buffer = b""
        self._unanswered = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        self._jobs.over(self._unanswered)
        self._unanswered = 0

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while b"\r\n\r\n" in self._buffer:
            head, _, rest = self._buffer.partition(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").split("\r\n")
            headers = {
                name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
            }
            length = int(headers.get("content-length", "0"))
            if len(rest) < length:
                return
            self._buffer = rest[length:]
            verb, target, _ = first.split(" ", 2)
            answer = _framed(*self._jobs.handle(verb, target, headers, rest[:length]))
            delay_s = self._delays.of(verb, target)
            if delay_s:
                self._answer_later(answer, delay_s)
            else:
                self._transport.write(answer)

    def _answer_later(self, answer: bytes, delay_s: float) -> None:
        self._jobs.begun()
        self._unanswered += 1
        if delay_s < float("inf"):
            asyncio.get_running_loop().call_later(delay_s, self._answer, answer)

    def _answer(self, answer: bytes) -> None:
        if self._unanswered:  # else the other side has gone meanwhile
            self._unanswered -= 1
            self._jobs.over()
            self._transport.write(answer)


def _framed(status: int, body: object) -> bytes:
    content = json.dumps(body, separators=(",", ":")).encode()
    head = (
        f"HTTP/1.1 {status} -\r\ncontent-type: application/json\r\ncontent-length: {len(content)}\r\n"
        f"retry-after: {INTERVAL_S}\r\n\r\n"
    )
    return head.encode() + content


async def serve(delays: Delays) -> None:
    """Until this process is ended."""
    jobs = Jobs()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(jobs, delays), "127.0.0.1", 0, backlog=4096)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--submits-after-s", type=float, default=0.0)
    parser.add_argument("--polls-after-s", type=float, default=0.0)
    said = parser.parse_args()
    asyncio.run(serve(Delays(said.submits_after_s, said.polls_after_s)))


if __name__ == "__main__":
    main()
