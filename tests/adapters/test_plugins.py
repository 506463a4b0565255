"""Adapters of other packages: found by their entry point, loaded when they are asked for, blamed by name."""

import asyncio
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from counterfoil.adapters import plugins, registry
from counterfoil.adapters.contract import (
    Answered,
    Call,
    Effect,
    Endpoint,
    Exchange,
    InputReply,
    NoAnswer,
    RemoteTask,
    Reply,
    Request,
    Search,
    Sent,
)
from counterfoil.adapters.jsonrpc import JsonRpc
from counterfoil.adapters.mcp_sync import McpSync
from counterfoil.adapters.outcomes import (
    Busy,
    NotOffered,
    Refused,
    Unclear,
)
from counterfoil.console.probe import probe
from counterfoil.workers.target_entries import TargetEntry
from counterfoil.workers.targets import Target, TargetsError, load_targets

from .kit import OpenTransport

T = TypeVar("T")

GOOD = """
from dataclasses import replace
from counterfoil.adapters.contract import Effect, Request
from counterfoil.adapters.outcomes import Negotiated, NotOffered
from counterfoil.adapters.mcp_sync import PROFILE, McpSync

class Adapter(McpSync):
    profile = replace(PROFILE, protocol="acme-1")

class Silent:
    profile = replace(PROFILE, protocol="acme-1")
    def __init__(self, rpc): pass

def no_adapter(rpc):
    return None

def raises(rpc):
    raise KeyError("ACME_URL")
"""

