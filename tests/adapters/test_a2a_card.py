import json
from typing import Any

import pytest

from counterfoil.adapters import a2a_card as cards
from counterfoil.adapters.contract import Answered
from counterfoil.adapters.outcomes import Negotiated, NotOffered

from .a2a_server import card

URL = "https://agents.example.com/reports/v1"


@pytest.mark.parametrize(
    ("url", "paths"),
    [
        ("http://h:1", [""]),
        ("http://h:1/", [""]),
        ("http://h:1/a/b/?x=1", ["/a/b", "/a", ""]),
        ("http://h:1/a/b/c/d/e", ["/a/b/c/d/e", "/a/b/c/d", "/a/b/c", ""]),
    ],
)
def test_a_card_is_looked_for_from_the_agent_down_to_its_origin(url: str, paths: list[str]) -> None:
    assert cards.places(url) == [f"http://h:1{path}/.well-known/agent-card.json" for path in paths]


def test_a_card_for_another_address_of_the_same_agent_is_taken() -> None:
    assert cards.objection(card("https://public.example.com/a2a"), "reports", URL) is None


@pytest.mark.parametrize("named", ["https://agents.example.com/reports/v1/", "https://agents.example.com/reports/v1"])
def test_an_address_that_the_card_names_is_the_agents_with_or_without_a_slash_at_its_end(named: str) -> None:
    assert cards.objection(card(named), "reports", URL) is None


def test_another_address_of_our_own_origin_is_the_agents_and_ours_is_not() -> None:
    """A host's own URL shows the card of an agent that lives below it: what is sent there would find nobody."""
    refusal = cards.objection(card(URL), "reports", "https://agents.example.com")
    assert refusal is not None
    assert f"its card names {URL}; give that URL" in refusal.why


def interface(**members: Any) -> dict[str, Any]:
    return {"url": URL, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"} | members


@pytest.mark.parametrize(
    ("interfaces", "why"),
    [
        ([], "offers no interface, not JSONRPC 1.0"),
        ("JSONRPC", "offers no interface"),
        ([interface(protocolVersion="0.3")], "offers JSONRPC 0.3, not JSONRPC 1.0"),
        ([interface(protocolBinding="GRPC")], "offers GRPC 1.0"),
        # our address speaks something else, whatever other addresses speak
        ([interface(protocolBinding="HTTP+JSON"), interface(url="https://else.example.com")], r"offers HTTP\+JSON 1.0"),
        ([interface(tenant="acme")], "asks for a tenant"),
        ([interface(protocolBinding=["\x00"])], r"offers \? 1.0"),
    ],
)
def test_an_agent_that_can_not_be_spoken_to_is_not_offered(interfaces: object, why: str) -> None:
    refusal = cards.objection(card(URL, supportedInterfaces=interfaces), "reports", URL)
    assert refusal is not None
    assert refusal.code == "E_CAPABILITY_UNSUPPORTED"
    with pytest.raises(AssertionError, match=why):
        raise AssertionError(refusal.why)


def test_an_extension_that_is_required_is_not_pretended() -> None:
    extensions = [{"uri": "https://x/optional"}, {"uri": "https://x/must", "required": True}]
    refusal = cards.objection(card(URL, capabilities={"extensions": extensions}), "reports", URL)
    assert refusal is not None
    assert "requires the extension 'https://x/must'" in refusal.why
    assert cards.objection(card(URL, capabilities={"extensions": extensions[:1]}), "reports", URL) is None


@pytest.mark.parametrize(
    "answer",
    [
        Answered(404, {}, json.dumps(card(URL)).encode()),
        Answered(301, {"location": URL}),
        Answered(200, {}, b"<html>"),
        Answered(200, {}, b"[]"),
        Answered(200, {}, b'{"name": 1, "name": 2}'),
    ],
)
def test_what_is_no_card_is_none(answer: Answered) -> None:
    assert cards.read(answer) is None


def test_a_skill_that_can_not_be_stored_is_named_and_not_offered() -> None:
    hostile = {"id": "generate", "description": "a\x00b"}
    outcome = cards.agreed(card(URL), hostile, "reports")
    assert isinstance(outcome, NotOffered)
    assert "/description" in outcome.why
    assert isinstance(cards.agreed(card(URL, version=["1"]), {"id": "generate"}, "reports"), Negotiated)
