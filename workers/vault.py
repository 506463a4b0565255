"""Encryption at rest for what must not be read from the ledger alone: sessions of servers.

The cryptography package is imported where something is sealed or opened: its 7 MB are for processes whose targets keep
sessions.
"""
# ruff: noqa: PLC0415 - see above

import os
from contextlib import suppress
from pathlib import Path

from ..ledger.errors import CounterfoilError

MAKE_ONE = (
    'Make a key: python -c "from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())" and set it.'
)

KEYS_FILE = "keys"
"""In the development stack's folder; made when first needed."""


class VaultError(CounterfoilError):
    """No key, a malformed one, or none that opens what was sealed. Never echoes a key."""

    code = "E_KEYS"


class Vault:
    """Seals and opens with the keys of COUNTERFOIL_KEYS: the first seals, all open (rotate by putting a new one in
    front)."""

    def __init__(self, keys: list[str]) -> None:
        from cryptography.fernet import Fernet, MultiFernet

        try:
            self._fernet = MultiFernet([Fernet(key) for key in keys])
        except ValueError:
            raise VaultError(
                "COUNTERFOIL_KEYS holds something that is no key.",
                next_step=MAKE_ONE,
            ) from None

    def seal(self, data: bytes) -> bytes:
        return self._fernet.encrypt(data)

    def open(self, sealed: bytes) -> bytes:
        """Raises VaultError when none of the keys sealed it."""
        from cryptography.fernet import InvalidToken

        try:
            return self._fernet.decrypt(sealed)
        except InvalidToken:
            raise VaultError(
                "a stored session can't be opened with any of COUNTERFOIL_KEYS.",
                next_step="Keep old keys behind the new one until the last operation of their time has ended.",
            ) from None


def load_vault(state_dir: Path) -> Vault:
    """The vault of COUNTERFOIL_KEYS (comma-separated), else of the development stack's own key file, which is
    made (0600) where a stack is. Raises VaultError where there is neither."""
    given = os.environ.get("COUNTERFOIL_KEYS", "")
    keys = [key.strip() for key in given.split(",") if key.strip()]
    if keys:
        return Vault(keys)
    path = state_dir / KEYS_FILE
    if not path.exists():
        if not (state_dir / "dev.json").exists():
            raise VaultError(
                "a target keeps sessions, which are stored encrypted, and COUNTERFOIL_KEYS is not set.",
                next_step=MAKE_ONE,
            )
        _make_key(path)
    return Vault([path.read_text().strip()])


def _make_key(path: Path) -> None:
    """A new key, readable by its owner alone. Whole or not at all: two processes may want it at once, one wins."""
    from cryptography.fernet import Fernet

    draft = path.with_name(f"{path.name}.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(Fernet.generate_key())
    with suppress(FileExistsError):
        os.link(draft, path)
    draft.unlink()
