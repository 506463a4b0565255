"""One measurement of one contender, as it is printed and kept."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from .meter import Counts
from .serverlog import ServerLog
from .statistics import percentile

PER_OPERATION = ("cpu_ms", "polls", "statements", "commits", "wal_bytes", "redis_commands")


@dataclass(frozen=True, slots=True)
class Row:
    """What was counted between the first submit and the last result. Bytes and seconds as named."""

    contender: str
    name: str
    mode: str
    count: int
    done: int
    second_submits: int
    polls: int
    ops_per_s: float
    detect_p50_s: float
    detect_p99_s: float
    worker_rss_bytes: int
    foreign_cpu_share: float
    used: Counts

    @property
    def cpu_ms(self) -> float:
        return self.used.total_cpu_s * 1000

    def per_operation(self, what: str) -> float:
        """One of PER_OPERATION, divided by the operations that were done."""
        whole: float = getattr(self, what) if hasattr(self, what) else getattr(self.used, what)
        return whole / max(1, self.done)

    def line(self) -> str:
        """One JSON object, with the figures per operation beside what was counted."""
        figures = {f"{what}_per_op": round(self.per_operation(what), 4) for what in PER_OPERATION}
        return json.dumps(figures | asdict(self))

    @classmethod
    def read(cls, line: str) -> "Row":
        """The inverse of `line`."""
        said: dict[str, Any] = json.loads(line)
        known = {one.name: said[one.name] for one in fields(cls)}
        return cls(**known | {"used": Counts(**said["used"])})

    @classmethod
    def of(
        cls,
        contender: str,
        mode: str,
        *,
        name: str,
        count: int,
        work_s: float,
        log: ServerLog,
        used: Counts,
        rss_bytes: Sequence[int],
        foreign_cpu_share: float,
    ) -> "Row":
        """From the remote server's log and what the servers and processes used meanwhile."""
        detections_s = log.detections_s(work_s)
        return cls(
            contender=contender,
            name=name,
            mode=mode,
            count=count,
            done=len(log.first("result")),
            second_submits=log.second_submits,
            polls=log.count("poll", "end"),
            ops_per_s=log.ops_per_s(),
            detect_p50_s=percentile(detections_s, 0.5),
            detect_p99_s=percentile(detections_s, 0.99),
            worker_rss_bytes=max(rss_bytes, default=0),
            foreign_cpu_share=foreign_cpu_share,
            used=used,
        )
