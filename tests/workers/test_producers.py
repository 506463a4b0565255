"""The producers file: keys, what they stand for, and every fault with its line and without its secret."""

import os
from pathlib import Path

import pytest

from counterfoil.workers.producers import Producer, Producers, ProducersError, sign

SECRET = "0123456789abcdef0123456789abcdef"
OTHER = "another secret of 32 bytes or more"
ENVIRON = {"BILLING_KEY": SECRET, "BILLING_KEY_2": OTHER, "SHORT": "hunter2", "SAME": SECRET}
ONE = "producers:\n  billing-1:\n    secret: env:BILLING_KEY\n    namespace: billing\n    principal: svc-billing\n"


def producers(folder: Path, text: str) -> Producers:
    path = folder / "producers.yaml"
    path.write_text(text)
    return Producers(path, ENVIRON)


def faults(folder: Path, text: str) -> list[str]:
    with pytest.raises(ProducersError) as raised:
        producers(folder, text).load()
    assert raised.value.code == "E_PRODUCERS"
    for secret in (SECRET, "hunter2"):
        assert secret not in f"{raised.value!s} {raised.value!r}"
    return [problem.removeprefix(f"{folder}/producers.yaml:") for problem in raised.value.problems]


def test_a_key_stands_for_a_namespace_and_a_principal(tmp_path: Path) -> None:
    keys = producers(tmp_path, ONE)
    assert keys.find("billing-1") == Producer("billing", "svc-billing", SECRET.encode())
    assert keys.find("billing-2") is None
    assert SECRET not in repr(keys.find("billing-1"))


def test_without_a_file_there_is_no_key() -> None:
    assert Producers(None).find("billing-1") is None


def test_a_secret_may_stand_in_a_file_with_a_newline_at_its_end(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{SECRET}\n")
    found = producers(tmp_path, ONE.replace("env:BILLING_KEY", f"file:{tmp_path}/key")).find("billing-1")
    assert found is not None
    assert found.secret == SECRET.encode()


def test_keys_come_and_go_without_a_restart(tmp_path: Path) -> None:
    """Rotation: two key ids for a while, then the old one goes."""
    keys = producers(tmp_path, ONE)
    assert keys.find("billing-2") is None
    second = ONE.removeprefix("producers:\n").replace("billing-1", "billing-2").replace("BILLING_KEY", "BILLING_KEY_2")
    producers(tmp_path, ONE + second)
    assert keys.find("billing-1") is not None
    assert keys.find("billing-2") == Producer("billing", "svc-billing", OTHER.encode())
    producers(tmp_path, "producers:\n" + second)
    assert keys.find("billing-1") is None


def test_a_file_that_became_wrong_takes_nobody_in_until_it_is_right_again(tmp_path: Path) -> None:
    keys = producers(tmp_path, ONE)
    keys.load()
    producers(tmp_path, ONE + "    nonsense: 1\n")
    for _ in range(2):
        with pytest.raises(ProducersError):
            keys.find("billing-1")
    (tmp_path / "producers.yaml").unlink()
    with pytest.raises(ProducersError, match="No such file"):
        keys.find("billing-1")
    producers(tmp_path, ONE)
    assert keys.find("billing-1") is not None


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "1: producers: is missing."),
        ("producers: {}", "1: producers: names no producer."),
        ("producers: [a]", "1: producers: must be a mapping: indented lines of `key: value`."),
        ("producer:\n  a: 1\n", "1: producer: there is no such setting; did you mean producers?"),
        (ONE + "    namespce: x\n", "6: BILLING.namespce: there is no such setting; did you mean namespace?"),
        (ONE.replace("    principal: svc-billing\n", ""), "2: BILLING.principal: is missing."),
        (ONE.replace("namespace: billing", "namespace: ''"), "4: BILLING.namespace: the namespace is empty."),
        (ONE.replace("principal: svc-billing", "principal: 5"), "5: BILLING.principal: should be a valid string."),
        (
            ONE.replace("env:BILLING_KEY", SECRET),
            "3: BILLING.secret: name where the secret is, never the secret: env:NAME or file:PATH.",
        ),
        (ONE.replace("BILLING_KEY", "NONE"), "3: BILLING.secret: the variable NONE is not set or holds nothing."),
        (
            ONE.replace("BILLING_KEY", "SHORT"),
            "3: BILLING.secret: the variable SHORT has 7 bytes; a secret has 32 to 4096.",
        ),
        (
            ONE.replace("env:BILLING_KEY", "file:/nowhere/key"),
            "3: BILLING.secret: the file /nowhere/key is no file.",
        ),
        (
            ONE.replace("billing-1", "'billing 1'"),
            "2: producers.billing 1: a key id has letters, digits, '.', '_' and '-', 63 at most.",
        ),
        (ONE.replace("    secret", "\tsecret"), "3: a tab can't indent YAML; use spaces."),
        (ONE + ONE.removeprefix("producers:\n"), "6: producers.billing-1 stands here a second time (first on line 2)."),
        (
            ONE + ONE.removeprefix("producers:\n").replace("billing-1", "mail-1").replace("BILLING_KEY", "SAME"),
            "7: producers.mail-1.secret: is the same secret as that of billing-1.",
        ),
    ],
)
def test_a_fault_is_told_with_its_line_and_never_shows_a_secret(tmp_path: Path, text: str, fault: str) -> None:
    assert fault.replace("BILLING", "producers.billing-1") in faults(tmp_path, text)


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    assert len(faults(tmp_path, ONE.replace("svc-billing", "''") + "  b: {}\n")) == 4


def test_a_pipe_is_no_secret(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "is no file" in faults(tmp_path, ONE.replace("env:BILLING_KEY", f"file:{tmp_path}/pipe"))[0]


def test_a_signature_covers_key_id_and_body() -> None:
    """The vector of docs/producers.md; `openssl dgst -sha256 -hmac` says the same."""
    made = sign(SECRET.encode(), "billing-1", b'{"v":1}')
    assert made == "a2b83a27d2257ff700ff37d032bc90315cfe6afd902b1bcb0272aa5f419409ac"
    assert sign(SECRET.encode(), "billing-2", b'{"v":1}') != made
    assert sign(SECRET.encode(), "billing-1", b'{"v": 1}') != made
    assert sign(OTHER.encode(), "billing-1", b'{"v":1}') != made
