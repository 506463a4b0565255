"""Caps, deadlines and refusals around an answer; where a request may go."""

import asyncio
import gzip
import socket
import ssl
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from counterfoil.adapters.contract import (
    Answered,
    Effect,
    NoAnswer,
    Sent,
)
from counterfoil.adapters.credentials import Credentials
from counterfoil.adapters.guard import Guard

from .conftest import Connection, ServeRaw
from .kit import OpenTransport, effect, ok, post, send_by


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_an_answer_over_the_cap_is_cut_while_it_streams(
    serve_raw: ServeRaw, framing: str, transport: OpenTransport
) -> None:
    async def main() -> None:
        async def endless(connection: Connection) -> None:
            await connection.request()
            if framing == "length":
                await connection.say(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000000\r\n\r\n")
                while True:
                    await connection.say(b"x" * 65536)
            await connection.say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while True:
                await connection.say(b"10000\r\n" + b"x" * 65536 + b"\r\n")

        async with serve_raw(endless) as server, transport() as wire_:
            reply = await wire_.send(post(server.url, max_bytes=100_000))
            assert reply == NoAnswer(Sent.MAYBE, "the answer is larger than 100000 bytes", b"x" * 100_000)

    asyncio.run(main())


def test_a_packed_bomb_is_cut_at_the_cap(serve_raw: ServeRaw, transport: OpenTransport) -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)

    async def main() -> None:
        async def script(connection: Connection) -> None:
            await connection.request()
            await connection.answer(bomb, headers="Content-Encoding: gzip\r\n")

        async with serve_raw(script) as server, transport() as wire_:
            reply = await wire_.send(post(server.url, max_bytes=100_000))
            assert reply == NoAnswer(Sent.MAYBE, "the answer is larger than 100000 bytes", b"\0" * 100_000)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("encoding", "body", "expected"),
    [
        ("gzip", gzip.compress(b"hello", mtime=0), b"hello"),
        ("identity", b"hello", b"hello"),
        ("gzip", gzip.compress(b"hello" * 100, mtime=0)[:-9], "cut"),
        ("gzip", b"no gzip", "can't be read"),
        ("br", b"hello", "asked not to"),
    ],
)
def test_a_packed_answer_is_unpacked_or_refused(
    serve_raw: ServeRaw, encoding: str, body: bytes, expected: bytes | str, transport: OpenTransport
) -> None:
    async def main() -> None:
        async def script(connection: Connection) -> None:
            await connection.request()
            await connection.answer(body, headers=f"Content-Encoding: {encoding}\r\n")

        async with serve_raw(script) as server, transport() as wire_:
            reply = await wire_.send(post(server.url))
            if isinstance(expected, bytes):
                assert reply.body == expected
            else:
                assert isinstance(reply, NoAnswer)
                assert expected in reply.why

    asyncio.run(main())


def test_a_redirect_is_an_answer_and_is_not_followed(serve_raw: ServeRaw, transport: OpenTransport) -> None:
    async def main() -> None:
        async def script(connection: Connection) -> None:
            await connection.request()
            await connection.answer(b"", "307 Temporary Redirect", "Location: /other\r\nSet-Cookie: a=b\r\n")

        async with serve_raw(script) as server, transport(environ={"T": "tok"}) as wire_:
            reply = await wire_.send(post(server.url), credential="env:T")
            assert isinstance(reply, Answered)
            assert (reply.status, reply.headers["location"]) == (307, "/other")
            await wire_.send(post(server.url))
            assert b"/other" not in server.received
            assert b"cookie" not in server.received.lower()

    asyncio.run(main())


