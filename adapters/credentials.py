"""Credentials by reference, resolved at send: `env:NAME`, `file:PATH`, `exec:["program", …]`.

The ledger stores references only. `exec` is never a shell. The program prints the token alone, or JSON `{"token": …,
"expires_in": seconds}`; its token is kept until 60 s before that, or without it until the server answers 401.
"""

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

from . import strict_json
from .strict_json import BadJson

MAX_OUTPUT_BYTES = 64 * 1024
EXEC_TIMEOUT_S = 10.0
EXPIRY_MARGIN_S = 60.0

_TOKEN = re.compile(r"[\x21-\x7e]+")


class CredentialError(ValueError):
    """The reference gives no token. The message names the reference's kind and name, never what was read."""

    code = "E_CREDENTIAL"

    def __init__(self, message: str) -> None:
        super().__init__(f"{self.code}: {message}")


class Credentials:
    """Resolves references for one process. `now_s` is a monotonic clock (a port)."""

    def __init__(
        self,
        now_s: Callable[[], float],
        environ: Mapping[str, str] = os.environ,
        exec_timeout_s: float = EXEC_TIMEOUT_S,
    ) -> None:
        self._now_s = now_s
        self._environ = environ
        self._exec_timeout_s = exec_timeout_s
        self._kept: dict[str, tuple[str, float]] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def authorization(self, reference: str) -> str:
        """The value of the Authorization header. Raises CredentialError."""
        kind, _, rest = reference.partition(":")
        if kind == "env" and rest:
            return _bearer(self._environ.get(rest, ""), f"the variable {rest} is not set or holds no token")
        if kind == "file" and rest:
            return _bearer(await asyncio.to_thread(_read_file, rest), f"the file {rest} holds no token")
        if kind == "exec" and rest:
            return await self._executed(reference, rest)
        raise CredentialError('a credential is named as env:NAME, file:PATH or exec:["program", …]')

    def refused(self, reference: str) -> None:
        """The server answered 401: the next request runs the program again."""
        self._kept.pop(reference, None)

    async def _executed(self, reference: str, argv_json: str) -> str:
        argv = _argv(argv_json)
        # One run at a time: a burst of sends after an expiry would start one program each.
        async with self._locks.setdefault(reference, asyncio.Lock()):
            token, until_s = self._kept.get(reference, ("", 0.0))
            if not token or self._now_s() >= until_s:
                started_s = self._now_s()
                token, lifetime_s = _parse_output(await _run(argv, self._exec_timeout_s), argv[0])
                self._kept[reference] = (token, started_s + lifetime_s)
        return token


def _bearer(text: str, missing: str) -> str:
    token = text.strip()
    if not token:
        raise CredentialError(missing)
    if not _TOKEN.fullmatch(token):
        raise CredentialError(f"{missing}: it has blanks or characters that a header can't carry")
    return f"Bearer {token}"


def _read_file(path: str) -> str:
    try:
        if not Path(path).expanduser().is_file():  # a pipe without a writer would hold the thread for ever
            raise CredentialError(f"{path} is no file")
        with Path(path).expanduser().open("rb") as file:
            return file.read(MAX_OUTPUT_BYTES).decode("ascii", "replace")
    except OSError as error:
        raise CredentialError(f"the file {path} can't be read: {error.strerror}") from None


def _argv(text: str) -> list[str]:
    try:
        value = strict_json.loads(text.encode("utf-8", "replace"))
    except BadJson as error:
        raise CredentialError(f"exec: needs a JSON array of texts: {error}") from None
    argv = [item for item in value if isinstance(item, str) and "\0" not in item] if isinstance(value, list) else []
    if not isinstance(value, list) or not argv or len(argv) != len(value):
        raise CredentialError("exec: needs a JSON array of texts, the program first")
    return argv


def _parse_output(output: bytes, program: str) -> tuple[str, float]:
    """The header's value and how many seconds it may be used (no end without `expires_in`)."""
    missing = f"{program} printed no token"
    text = output.strip()
    if not text.startswith(b"{"):
        return _bearer(text.decode("ascii", "replace"), missing), float("inf")
    try:
        value = strict_json.loads(text)
    except BadJson:
        raise CredentialError(f"{program} printed JSON that can't be read") from None
    token = value.get("token") if isinstance(value, dict) else None
    expires_in = value.get("expires_in") if isinstance(value, dict) else None
    lifetime_s = float("inf")
    if isinstance(expires_in, int | float) and not isinstance(expires_in, bool):
        lifetime_s = max(0.0, min(expires_in, 1e9) - EXPIRY_MARGIN_S)
    return _bearer(token if isinstance(token, str) else "", missing), lifetime_s


async def _run(argv: list[str], timeout_s: float) -> bytes:
    """Standard output of the program, at most MAX_OUTPUT_BYTES. It has ended, or was killed, when this returns."""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,  # it may print the secret, and nobody may see that
            start_new_session=True,  # a group of its own, so that its children end with it
        )
    except OSError as error:
        raise CredentialError(f"{argv[0]} can't be started: {error.strerror}") from None
    assert process.stdout is not None
    output = b""
    try:
        async with asyncio.timeout(timeout_s):
            while chunk := await process.stdout.read(MAX_OUTPUT_BYTES + 1 - len(output)):
                output += chunk
            if len(output) > MAX_OUTPUT_BYTES:
                raise CredentialError(f"{argv[0]} printed more than {MAX_OUTPUT_BYTES} bytes")
            code = await process.wait()
    except TimeoutError:
        raise CredentialError(f"{argv[0]} did not end within {timeout_s:g} s") from None
    finally:
        await _end(process)
    if code != 0:
        raise CredentialError(f"{argv[0]} ended with exit code {code}")
    return output


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill what still runs, with its group, as long as it is not reaped: until then the id is surely its own."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(1.0):  # a child that left the group may hold the pipe open
            await process.communicate()