WRONG = """

class Raising:
    profile = replace(PROFILE, protocol="acme-1")
    def __init__(self, rpc): pass
    def _raise(self, *_): raise KeyError("secret of the server")
    def _asks(self, *_):
        yield from ()
        raise KeyError("secret of the server")
    negotiate = lookup = poll = fetch = end_session = submit = cancel = reply = _asks
    read_submit = read_cancel = read_reply = read_input = hints = _raise

class Mute(Raising):
    def _say(self, *_): return "no outcome"
    def _end(self, *_):
        yield from ()
        return "no outcome"
    negotiate = lookup = poll = fetch = submit = cancel = reply = _end
    read_submit = read_cancel = read_reply = read_input = _say
    def hints(self, reply): return 7

class Garbled(Raising):
    def negotiate(self, endpoint, tool):
        yield from ()
        if tool == "list":
            return NotOffered("E_TOOL_UNKNOWN", "no", ("a\\ud800",))
        return Negotiated("acme-1", b"[]" if tool == "list of nothing" else b"{", None, None, None)

class Submitting(Raising):
    def negotiate(self, endpoint, tool):
        yield Request("POST", endpoint.url, effect=Effect.SUBMIT)
        return NotOffered("E_TOOL_UNKNOWN", "no", ("a",))

class Eager(Raising):
    def _reads_first(self, endpoint, *_):
        yield Request("GET", endpoint.url)
    submit = cancel = reply = _reads_first
"""

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """`install("package", "protocol = module:object")`: as an installer leaves it, on a path of its own."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "counterfoil_acme_plugin.py").write_text(GOOD + WRONG)

    def write(package: str, *entries: str) -> None:
        folder = tmp_path / f"{package}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text("\n".join(("[counterfoil.adapters]", *entries, "")))
        plugins.offered.cache_clear()

    yield write
    sys.modules.pop("counterfoil_acme_plugin", None)
    plugins.offered.cache_clear()


def test_a_protocol_of_another_package_has_its_adapter(install: Install) -> None:
    install("acme", "acme-1 = counterfoil_acme_plugin:Adapter")
    made = registry.adapter("acme-1", lambda: "r-1")
    assert made.profile.protocol == "acme-1"
    assert "acme-1" not in registry.PROTOCOLS


def test_nothing_is_imported_before_somebody_asks_for_the_protocol(install: Install) -> None:
    install("acme", "acme-1 = counterfoil_acme_plugin:Adapter")
    registry.adapter("mcp-sync")
    assert "counterfoil_acme_plugin" not in sys.modules


def test_an_unknown_protocol_names_those_of_other_packages_too(install: Install) -> None:
    install("acme", "acme-1 = counterfoil_acme_plugin:Adapter")
    with pytest.raises(registry.UnknownProtocol, match=r"Did you mean 'acme-1'\? There is: mcp-.*, acme-1\."):
        registry.adapter("acme-2")


def test_a_name_of_ours_is_not_taken_over_and_it_is_said(install: Install, caplog: pytest.LogCaptureFixture) -> None:
    install("thief", "mcp-sync = counterfoil_acme_plugin:Adapter")
    with caplog.at_level(logging.WARNING):
        made = registry.adapter("mcp-sync")
        registry.adapter("mcp-sync")
    assert type(made).__module__ == "counterfoil.adapters.mcp_sync"
    assert [record.getMessage() for record in caplog.records] == [
        (
            "E_ADAPTER_BROKEN: mcp-sync = counterfoil_acme_plugin:Adapter of thief is a protocol of Counterfoil's own;"
            " it is not taken from there"
        )
    ]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("counterfoil_not_there:Adapter", r"can't be loaded \(ModuleNotFoundError"),
        ("counterfoil_acme_plugin:NotThere", r"can't be loaded \(AttributeError"),
        ("counterfoil_acme_plugin:GOOD", "can't be loaded"),
        ("counterfoil_acme_plugin:raises", r"can't be loaded \(KeyError"),
        ("counterfoil_acme_plugin:no_adapter", "has no profile of the protocol acme-1"),
        ("counterfoil_acme_plugin:McpSync", "has no profile of the protocol acme-1"),
        ("counterfoil_acme_plugin:Silent", "lacks negotiate, submit, read_submit, lookup"),
    ],
)
def test_a_broken_adapter_names_itself_and_breaks_nobody_else(install: Install, value: str, why: str) -> None:
    install("acme", f"acme-1 = {value}")
    with pytest.raises(plugins.BrokenAdapter, match=f"^E_ADAPTER_BROKEN: acme-1 = {value} of acme .*{why}") as caught:
        registry.adapter("acme-1")
    assert caught.value.code == "E_ADAPTER_BROKEN"
    assert registry.adapter("mcp-sync").profile.protocol == "mcp-sync"


def test_two_packages_with_one_protocol_are_both_named(install: Install) -> None:
    install("acme", "acme-1 = counterfoil_acme_plugin:Adapter")
    install("other", "acme-1 = counterfoil_acme_plugin:Adapter")
    with pytest.raises(plugins.BrokenAdapter, match="acme-1 comes from acme and from other; remove one"):
        registry.adapter("acme-1")


def test_a_targets_file_names_the_line_of_a_broken_adapter_and_takes_a_good_one(
    install: Install, tmp_path: Path
) -> None:
    install("acme", "acme-1 = counterfoil_acme_plugin:Adapter", "acme-2 = counterfoil_acme_plugin:raises")
    path = tmp_path / "targets.yaml"
    path.write_text("targets:\n  a: {url: http://127.0.0.1:1, protocol: acme-1, sync_bound_s: 60}\n")
    assert load_targets(path)["a"].profile.protocol == "acme-1"
    path.write_text("targets:\n  a:\n    url: http://127.0.0.1:1\n    protocol: acme-2\n")
    with pytest.raises(TargetsError, match=r"targets.yaml:4: targets.a.protocol: E_ADAPTER_BROKEN: acme-2 ="):
        load_targets(path)


# -- contained ---------------------------------------------------------------------------------------------------------

ENDPOINT = Endpoint("acme", "http://127.0.0.1:1")
CALL, TASK = Call("work", b"{}", "key", 60.0), RemoteTask("t-1")
REPLY = Answered(200, {}, b"{}")


def ended(exchange: Exchange[T]) -> T:
    with pytest.raises(StopIteration) as stop:
        next(exchange)
    outcome: T = stop.value.value
    return outcome


@pytest.mark.parametrize("wrong", ["Raising", "Mute"])
def test_what_an_adapter_raises_becomes_the_outcome_that_claims_least(
    install: Install, caplog: pytest.LogCaptureFixture, wrong: str
) -> None:
    install("acme", f"acme-1 = counterfoil_acme_plugin:{wrong}")
    broken = registry.adapter("acme-1")
    assert isinstance(refusal := ended(broken.negotiate(ENDPOINT, "work")), NotOffered)
    assert refusal.code == "E_ADAPTER_BROKEN"
    assert isinstance(ended(broken.lookup(ENDPOINT, Search("work", "key", 1, "look"))), Unclear)
    assert ended(broken.poll(ENDPOINT, TASK)) == ended(broken.fetch(ENDPOINT, TASK)) == Busy("E_ADAPTER_BROKEN")
    assert ended(broken.end_session(ENDPOINT, b"")) is None
    for outcome in (
        broken.read_submit(ENDPOINT, CALL, REPLY),
        broken.read_cancel(ENDPOINT, TASK, REPLY),
        broken.read_reply(ENDPOINT, TASK, REPLY),
    ):
        assert isinstance(outcome, Unclear)
        assert outcome.code == "E_ADAPTER_BROKEN"
        assert "secret" not in outcome.why
    assert isinstance(broken.read_input(ENDPOINT, TASK, b""), Refused)
    assert broken.hints(REPLY) == ()
    assert "E_ADAPTER_BROKEN: the adapter of acme-1 failed in read_submit" in caplog.text


@pytest.mark.parametrize("tool", ["work", "list of nothing", "list"])
def test_a_negotiation_that_nobody_could_use_is_no_contract(install: Install, tool: str) -> None:
    """A worker and `check` read the descriptor, and show the names: the loop must not end of either."""
    install("acme", "acme-1 = counterfoil_acme_plugin:Garbled")
    refusal = ended(registry.adapter("acme-1").negotiate(ENDPOINT, tool))
    assert isinstance(refusal, NotOffered)
    assert (refusal.code, refusal.others) == ("E_ADAPTER_BROKEN", None)


def test_a_check_submits_nothing_whatever_an_adapter_asks_for(install: Install) -> None:
    install("acme", "acme-1 = counterfoil_acme_plugin:Submitting")
    entry = TargetEntry.model_validate({"url": "http://127.0.0.1:1", "protocol": "acme-1"})
    found = asyncio.run(probe([[Target("it", registry.adapter("acme-1").profile, entry)]]))
    assert [tool.name for tool in found.attempts[0].tools] == ["a"]


@pytest.mark.parametrize("wrong", ["Raising", "Mute", "Eager"])
def test_an_effect_that_can_not_be_built_leaves_no_byte(install: Install, wrong: str, transport: OpenTransport) -> None:
    """One that asks something first is none either: its intent covers one request."""
    install("acme", f"acme-1 = counterfoil_acme_plugin:{wrong}")
    broken = registry.adapter("acme-1")
    requests = [
        next(broken.submit(ENDPOINT, CALL)),
        next(broken.cancel(ENDPOINT, TASK)),
        next(broken.reply(ENDPOINT, TASK, InputReply("q", "m", b"{}"))),
    ]
    assert [request.effect for request in requests] == [Effect.SUBMIT, Effect.CANCEL, Effect.ANSWER]

    async def send(request: Request) -> Reply:
        async def never() -> float:
            raise AssertionError("an intent was asked for")

        async with transport() as wire:
            return await wire.send(request, before_first_byte=never)

    for request in requests:
        reply = asyncio.run(send(request))
        assert isinstance(reply, NoAnswer)
        assert reply.sent is Sent.NO


def test_an_adapter_that_is_well_says_the_same_through_its_container(install: Install) -> None:
    install("acme", "acme-1 = counterfoil_acme_plugin:Adapter")
    plain, contained = McpSync(JsonRpc(lambda: "r-1")), registry.adapter("acme-1", lambda: "r-1")
    assert next(contained.negotiate(ENDPOINT, "work")).body == next(plain.negotiate(ENDPOINT, "work")).body
    assert next(contained.submit(ENDPOINT, CALL)).url == next(plain.submit(ENDPOINT, CALL)).url
    assert contained.read_submit(ENDPOINT, CALL, REPLY) == plain.read_submit(ENDPOINT, CALL, REPLY)
    exchange = contained.negotiate(ENDPOINT, "work")
    next(exchange)
    with pytest.raises(StopIteration) as stop:
        exchange.send(NoAnswer(Sent.NO, "refused"))
    assert isinstance(stop.value.value, Busy)
