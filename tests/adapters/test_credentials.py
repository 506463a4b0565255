import asyncio
import json
import os
import sys
import time
from pathlib import Path

import pytest

from counterfoil.adapters.credentials import MAX_OUTPUT_BYTES, CredentialError, Credentials

SECRET = "s3cr3t-t0ken"


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def program(tmp_path: Path, code: str) -> str:
    """An `exec:` reference to a small Python program that counts its runs in a file."""
    script = tmp_path / "credential.py"
    count = f"open({str(tmp_path / 'runs')!r}, 'a').write('x')\n"
    script.write_text("import os, sys, time\n" + count + code)
    return "exec:" + json.dumps([sys.executable, str(script)])


def runs(tmp_path: Path) -> int:
    return len((tmp_path / "runs").read_text())


def get(credentials: Credentials, reference: str) -> str:
    return asyncio.run(credentials.authorization(reference))


def test_env_is_read_at_each_send() -> None:
    environ = {"TOKEN": SECRET}
    credentials = Credentials(Clock(), environ)
    assert get(credentials, "env:TOKEN") == f"Bearer {SECRET}"
    environ["TOKEN"] = "next"
    assert get(credentials, "env:TOKEN") == "Bearer next"


def test_a_file_is_read_at_each_send(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(f"{SECRET}\n")
    credentials = Credentials(Clock())
    assert get(credentials, f"file:{path}") == f"Bearer {SECRET}"
    path.write_text("next")
    assert get(credentials, f"file:{path}") == "Bearer next"


def test_exec_is_kept_until_its_expiry_less_a_margin(tmp_path: Path) -> None:
    clock = Clock()
    credentials = Credentials(clock)
    reference = program(tmp_path, f'print(\'{{"token": "{SECRET}", "expires_in": 100}}\')')
    assert get(credentials, reference) == f"Bearer {SECRET}"
    clock.now_s += 39
    get(credentials, reference)
    assert runs(tmp_path) == 1
    clock.now_s += 2
    get(credentials, reference)
    assert runs(tmp_path) == 2


def test_exec_without_expiry_is_kept_until_it_is_refused(tmp_path: Path) -> None:
    clock = Clock()
    credentials = Credentials(clock)
    reference = program(tmp_path, f"print({SECRET!r})")
    get(credentials, reference)
    clock.now_s += 1e9
    assert get(credentials, reference) == f"Bearer {SECRET}"
    assert runs(tmp_path) == 1
    credentials.refused(reference)
    get(credentials, reference)
    assert runs(tmp_path) == 2


def test_a_burst_of_sends_runs_the_program_once(tmp_path: Path) -> None:
    credentials = Credentials(Clock())
    reference = program(tmp_path, f"print({SECRET!r})")

    async def burst() -> list[str]:
        return await asyncio.gather(*(credentials.authorization(reference) for _ in range(5)))

    assert set(asyncio.run(burst())) == {f"Bearer {SECRET}"}
    assert runs(tmp_path) == 1


def test_exec_is_never_a_shell(tmp_path: Path) -> None:
    assert get(Credentials(Clock()), 'exec:["echo", "$HOME;x"]') == "Bearer $HOME;x"


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (f"print({SECRET!r}); sys.exit(3)", "ended with exit code 3"),
        (f"print({SECRET!r} * 10000)", f"more than {MAX_OUTPUT_BYTES} bytes"),
        (f'print(\'{{"token": "{SECRET}"\')', "JSON that can't be read"),
        (f'print(\'{{"other": "{SECRET}"}}\')', "printed no token"),
        (f"print('{SECRET} and more')", "a header can't carry"),
        (f"print('{SECRET}\\r\\nX-Evil: 1')", "a header can't carry"),
        (f"sys.stderr.write({SECRET!r})", "printed no token"),
    ],
)
def test_a_program_that_fails_is_named_and_its_output_is_not_repeated(tmp_path: Path, code: str, why: str) -> None:
    with pytest.raises(CredentialError, match=why) as caught:
        get(Credentials(Clock()), program(tmp_path, code))
    assert SECRET not in str(caught.value)
    assert "Evil" not in str(caught.value)


def test_a_program_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = f"sleep 60 & echo $$ $! > {pids}; echo {SECRET}; wait"
    started_s = time.monotonic()
    with pytest.raises(CredentialError, match="did not end within 1 s") as caught:
        get(Credentials(Clock(), exec_timeout_s=1.0), "exec:" + json.dumps(["/bin/sh", "-c", script]))
    assert time.monotonic() - started_s < 10
    assert SECRET not in str(caught.value)
    for pid in pids.read_text().split():
        until_s = time.monotonic() + 5
        while running(int(pid)):
            assert time.monotonic() < until_s, "the whole group ends"


def running(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (ProcessLookupError, FileNotFoundError):
        return False


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("env:NOT_THERE", "variable NOT_THERE is not set"),
        ("env:BLANKS", "a header can't carry"),
        ("file:/nowhere/token", "is no file"),
        ("file:/dev/zero", "is no file"),
        ("exec:[]", "JSON array of texts"),
        ("exec:[1]", "JSON array of texts"),
        ("exec:cat /etc/passwd", "JSON array of texts"),
        ('exec:["/nowhere/program"]', "can't be started"),
        ("s3cr3t-t0ken", "env:NAME, file:PATH or exec:"),
        ("", "env:NAME, file:PATH or exec:"),
        ("env:", "env:NAME, file:PATH or exec:"),
    ],
)
def test_a_reference_that_gives_nothing_says_what_is_wrong(reference: str, why: str) -> None:
    with pytest.raises(CredentialError, match=why) as caught:
        get(Credentials(Clock(), {"BLANKS": f"{SECRET} x"}), reference)
    assert SECRET not in str(caught.value)
    assert str(caught.value).startswith("E_CREDENTIAL: ")
