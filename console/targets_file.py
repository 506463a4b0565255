"""Writing the targets file: one target more, everything else as it was, comments included."""

import fcntl
import io
import os
import re
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from ..ledger.errors import InputRefused
from ..workers.targets import NAME, load_targets


def suggested_name(url: str) -> str:
    """A target's name out of its URL: the host's first label where that is a word."""
    label = (urlsplit(url).hostname or "").partition(".")[0]
    return label if label[:1].isalpha() and label != "localhost" else "my-server"


def snippet(name: str, entry: Mapping[str, object]) -> str:
    """The YAML of a targets file with this one target."""
    return _dump(YAML(), {"targets": {name: dict(entry)}})


def require_free(path: Path, name: str) -> None:
    """Raises InputRefused for a name that is none (E_TARGET_INVALID) or taken (E_TARGET_EXISTS), TargetsError for a
    file that has faults already."""
    if not re.fullmatch(NAME, name):
        raise InputRefused(
            f"{name[:64]!r} can't name a target: letters, digits, '.', '_' and '-', 63 at most.",
            code="E_TARGET_INVALID",
        )
    if not path.parent.is_dir():
        raise InputRefused(
            f"there is no folder {path.parent}.", code="E_TARGETS", next_step="Make it, or name another."
        )
    if _has_content(path) and name in load_targets(path):
        raise InputRefused(
            f"{path} has a target {name!r} already.",
            code="E_TARGET_EXISTS",
            next_step="Choose another name, or edit it there.",
        )


def add_target(path: Path, name: str, entry: Mapping[str, object]) -> None:
    """Write one target more. The file is replaced whole or not at all; two at once both get in.

    Raises as `require_free`, and OSError.
    """
    path = path.resolve()  # a link stays one
    with _alone_in(path.parent):
        require_free(path, name)
        old = path.read_text(encoding="utf-8") if _has_content(path) else None
        _replace(path, snippet(name, entry) if old is None else _with_target(old, name, entry))


def _has_content(path: Path) -> bool:
    """Not where there is no file yet, or an empty one."""
    return path.exists() and not (path.is_file() and path.stat().st_size == 0)


def _with_target(text: str, name: str, entry: Mapping[str, object]) -> str:
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 4096  # long lines stay as they are
    yaml.explicit_start = text.startswith("---")
    document = yaml.load(text)
    targets = document["targets"]
    yaml.map_indent = targets.lc.data[next(iter(targets))][1] - document.lc.data["targets"][1]
    targets[name] = CommentedMap(entry)
    return _dump(yaml, document)


def _dump(yaml: YAML, document: Mapping[str, object]) -> str:
    buffer = io.StringIO()
    yaml.dump(document, buffer)
    return buffer.getvalue()


def _replace(path: Path, text: str) -> None:
    """Only what loads as a targets file takes the old one's place, in one step, with its mode."""
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o644
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    new = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.chmod(mode)
        load_targets(new)
        new.replace(path)
    finally:
        with suppress(FileNotFoundError):
            new.unlink()


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Between reading and replacing nobody else of us does: the other's target would be lost."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
