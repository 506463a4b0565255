"""The hooks file: which targets may call back, and what their callbacks must bear."""

from pathlib import Path

import pytest

from counterfoil.workers.bucket import Limit
from counterfoil.workers.hooks import Hook, HooksError, load_hooks
from counterfoil.workers.targets import Targets

from .kit_world import targets


def agents(*names: str) -> Targets:
    return targets(*names, protocol="a2a-1.0")


def written(folder: Path, text: str) -> Path:
    path = folder / "hooks.yaml"
    path.write_text(text)
    return path


def test_a_file_names_each_target_with_its_secrets_and_its_rate(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "hooks:\n  a: {secret: env:A}\n  b:\n    secret: [env:NEW, file:/run/secrets/old]\n    qps: 2\n    burst: 5\n",
    )
    assert load_hooks(path, agents("a", "b")) == {
        "a": Hook(("env:A",), Limit(20.0, 20, {})),
        "b": Hook(("env:NEW", "file:/run/secrets/old"), Limit(2.0, 5, {})),
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("hooks: {}", "1: hooks: names no target."),
        ("", "1: hooks: is missing."),
        ("hooks:\n  agnet: {secret: env:A}", "2: 'agnet' is no target of the targets file. Did you mean agent?"),
        ("hooks:\n  agent:\n    secret: hunter2", "3: hooks.agent.secret: name where the secret is, never the secret"),
        ("hooks:\n  agent:\n    secret: []", "3: hooks.agent.secret: names 1 to 3 secrets"),
        ("hooks:\n  agent:\n    secrt: env:A", "3: hooks.agent.secrt: there is no such setting; did you mean secret?"),
        ("hooks:\n  agent:\n    secret: env:A\n    qps: 0", "4: hooks.agent.qps: should be greater than 0"),
        ("hooks:\n  agent: env:A", "2: hooks.agent: must be a mapping"),
        ("hooks: [", "1: "),
    ],
)
def test_a_fault_of_the_file_is_told_with_its_line(tmp_path: Path, text: str, problem: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(HooksError) as caught:
        load_hooks(path, agents("agent"))
    told = [one.removeprefix(f"{path}:") for one in caught.value.problems]
    assert any(problem in one for one in told), told
    assert "hunter2" not in str(caught.value)
    assert caught.value.code == "E_HOOKS"


def test_a_file_that_is_not_there_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(HooksError, match=r"can't be read: No such file.*--hooks-file"):
        load_hooks(tmp_path / "hooks.yaml", agents("agent"))