def test_a_silent_server_is_left_at_the_deadline(serve_raw: ServeRaw, transport: OpenTransport) -> None:
    async def main() -> None:
        async def drip(connection: Connection) -> None:
            await connection.request()
            await connection.say(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
            while not connection.reader.at_eof():
                await connection.say(b"x")
                await asyncio.sleep(0.05)  # real time passes: a byte now and then defeats a timeout per read

        async with serve_raw(drip) as server, transport() as wire_:
            started_s = time.monotonic()
            reply = await wire_.send(post(server.url, deadline_s=0.3))
            assert time.monotonic() - started_s < 2
            assert isinstance(reply, NoAnswer)
            assert (reply.sent, reply.why) == (Sent.MAYBE, "the deadline passed")

    asyncio.run(main())


def test_an_effect_may_answer_long_after_send_by(serve_raw: ServeRaw, transport: OpenTransport) -> None:
    async def main() -> None:
        async def script(connection: Connection) -> None:
            await connection.request()
            await asyncio.sleep(0.4)  # real time passes: longer than send_by, shorter than the answer's deadline
            await connection.answer(b"late")

        async with serve_raw(script) as server, transport() as wire_:
            reply = await wire_.send(effect(server.url, deadline_s=5), before_first_byte=send_by(0.2))
            assert reply.body == b"late"

    asyncio.run(main())


def test_a_refused_address_or_credential_sends_nothing(serve_raw: ServeRaw, transport: OpenTransport) -> None:
    async def private(host: str, port: int) -> list[str]:
        return ["127.0.0.1", "10.0.0.1"]

    async def unknown(host: str, port: int) -> list[str]:
        raise socket.gaierror(-2, "Name or service not known")

    async def main() -> None:
        async with serve_raw(ok) as server, transport() as wire_, transport(Guard(resolve=private)) as guarded:
            reply = await wire_.send(post(server.url), credential="env:NOT_THERE")
            assert isinstance(reply, NoAnswer)
            assert (reply.sent, reply.why[:12]) == (Sent.NO, "E_CREDENTIAL")
            reply = await guarded.send(post(f"http://api.example:{server.port}/"))
            assert isinstance(reply, NoAnswer)
            assert (reply.sent, reply.why[:17]) == (Sent.NO, "E_ADDRESS_REFUSED")
            async with transport(Guard(resolve=unknown)) as lost:
                reply = await lost.send(post("http://api.example/"))
            assert reply == NoAnswer(Sent.NO, "the host's name can't be resolved: Name or service not known")
            assert server.received == b""

    asyncio.run(main())


def test_the_judged_address_is_dialled_while_the_host_stays(serve_raw: ServeRaw, transport: OpenTransport) -> None:
    async def names(host: str, port: int) -> list[str]:
        return ["127.0.0.2", "127.0.0.1"]  # nothing listens on the first: the next one takes the connection

    async def main() -> None:
        async with serve_raw(ok) as server, transport(Guard(resolve=names)) as wire_:
            url = f"http://api.example:{server.port}/mcp"
            assert isinstance(await wire_.send(effect(url), before_first_byte=send_by(5)), Answered)
            assert f"Host: api.example:{server.port}\r\n".encode() in server.received

    asyncio.run(main())


def self_signed(tmp_path: Path, name: str) -> Path:
    """A certificate for a name and its key, in one PEM file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path = tmp_path / f"{name}.pem"
    path.write_bytes(private + certificate.public_bytes(Encoding.PEM))
    return path


def test_tls_is_verified_against_the_urls_host_and_not_the_dialled_address(
    serve_raw: ServeRaw, tmp_path: Path, transport: OpenTransport
) -> None:
    async def names(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    async def main() -> None:
        pem = self_signed(tmp_path, "api.example")
        server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server_side.load_cert_chain(pem)
        trusting = ssl.create_default_context(cafile=str(pem))
        async with (
            serve_raw(ok, server_side) as server,
            transport(Guard(resolve=names), tls=trusting) as trusts,
            transport(Guard(resolve=names)) as default,
        ):
            url = f"https://api.example:{server.port}/mcp"
            assert isinstance(await trusts.send(effect(url), before_first_byte=send_by(5)), Answered)
            for wire_, wrong in ((trusts, url.replace("api", "other")), (default, url)):
                reply = await wire_.send(effect(wrong), before_first_byte=send_by(5))
                assert isinstance(reply, NoAnswer)
                assert (reply.sent, "CERTIFICATE_VERIFY_FAILED" in reply.why) == (Sent.NO, True)
            assert server.received.count(b"POST") == 1

    asyncio.run(main())


def test_a_401_makes_the_credential_be_made_again(
    serve_raw: ServeRaw, monkeypatch: pytest.MonkeyPatch, transport: OpenTransport
) -> None:
    refused: list[str] = []
    monkeypatch.setattr(Credentials, "refused", lambda self, reference: refused.append(reference))

    async def main() -> None:
        async def script(connection: Connection) -> None:
            await connection.request()
            await connection.answer(b"", "401 Unauthorized")

        async with serve_raw(script) as server, transport(environ={"T": "tok"}) as wire_:
            await wire_.send(post(server.url), credential="env:T")

    asyncio.run(main())
    assert refused == ["env:T"]


@pytest.mark.parametrize(
    ("changes", "hook"),
    [({"effect": Effect.CANCEL}, None), ({}, send_by(1))],
)
def test_a_request_that_could_slip_past_its_intent_is_a_bug(
    changes: dict[str, Any], hook: Any, transport: OpenTransport
) -> None:
    async def main() -> None:
        async with transport() as wire_:
            with pytest.raises(ValueError, match="intent"):
                await wire_.send(post("http://127.0.0.1:1/", **changes), before_first_byte=hook)

    asyncio.run(main())
