"""What the repository says about itself: it stands alone, names no package host, and its lists are true."""

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILE_LINES_MAX = 450

# Written so that this file doesn't find itself.
PACKAGE_HOSTS = re.compile(
    r"(pypi|pythonhosted|npmjs|anaconda|conda)[.](org|com)|ghcr[.]io|/simple[/]|index-url *[=:]|registry *[=:] *.?http"
)
MACHINE_PATHS = re.compile(r"(?<![\w.~-])/(work|home|Users|root)[/][\w.]")


def tracked() -> list[Path]:
    """Return the files of the repository, also those that are not yet committed."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return sorted({ROOT / name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()})


def texts() -> Iterator[tuple[str, str]]:
    for path in tracked():
        content = path.read_bytes()
        if b"\0" not in content:
            yield str(path.relative_to(ROOT)), content.decode(errors="replace")


def lines_matching(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{name}:{number}: {line.strip()[:100]}"
        for name, text in texts()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_file_names_a_package_host() -> None:
    assert lines_matching(PACKAGE_HOSTS) == []


def test_no_file_names_a_folder_of_one_machine() -> None:
    assert lines_matching(MACHINE_PATHS) == []


def test_no_relative_path_leaves_the_repository() -> None:
    found = [
        f"{name}:{number}: {line.strip()[:100]}"
        for name, text in texts()
        for number, line in enumerate(text.splitlines(), 1)
        for match in re.finditer(r"(?<![\w./])((?:[.][.]/)+)", line)
        if match[1].count("/") >= len(Path(name).parts)
    ]
    assert found == []


def test_no_link_leaves_the_repository() -> None:
    links = [path for path in tracked() if path.is_symlink()]
    assert [str(path) for path in links if not path.resolve().is_relative_to(ROOT)] == []


def test_every_python_file_is_still_one_noun() -> None:
    counts = {name: len(text.splitlines()) for name, text in texts() if name.endswith(".py")}
    assert {name: count for name, count in counts.items() if count >= FILE_LINES_MAX} == {}


def test_the_lock_is_exact_hashed_and_names_no_place() -> None:
    text = (ROOT / "requirements.lock").read_text()
    assert not re.search(r"://|@ |file:", text)
    blocks = re.split(r"\n(?=\S)", text.partition("\n")[2].strip())
    assert [
        block for block in blocks if not re.match(r"[\w.\[\]-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", block, re.DOTALL)
    ] == []


def test_the_lock_holds_everything_that_pyproject_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = project["project"]["dependencies"] + project["dependency-groups"]["build"]
    for extra in project["project"]["optional-dependencies"].values():
        wanted += extra
    names = {re.match(r"[\w.-]+", requirement)[0] for requirement in wanted}  # type: ignore[index]
    locked = {
        normal(name) for name in re.findall(r"^([\w.-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    }
    assert {normal(name) for name in names} - locked == {"counterfoil"}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_package_list_equals_the_folders() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = {
        ".".join(("counterfoil", *path.parent.relative_to(ROOT).parts))
        for path in tracked()
        if path.name == "__init__.py" and "tests" not in path.parts
    }
    assert listed == sorted(listed)
    assert set(listed) == folders


def test_the_root_holds_only_the_front_door_and_the_schedule() -> None:
    """With package-dir every *.py in the root would ship as a module of the package."""
    modules = {path.name for path in tracked() if path.parent == ROOT and path.suffix == ".py"}
    assert modules <= {"__init__.py", "__main__.py", "beat_schedule.py"}


def test_every_data_file_of_a_package_ships() -> None:
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    shipped = {
        path
        for package, patterns in setuptools["package-data"].items()
        for pattern in patterns
        for path in ROOT.joinpath(*package.split(".")[1:]).glob(pattern)
    }
    code = {ROOT.joinpath(*package.split(".")[1:]) for package in setuptools["packages"]} - {ROOT}
    data = {p for p in tracked() if p.suffix != ".py" and any(p.is_relative_to(folder) for folder in code)}
    assert {str(path.relative_to(ROOT)) for path in data - shipped} == set()


@pytest.mark.parametrize("name", ["README.md", "LICENSE", "CHANGELOG.md", "docs/spec.md"])
def test_what_every_reader_looks_for_is_there(name: str) -> None:
    assert (ROOT / name).read_text().strip()
