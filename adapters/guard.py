"""Which addresses a target may have: a name is resolved once, every address is judged, the judged one is dialled.

Without the pin a second lookup could answer differently (DNS rebinding). Loopback is allowed, since a tool server
beside the worker is usual; private networks only where the operator says so for that target.
"""

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import NamedTuple, TypeAlias
from urllib.parse import urlsplit

CACHE_S = 30.0
MAX_ADDRESSES = 16

Address: TypeAlias = IPv4Address | IPv6Address
Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]

_DEFAULT_PORTS = {"http": 80, "https": 443}
_ORIGIN = re.compile("https?://[^/?#]*")
# Azure's metadata and wire server is the one metadata address inside public space.
_METADATA = frozenset({IPv4Address("168.63.129.16")})
_NAT64 = ip_network("64:ff9b::/96")


class AddressRefused(ValueError):
    """The target's address is not one that we dial. The message says which and what to do."""

    code = "E_ADDRESS_REFUSED"

    def __init__(self, message: str) -> None:
        super().__init__(f"{self.code}: {message}")


class Guard:
    """Judges the addresses of one target. `allow_private` opens private, link-local, shared and metadata addresses."""

    def __init__(self, *, allow_private: bool = False, resolve: Resolve | None = None) -> None:
        self._allow_private = allow_private
        self._resolve = resolve or system_resolve
        self._known: dict[tuple[str, int], tuple[float, tuple[str, ...]]] = {}

    async def addresses(self, url: str) -> tuple[str, ...]:
        """What to dial for a URL, in this order; resolved and judged once in CACHE_S seconds a host.

        Host and SNI still name the URL's host. Raises AddressRefused; OSError from the resolver.
        """
        host, port, _ = origin(url)
        now_s = asyncio.get_running_loop().time()
        until_s, addresses = self._known.get((host, port), (0.0, ()))
        if not addresses or now_s >= until_s:
            addresses = await self._look_up(host, port)
            self._known[host, port] = (now_s + CACHE_S, addresses)
        return addresses

    async def _look_up(self, host: str, port: int) -> tuple[str, ...]:
        found = (await self._resolve(host, port))[:MAX_ADDRESSES]
        if not found:
            raise AddressRefused(f"{host} has no address")
        for text in found:
            why = refusal(ip_address(text), allow_private=self._allow_private)
            if why is not None:
                raise AddressRefused(f"{host} leads to {text}, {why}")
        return tuple(dict.fromkeys(found))


def refusal(address: Address, *, allow_private: bool) -> str | None:
    """Why an address is not dialled; None when it may be."""
    inner = _embedded(address)
    if inner is not None:
        return refusal(inner, allow_private=allow_private)
    if address.is_loopback:
        return None
    if address.is_unspecified or address.is_multicast or address.is_reserved:
        return "which is no host's address"
    if (address.is_global and address not in _METADATA) or allow_private:
        return None
    return (
        "which is private, link-local or a cloud's metadata: set `allow_private: true` for this target if it is yours"
    )


def _embedded(address: Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 one really reaches: mapped, 6to4, NAT64."""
    if isinstance(address, IPv4Address):
        return None
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


async def system_resolve(host: str, port: int) -> Sequence[str]:
    """The system's resolver, off the loop."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


class Origin(NamedTuple):
    """Whom a URL asks. `netloc` is what stands in it, and what the Host header says."""

    host: str
    port: int
    netloc: str


def origin(url: str) -> Origin:
    """Raises AddressRefused for a URL that no request may have."""
    # Each task has a URL of its own, and all of them one beginning: to read that once is 8 us less a request.
    beginning = _ORIGIN.match(url)
    return _read_origin(beginning[0] if beginning else url)


@lru_cache(maxsize=1024)
def _read_origin(url: str) -> Origin:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise AddressRefused("the URL can't be read") from None
    if parts.scheme not in _DEFAULT_PORTS or not host:
        raise AddressRefused("the URL must be http:// or https:// with a host")
    if parts.username is not None or parts.password is not None:
        raise AddressRefused("the URL holds user info: name a credential by reference instead")
    return Origin(host, port or _DEFAULT_PORTS[parts.scheme], parts.netloc)
