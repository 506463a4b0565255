"""Who is measured: Counterfoil with its whole fleet, and the loops that forget everything."""

from collections.abc import Iterator
from contextlib import contextmanager

from . import fleet
from .field import MODULE, BenchError, Field
from .paced import PATIENCE_S, Contender

WARM_UP = 20


@contextmanager
def counterfoil_running(field: Field, *arguments: str) -> Iterator[None]:
    """A worker with a process a core, and beat, on a ledger of their own; warm: contracts negotiated, connections up,
    statements prepared. `arguments` are more of the worker's."""
    field.servers.new_database()
    fleet.aim(field)
    started = [fleet.start_worker(field, *arguments), fleet.start_beat(field)]
    try:
        fleet.wait_until_announced(field)
        _warm_up(field)
        yield
    finally:
        for child in reversed(started):
            child.process.terminate()
            child.process.wait(PATIENCE_S)
            field.meter.forget(child.name)


def _warm_up(field: Field) -> None:
    producer = field.prepare("warm-up", (*PRODUCER, str(WARM_UP), "20", "0.5", "warm"))
    field.begin(producer)
    if not field.wait("the first receipts", lambda: fleet.receipts(field, "warm-") == WARM_UP, PATIENCE_S):
        raise BenchError("the fleet does not do its work")
    producer.kill()


PRODUCER = (*MODULE, "counterfoil.bench.producer")
BARE = (*MODULE, "counterfoil.bench.bare")

COUNTERFOIL = Contender("counterfoil", PRODUCER, counterfoil_running, ("worker",))
FLOORS = tuple(Contender(f"bare {name}", (*BARE, name)) for name in ("httpx", "aiohttp"))
