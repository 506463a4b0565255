import pytest

from counterfoil.adapters import registry


def test_every_listed_protocol_has_an_adapter_with_a_profile_of_its_name() -> None:
    for protocol in registry.PROTOCOLS:
        assert registry.adapter(protocol).profile.protocol == protocol


def test_the_protocols_of_this_release_stand_in_the_order_of_their_worth() -> None:
    assert registry.PROTOCOLS == ("mcp-2026-07-28", "mcp-2025-11-25", "mcp-sync", "aip-151", "http-202", "a2a-1.0")


def test_an_unknown_protocol_says_what_there_is_and_what_is_near() -> None:
    with pytest.raises(
        registry.UnknownProtocol, match=r"Did you mean 'mcp-2026-07-28'\? There is: mcp-2026-07-28"
    ) as caught:
        registry.adapter("mcp-2026-07-82")
    assert caught.value.code == "E_PROTOCOL_UNKNOWN"
    with pytest.raises(registry.UnknownProtocol):
        registry.adapter("")
