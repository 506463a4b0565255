"""`make bench QUICK=1`: Counterfoil and the bare loops at a steady rate, under 110 s, with the figures in one line."""

import sys
from dataclasses import dataclass

from . import fleet
from .contenders import COUNTERFOIL, FLOORS
from .field import field_on
from .paced import measure
from .peers.work import Work
from .rows import Row
from .servers import servers
from .unchanged import Unchanged, measure_unchanged

COUNT = 320


@dataclass(frozen=True, slots=True)
class Figures:
    """What the last line says."""

    ours: Row
    floors: dict[str, Row]
    unchanged: Unchanged
    poll_late_p99_s: float

    def line(self) -> str:
        httpx, aiohttp = (self.floors[name].per_operation("cpu_ms") for name in ("bare httpx", "bare aiohttp"))
        ours = self.ours.per_operation("cpu_ms")
        figures = {
            "cpu_ms_per_op": f"{ours:.2f}",
            "floor_httpx": f"{httpx:.2f}",
            "floor_aiohttp": f"{aiohttp:.2f}",
            "ratio_httpx": f"{ours / httpx:.3f}",
            "poll_late_p99_s": f"{self.poll_late_p99_s:.3f}",
            "statements_per_poll": f"{self.unchanged.statements:.4f}",
            "wal_bytes_per_op": f"{self.ours.per_operation('wal_bytes'):.0f}",
            "wal_bytes_per_poll": f"{self.unchanged.wal_bytes:.1f}",
            "commits_per_op": f"{self.ours.per_operation('commits'):.2f}",
            "second_submits": f"{self.ours.second_submits}",
        }
        return " ".join(f"{name}={value}" for name, value in figures.items())


def run_quick() -> bool:
    """Measure, print. Whether everything was done, and nothing twice."""
    work = Work(COUNT)
    with servers() as both, field_on(both) as field:
        with COUNTERFOIL.running(field):
            ours = measure(field, COUNTERFOIL, "paced", work)
            settled = fleet.receipts(field, f"{ours.name}-")
            late_p99_s = field.remote.log().late_p99_s(fleet.bound_s(field, f"{ours.name}-"))
            unchanged = measure_unchanged(field)
        floors = {floor.name: measure(field, floor, "paced", work) for floor in FLOORS}
    for row in (ours, *floors.values()):
        sys.stdout.write(f"{row.line()}\n")
    sys.stdout.write(f"{unchanged}\n{settled} of {COUNT} receipts\n")
    sys.stdout.write(f"{Figures(ours, floors, unchanged, late_p99_s).line()}\n")
    return settled == COUNT and ours.second_submits == 0
