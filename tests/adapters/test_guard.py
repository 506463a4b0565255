import asyncio
from collections.abc import Sequence
from ipaddress import ip_address

import pytest

from counterfoil.adapters.guard import AddressRefused, Guard, refusal


@pytest.mark.parametrize(
    ("address", "public", "private"),
    [
        ("127.0.0.1", True, True),
        ("127.8.8.8", True, True),
        ("::1", True, True),
        ("::ffff:127.0.0.1", True, True),
        ("8.8.8.8", True, True),
        ("2606:4700::1111", True, True),
        ("10.0.0.1", False, True),
        ("172.16.0.1", False, True),
        ("192.168.1.1", False, True),
        ("100.64.0.1", False, True),
        ("169.254.169.254", False, True),
        ("168.63.129.16", False, True),
        ("192.0.2.1", False, True),
        ("fe80::1", False, True),
        ("fd00:ec2::254", False, True),
        ("::ffff:10.0.0.1", False, True),
        ("::ffff:169.254.169.254", False, True),
        ("64:ff9b::a9fe:a9fe", False, True),
        ("2002:a9fe:a9fe::1", False, True),
        ("0.0.0.0", False, False),
        ("::", False, False),
        ("224.0.0.1", False, False),
        ("ff02::1", False, False),
        ("240.0.0.1", False, False),
        ("255.255.255.255", False, False),
    ],
)
def test_only_public_and_loopback_addresses_pass_unless_private_is_allowed(
    address: str, public: bool, private: bool
) -> None:
    assert (refusal(ip_address(address), allow_private=False) is None) == public
    assert (refusal(ip_address(address), allow_private=True) is None) == private


class Names:
    """A name server that can change its mind and counts how often it is asked."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked += 1
        return self.answers.pop(0)


def test_one_bad_address_among_good_ones_refuses_the_name() -> None:
    guard = Guard(resolve=Names(["8.8.8.8", "10.0.0.1"]))
    with pytest.raises(AddressRefused, match=r"E_ADDRESS_REFUSED: api.example leads to 10.0.0.1.*allow_private: true"):
        asyncio.run(guard.addresses("https://api.example/mcp"))


def test_a_name_is_resolved_once_and_pinned() -> None:
    names = Names(["8.8.8.8", "8.8.4.4", "8.8.8.8"], ["169.254.169.254"])
    guard = Guard(resolve=names)

    async def twice() -> tuple[tuple[str, ...], ...]:
        return await guard.addresses("https://api.example/mcp"), await guard.addresses("https://api.example/other")

    first, second = asyncio.run(twice())
    assert first == second == ("8.8.8.8", "8.8.4.4")
    assert names.asked == 1


@pytest.mark.parametrize(
    "url",
    [
        "ftp://h/",
        "http://",
        "http://[::1",
        "http://h:99999/",
        "//h/",
        "file:///etc/passwd",
        "http://u:p@h/",
        "http://u@h/",
    ],
)
def test_a_url_that_is_no_plain_web_address_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(AddressRefused) as caught:
        asyncio.run(Guard(resolve=Names(["8.8.8.8"])).addresses(url))
    assert "u:p" not in str(caught.value)


def test_a_name_without_addresses_is_refused() -> None:
    with pytest.raises(AddressRefused, match="no address"):
        asyncio.run(Guard(resolve=Names([])).addresses("http://nowhere.example/"))


def test_the_system_resolver_knows_localhost() -> None:
    assert {"127.0.0.1", "::1"} & set(asyncio.run(Guard().addresses("http://localhost:8000/mcp")))
