"""Sessions in the loop: opened once by id, and a farewell to the server when the last operation is over."""

import json
import uuid
from collections.abc import Iterable
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from counterfoil.adapters.mcp_session import Session
from counterfoil.adapters.registry import adapter
from counterfoil.workers import actions as act
from counterfoil.workers.catalog import Catalog
from counterfoil.workers.engine import SERVED, Engine
from counterfoil.workers.jobs import Pace
from counterfoil.workers.sessions import Sessions
from counterfoil.workers.target_entries import TargetEntry
from counterfoil.workers.targets import Target, Targets
from counterfoil.workers.vault import Vault, VaultError, load_vault

ONE, TWO = uuid.UUID(int=1), uuid.UUID(int=2)
SESSION = json.dumps({"id": "s-1", "version": "2025-11-25"}).encode()


class Keeper:
    """Notes what was asked for."""

    def __init__(self) -> None:
        self.asked: list[set[uuid.UUID]] = []

    def load(self, ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, bytes]:
        self.asked.append(set(ids))
        return {session_id: b"session %d" % session_id.int for session_id in self.asked[-1]}


def test_a_claims_sessions_are_opened_in_one_go_and_once() -> None:
    keeper = Keeper()
    sessions = Sessions(keeper)
    sessions.preload([ONE, TWO, None])
    assert (sessions.get(ONE), sessions.get(TWO), sessions.get(None)) == (b"session 1", b"session 2", None)
    sessions.learn(uuid.UUID(int=3), b"new")
    assert sessions.get(uuid.UUID(int=3)) == b"new"
    assert keeper.asked == [{ONE, TWO}]


def test_the_server_is_told_when_a_session_is_over() -> None:
    entry = TargetEntry.model_validate({"url": "http://127.0.0.1:1/mcp", "protocol": "mcp-2025-11-25"})
    targets = Targets({"a": Target("a", adapter("mcp-2025-11-25").profile, entry)})
    catalog = Catalog(targets, lambda _digests: {}, Sessions(Keeper()))
    engine = Engine(catalog, Pace(), SERVED, rng=lambda: 0.0, new_token=uuid.uuid4)
    engine.step(0.0, [])
    session = Session("2025-11-25", "s-1").pack()
    asked = engine.step(0.1, [act.Swept([], [("a", "env:TOKEN", session), ("gone", "", session)])])
    (take,) = [write for write in asked.writes if isinstance(write, act.Take)]
    (send,) = engine.step(0.2, [act.Tokens(take, 1, 0.0)]).wire
    assert isinstance(send, act.Send)
    assert (send.request.method, send.credential) == ("DELETE", "env:TOKEN")
    assert ("Mcp-Session-Id", "s-1") in send.request.headers


def test_what_one_key_sealed_opens_after_a_rotation_and_not_without_it() -> None:
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    sealed = Vault([old]).seal(SESSION)
    assert SESSION not in sealed
    assert Vault([new, old]).open(sealed) == SESSION
    with pytest.raises(VaultError, match="E_KEYS"):
        Vault([new]).open(sealed)


def test_a_key_that_is_none_is_refused_without_being_shown() -> None:
    with pytest.raises(VaultError) as caught:
        Vault(["not-a-key"])
    assert "not-a-key" not in str(caught.value)


def test_the_development_stack_has_a_key_of_its_own_and_nothing_else_has(tmp_path: Path) -> None:
    with pytest.raises(VaultError, match="COUNTERFOIL_KEYS"):
        load_vault(tmp_path)
    (tmp_path / "dev.json").write_text("{}")
    sealed = load_vault(tmp_path).seal(SESSION)
    assert load_vault(tmp_path).open(sealed) == SESSION
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o600
