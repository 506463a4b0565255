"""Where the CPU goes: py-spy's samples of a running worker, as a flame graph and as a list of functions."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .contenders import COUNTERFOIL
from .field import BenchError, field_on, root
from .paced import measure
from .peers.work import Work
from .servers import servers

SAMPLES_PER_S = 250
TOP = 40


PY_SPY = root() / "build" / "peers" / "bin" / "py-spy"
COUNT = 400


def run_profile() -> None:
    """Sample a fleet's worker at the steady rate. Raises BenchError."""
    if not PY_SPY.exists():
        raise BenchError(f"py-spy is missing: there is no {PY_SPY}. `make bench` sets it up.")
    with (
        servers() as both,
        field_on(both) as field,
        COUNTERFOIL.running(field),
        sampling(PY_SPY, field.meter.pid("worker"), root() / "build" / "bench", "worker"),
    ):
        measure(field, COUNTERFOIL, "profile", Work(COUNT))


@contextmanager
def sampling(py_spy: Path, pid: int, folder: Path, name: str) -> Iterator[None]:
    """Sample a process tree for as long as the block lasts. Leaves NAME.svg and NAME.txt in the folder.

    Only a thread that holds the interpreter lock is sampled: others wait, or are in the kernel. Sampling stops a
    process for about a millisecond each time: a run that is profiled is not one that is measured.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stacks = folder / f"{name}.stacks"
    recorders = [
        subprocess.Popen(
            [
                *(str(py_spy), "record", "--pid", str(pid), "--subprocesses", "--threads", "--gil"),
                *("--rate", str(SAMPLES_PER_S), "--format", kind, "--output", str(path), "--duration", "unlimited"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for kind, path in (("flamegraph", folder / f"{name}.svg"), ("raw", stacks))
    ]
    try:
        yield
    finally:
        for recorder in recorders:
            recorder.send_signal(2)  # SIGINT: it writes what it has
        for recorder in recorders:
            recorder.wait(60)
    (folder / f"{name}.txt").write_text("\n".join(functions(stacks.read_text().splitlines())) + "\n")
    stacks.unlink()
    sys.stdout.write(f"flame graph: {folder / name}.svg, functions: {folder / name}.txt\n")


def functions(stacks: Sequence[str]) -> list[str]:
    """From collapsed stacks (`a;b;c COUNT`): share of the samples in a function itself, and with what it calls."""
    own: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    for line in stacks:
        frames, _, count = line.rpartition(" ")
        path = frames.split(";")
        own[path[-1]] += int(count)
        for frame in set(path):
            whole[frame] += int(count)
    total = max(1, sum(own.values()))
    wanted = {name for name, _ in own.most_common(TOP)} | {name for name, _ in whole.most_common(2 * TOP)}
    ranked = sorted(wanted, key=lambda name: (-whole[name], name))
    return ["own %  with callees %  function"] + [
        f"{100 * own[name] / total:5.1f}  {100 * whole[name] / total:14.1f}  {name}" for name in ranked
    ]
