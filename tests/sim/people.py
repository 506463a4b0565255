"""Everybody outside of the fleet: producers, cancellers, those who answer and settle, those who roll back,
consumers."""

from collections.abc import Callable
from functools import partial
from uuid import UUID

from counterfoil.ledger import epochs, recovery, rollout, switches
from counterfoil.ledger.client import Call, Client
from counterfoil.ledger.errors import CounterfoilError
from counterfoil.workers.desk import Desk

from .ledgerdb import fleet_of, namespace_of
from .world import World

TARGET = "srv"
VERDICTS = ("give_up", "bind", "never_created", "accept")


def node(number: int) -> str:
    """The call node of a family's call."""
    return f"run/{number}"


def client(world: World) -> Client:
    """A producer on the scheduler's connections."""
    made = Client.__new__(Client)
    made.namespace, made.principal, made.fleet = namespace_of(world.tag), "default", fleet_of(world.tag)
    made._database, made._ledger_id = world.db.database, world.db.ledger_id
    return made


def desk(world: World) -> Desk:
    """Where people reply and settle, on the scheduler's connections."""
    made = Desk(world.db.url, world.targets, fleet=fleet_of(world.tag), vault=world.vault)
    made._database = world.db.database
    return made


def said(world: World, who: str) -> Callable[[object], None]:
    """What somebody was told: an answer, or why he was refused. Anything else is a bug."""

    def told(done: object) -> None:
        if isinstance(done, Exception) and not isinstance(done, CounterfoilError):
            raise done
        world.tell(f"    {who}: {done!r:.160}")

    return told


# -- producers and consumers -----------------------------------------------------------------------------------------


def submit(world: World, number: int) -> None:
    """A producer hands in a call; a repeat is the same call."""
    producer = client(world)

    def work() -> UUID | None:
        with producer._database.begin() as connection:
            return producer.submit_in(connection, [Call(TARGET, "work", world.family.arguments(number), node(number))])[
                0
            ]

    world.execute(f"producer {number}", work, partial(world.opened, number))


def cancel(world: World, number: int) -> None:
    """Somebody asks for a cancel at the door."""
    world.execute(f"canceller {number}", lambda: client(world).cancel(node(number)), said(world, "canceller"))


def consume(world: World) -> None:
    """A consumer takes what is ready; it moves its node and acknowledges in one transaction."""
    consumer = client(world)

    def work() -> list[tuple[str, str]]:
        ready = consumer.ready(limit=10, lease_s=5.0)
        with consumer._database.begin() as connection:
            consumer.ack_in(connection, [row.id for row in ready])
        return [(row.call_node_id, str(row.receipt_id)) for row in ready]

    world.execute("consumer", work, world.consumed)


# -- people ----------------------------------------------------------------------------------------------------------


def answer(world: World, who: str, *, go: bool | None = None, thinks_s: float | None = None) -> None:
    """Somebody looks at the open questions, thinks for a while, and replies to what was seen."""
    if go is None:
        go = world.choices.pick(f"{who} says", 2) == 0
    if thinks_s is None:
        thinks_s = (0.0, 1.0, 4.0)[world.choices.pick(f"{who} thinks", 3)]
    at = desk(world)

    def speak(seen: list[tuple[UUID, int]]) -> None:
        def work() -> None:
            for operation_id, number in seen:
                at.answer(operation_id, number, "accept", world.family.reply(go=go), actor=who)
                world.replied.append((str(operation_id), number, who))

        world.execute(f"{who} replies", work, said(world, who))

    def looked(seen: list[tuple[UUID, int]] | Exception) -> None:
        if isinstance(seen, Exception):
            raise seen
        if seen:
            world.later(thinks_s, f"{who} replies", partial(speak, seen))

    world.execute(who, lambda: [(asked.operation_id, asked.number) for asked in at.inputs()], looked)


def read_on(world: World, who: str) -> None:
    """Somebody says of every open case that the known task is the one."""
    settle(world, who, favourite=VERDICTS.index("bind"))


def give_up(world: World, who: str) -> None:
    """Somebody has waited long enough, for every open case."""
    settle(world, who, favourite=VERDICTS.index("give_up"))


def settle(world: World, who: str, favourite: int | None = None) -> None:
    """Somebody settles every open case with the first verdict that it offers, from his own favourite on."""
    if favourite is None:
        favourite = world.choices.pick(f"{who} favours", len(VERDICTS))

    def work() -> list[str]:
        spoken, at = [], desk(world)
        for view in at.cases():
            order = VERDICTS[favourite:] + VERDICTS[:favourite]
            verdict = next((one for one in order if one in view.offered), None)
            if verdict is None:
                continue
            known = [task.id for task in world.server.with_key(str(view.operation.submission_key))]
            at.settle(
                view.case.id,
                verdict,  # type: ignore[arg-type]
                actor=who,
                reason="seen",
                version=view.version,
                task_id=view.operation.task_id or (known[0] if known else None),
            )
            world.verdicts.append((str(view.operation.id), view.version, who))
            spoken.append(f"{view.case.code}: {verdict}")
        return spoken

    world.execute(who, work, said(world, who))


# -- operators -------------------------------------------------------------------------------------------------------


def bump(world: World) -> None:
    """A roll-back begins."""
    world.execute("bumper", lambda: epochs.bump(world.db.database, fleet_of(world.tag), "tried"), world.bumped)


def create_off(world: World) -> None:
    """No new operations."""
    fleet = fleet_of(world.tag)
    world.execute(
        "operator",
        lambda: switches.set_create(world.db.database, fleet, on=False, reason="tried"),
        partial(world.stopped, "new operations were off"),
    )


def create_on(world: World) -> None:
    """New operations again."""
    fleet = fleet_of(world.tag)
    world.going_on()
    world.execute(
        "operator", lambda: switches.set_create(world.db.database, fleet, on=True, reason="tried"), said(world, "on")
    )


def drain(world: World) -> None:
    """The protocol version is dead: no new submits."""
    fleet, protocol = fleet_of(world.tag), world.protocol
    world.execute(
        "operator",
        lambda: switches.set_adapter(world.db.database, fleet, protocol, "drain", reason="tried", known=(protocol,)),
        partial(world.stopped, "the protocol was drained"),
    )


def ramp(world: World, percent: float) -> None:
    """So much of the tool's call nodes are taken on from now on."""
    fleet = fleet_of(world.tag)
    world.execute(
        "operator",
        lambda: rollout.set_canary(world.db.database, fleet, TARGET, "work", percent, shadow=False, reason="tried"),
        said(world, f"{percent} %"),
    )


class _Borrowed:
    """The scheduler's database, which nobody else may dispose of."""

    def __init__(self, world: World) -> None:
        self._database = world.db.database

    def __getattr__(self, name: str) -> object:
        return (lambda: None) if name == "dispose" else getattr(self._database, name)


def recover(world: World) -> None:
    """The database was promoted or restored."""
    recovery.Database = lambda _url: _Borrowed(world)  # type: ignore[assignment,misc]
    world.execute(
        "bumper recovers",
        lambda: recovery.recover(world.db.url, fleet_of(world.tag), reason="tried").epoch,
        world.bumped,
    )
