"""The producers file: who may hand calls in through the broker, with which key, into which namespace.

The key is all the authority that a message has: namespace and principal are looked up by it and never read from the
message (whoever reaches the broker could name any). Secrets are named, not written: `env:NAME` or `file:PATH`.
"""

import hashlib
import hmac
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from ..ledger.digest import checked_name
from ..ledger.errors import CounterfoilError, InputRefused
from . import yaml_lines
from .file_faults import described
from .yaml_lines import KeyPath

MIN_SECRET_BYTES = 32
MAX_SECRET_BYTES = 4096
MAC_PREFIX = b"counterfoil.submit.v1\n"
"""So that a signature made for anything else with the same secret is none for a message."""

_KEY_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"


class ProducersError(CounterfoilError):
    """The producers file can't be used: no message can be judged until it can. Texts hold no secret."""

    code = "E_PRODUCERS"

    def __init__(self, message: str, problems: Iterable[str] = ()) -> None:
        self.problems = tuple(problems)
        super().__init__(
            "\n  ".join((message, *self.problems)),
            next_step="See docs/producers.md; no worker has to be started again.",
        )


@dataclass(frozen=True, slots=True)
class Producer:
    """What a key stands for."""

    namespace: str
    principal: str
    secret: bytes = field(repr=False, default=b"")


def sign(secret: bytes, key_id: str, body: bytes) -> str:
    """HMAC-SHA256 over prefix, key id and body, in hex. A key id holds no newline, so the three can't run together."""
    return hmac.new(secret, MAC_PREFIX + key_id.encode() + b"\n" + body, hashlib.sha256).hexdigest()


def _own_name(kind: str) -> AfterValidator:
    def check(value: str) -> str:
        try:
            return checked_name(kind, value)
        except InputRefused as error:
            raise ValueError(error.message.rstrip(".")) from None

    return AfterValidator(check)


def _reference(value: str) -> str:
    kind, _, rest = value.partition(":")
    if kind not in ("env", "file") or not rest:
        # A pasted secret must not be repeated in the message.
        raise ValueError("name where the secret is, never the secret: env:NAME or file:PATH")
    return value


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)

    secret: Annotated[str, AfterValidator(_reference)]
    namespace: Annotated[str, _own_name("namespace")]
    principal: Annotated[str, _own_name("principal")]


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)

    producers: dict[Annotated[str, Field(pattern=_KEY_ID)], _Entry] = Field(min_length=1)


_WORDS = {
    "too_short": "names no producer.",
    "string_pattern_mismatch": "a key id has letters, digits, '.', '_' and '-', 63 at most.",
}


def _known_keys(path: KeyPath) -> Iterable[str]:
    return _Entry.model_fields if path else _File.model_fields


class Producers:
    """The keys by id. The file is read again when it has changed, so that a key is added or taken without a restart.

    Secrets are read with the file: another secret is another key id (docs/producers.md, "Rotation").
    """

    def __init__(self, path: Path | None, environ: Mapping[str, str] = os.environ) -> None:
        self._path = path
        self._environ = environ
        self._seen: tuple[int, ...] | None = None
        self._known: dict[str, Producer] = {}

    def find(self, key_id: str) -> Producer | None:
        """Raises ProducersError."""
        return self.load().get(key_id)

    def load(self) -> Mapping[str, Producer]:
        """All keys; none where no file is configured. Raises ProducersError with every fault of the file."""
        if self._path is None:
            return {}
        try:
            stat = self._path.stat()
            # Taken before the reading: a change in between makes one reading too many, never one too few.
            seen = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if seen != self._seen:
                self._seen = None
                self._known = _read(self._path, self._environ)
                self._seen = seen
        except OSError as error:
            raise ProducersError(f"the producers file {self._path} can't be read: {error.strerror}.") from None
        return self._known


def _read(path: Path, environ: Mapping[str, str]) -> dict[str, Producer]:
    """Raises OSError, ProducersError."""
    document = yaml_lines.read(path)
    problems, known = list(document.problems), dict[str, Producer]()
    try:
        entries = _File.model_validate(document.value or {}).producers
    except ValidationError as error:
        problems += described(document, (), error, _known_keys, _WORDS)
    else:
        for key_id, entry in entries.items():
            secret = _resolve(entry.secret, environ)
            same = next((other for other, one in known.items() if one.secret == secret), None)
            if isinstance(secret, str):
                problem = secret
            elif same is not None:
                # Whoever holds the one key could sign as the other.
                problem = f"is the same secret as that of {same}."
            else:
                known[key_id] = Producer(entry.namespace, entry.principal, secret)
                continue
            problems.append((document.line(("producers", key_id, "secret")), f"producers.{key_id}.secret: {problem}"))
    if problems:
        lines = [f"{path}:{line}: {message}" for line, message in sorted(set(problems))]
        raise ProducersError("the producers file can't be used. Correct these lines:", lines)
    return known


def _resolve(reference: str, environ: Mapping[str, str]) -> bytes | str:
    """The secret, or what is wrong with it. Blanks around it are not part of it: a file ends with a newline."""
    kind, _, name = reference.partition(":")
    if kind == "env":
        secret = environ.get(name, "").encode("utf-8", "surrogateescape").strip()
        where = f"the variable {name}"
    else:
        where = f"the file {name}"
        path = Path(name).expanduser()
        try:
            if not path.is_file():  # a pipe without a writer would hold the reader for ever
                return f"{where} is no file."
            with path.open("rb") as file:
                secret = file.read(MAX_SECRET_BYTES + 1).strip()
        except OSError as error:
            return f"{where} can't be read: {error.strerror}."
    if not secret:
        return f"{where} is not set or holds nothing."
    if not MIN_SECRET_BYTES <= len(secret) <= MAX_SECRET_BYTES:
        return f"{where} has {len(secret)} bytes; a secret has {MIN_SECRET_BYTES} to {MAX_SECRET_BYTES}."
    return secret
