"""Transcripts: one long-running call each, told from the server's side (`longop-transcript.v1`).

A file is read strictly and checked against the schema before anything runs; every problem of every file is told at
once, with its place.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Self

from ..adapters import strict_json
from ..adapters.strict_json import BadJson
from ..ledger.errors import InputRefused
from ..workers import schemas
from ..workers.schemas import Problem

SCHEMA = "longop-transcript.v1.json"
MAX_FILE_BYTES = 4 * 1024 * 1024
MAX_PROBLEMS = 20

_STEP = re.compile(r"/steps/([0-9]+)(/.*)?")
_EITHER = "a step has either `respond` or `drop`."
_NEEDS = {
    "answer_input": ("round", "content"),
    "worker_crash": ("when", "point"),
    "redeliver": ("what",),
    "advance_clock": ("ms",),
    "notify": ("json",),
}
"""What an actor can't do without, which the schema leaves open."""


class TranscriptRefused(InputRefused):
    """A file is not there, is no JSON, or is no transcript. The text names each fault and its place."""

    code = "E_TRANSCRIPT_INVALID"


@dataclass(frozen=True, slots=True)
class When:
    """The trigger of an actor: the `count`-th time that the server step `after` was asked (`at_start`) or answered."""

    after: str
    count: int
    at_start: bool


@dataclass(frozen=True, slots=True)
class ServerStep:
    """One answer of the server, or its silence (`drop`). `times` None: no end."""

    id: str
    on: str
    times: int | None
    match: Mapping[str, Any]
    creates: bool
    delay_ms: int
    respond: Mapping[str, Any]
    drop: str | None

    @classmethod
    def of(cls, step: Mapping[str, Any]) -> Self:
        times = step.get("times", 1)
        return cls(
            step["id"],
            step["on"],
            None if times == "*" else times,
            step.get("match", {}),
            step.get("creates", False),
            step.get("delay_ms", 0),
            step.get("respond", {}),
            step.get("drop"),
        )


@dataclass(frozen=True, slots=True)
class ActorStep:
    """What somebody else does. Without `when`: right after the call was handed in."""

    do: str
    when: When | None
    facts: Mapping[str, Any]

    @classmethod
    def of(cls, step: Mapping[str, Any]) -> Self:
        told = step.get("when")
        when = None if told is None else When(told["after"], told.get("count", 1), told.get("at") == "start")
        return cls(step["do"], when, step)


@dataclass(frozen=True, slots=True)
class Transcript:
    """One case. `tool`, `policy` and `expected` as the schema has them."""

    id: str
    title: str
    protocol: str
    tool: Mapping[str, Any]
    policy: Mapping[str, Any]
    server: tuple[ServerStep, ...]
    actors: tuple[ActorStep, ...]
    expected: Mapping[str, Any]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """A document that has no problems."""
        steps = document["steps"]
        return cls(
            document["id"],
            document["title"],
            document["protocol"],
            document["tool"],
            document["policy"],
            tuple(ServerStep.of(step) for step in steps if "do" not in step),
            tuple(ActorStep.of(step) for step in steps if "do" in step),
            document["expected"],
        )


def load(paths: Iterable[Path]) -> list[Transcript]:
    """Read transcripts; a folder stands for its `C*.json`. In order of the cases' numbers.

    Raises TranscriptRefused (E_TRANSCRIPT_INVALID), with at most 20 problems of all files together.
    """
    documents, faults = [], list[str]()
    for path in _files(paths):
        try:
            document = _read(path)
        except BadJson as error:
            faults.append(f"{path}: {error}")
            continue
        problems = [f"{path}: {problem.path or '/'} {problem.message}" for problem in find_problems(document)]
        faults += problems
        if not problems:
            documents.append(document)
    if faults:
        listed = "\n  ".join(faults[:MAX_PROBLEMS])
        more = f"\n  and {len(faults) - MAX_PROBLEMS} more" if len(faults) > MAX_PROBLEMS else ""
        raise TranscriptRefused(
            f"not every file is a {SCHEMA.removesuffix('.json')}:\n  {listed}{more}",
            next_step="Correct them; nothing was played.",
        )
    return sorted((Transcript.of(document) for document in documents), key=lambda one: int(one.id[1:]))


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(path.glob("C*.json"))
        else:
            yield path


def _read(path: Path) -> Any:
    """Raises BadJson, also for a file that can't be read."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise BadJson(f"{error.strerror}") from None
    if len(data) > MAX_FILE_BYTES:
        raise BadJson(f"larger than {MAX_FILE_BYTES} bytes")
    return strict_json.loads(data)


@cache
def _schema(part: str | None = None) -> bytes:
    """The schema, or one definition of it as a schema of its own."""
    whole = files("counterfoil.console").joinpath("data", SCHEMA).read_bytes()
    if part is None:
        return whole
    document: Any = strict_json.loads(whole)
    return strict_json.dumps({"$defs": document["$defs"], "$ref": f"#/$defs/{part}"})


def find_problems(document: Any) -> list[Problem]:
    """Every way in which a document is no transcript; an empty list means that it can be played."""
    problems = list[Problem]()
    for problem in schemas.check(_schema(), document):
        at = _STEP.fullmatch(problem.path)
        # "Fits neither kind of step" helps nobody: a step that says `do` is an actor's, any other the server's.
        problems += [problem] if at is None else _step_problems(at[1], document["steps"][int(at[1])])
    return list(dict.fromkeys(problems)) or _loose_ends(document["steps"])


def _step_problems(index: str, step: Any) -> list[Problem]:
    part = "actor" if isinstance(step, dict) and "do" in step else "server"
    return [
        # The one choice that a server's step has, in words.
        Problem(f"/steps/{index}{one.path}", _EITHER if "'oneOf'" in one.message and not one.path else one.message)
        for one in schemas.check(_schema(part), step)
        if isinstance(step, dict) or "'oneOf'" not in one.message
    ]


def _loose_ends(steps: Sequence[Mapping[str, Any]]) -> list[Problem]:
    """What holds between steps, which a schema can't say."""
    names = [step["id"] for step in steps if "do" not in step]
    problems = [Problem("/steps", f"the id {name} stands twice.") for name in names if names.count(name) > 1]
    for index, step in enumerate(steps):
        missing = [name for name in _NEEDS.get(step.get("do", ""), ()) if name not in step]
        problems += [Problem(f"/steps/{index}", f"{step['do']} needs {name}.") for name in missing]
        if step.get("do") == "answer_input" and not _is_reply(step.get("content", {"action": ""})):
            problems.append(Problem(f"/steps/{index}/content", "is no reply: it needs an action."))
        after = step.get("when", {}).get("after")
        if after is not None and after not in names:
            problems.append(Problem(f"/steps/{index}/when/after", f"there is no server step {after}."))
    return list(dict.fromkeys(problems))


def _is_reply(content: Any) -> bool:
    return isinstance(content, dict) and isinstance(content.get("action"), str)
