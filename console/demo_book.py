"""The demo server's own book, as the demo reads it: what the server did by its own count."""

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(slots=True)
class ServerBook:
    """Counts of one server process. `runs` is by tool, the rest by the server's task id."""

    runs: Counter[str] = field(default_factory=Counter)
    progress: dict[str, str] = field(default_factory=dict)
    polls: Counter[str] = field(default_factory=Counter)
    asker_port: dict[str, int] = field(default_factory=dict)
    """The local port of whoever polled last."""


def read_book(path: Path, run: str) -> ServerBook:
    """Read the whole book. `run`: only tool runs of this demo count, not a leftover of one that was broken off."""
    book = ServerBook()
    *lines, _unfinished = path.read_text(encoding="utf-8").split("\n")
    for line in lines:
        match json.loads(line):
            case {"event": "run", "tool": tool, "run": of} if of == run:
                book.runs[tool] += 1
            case {"event": "progress", "task_id": task_id, "message": message}:
                book.progress[task_id] = message
            case {"event": "poll", "task_id": task_id, "port": port}:
                book.polls[task_id] += 1
                book.asker_port[task_id] = port
            case _:
                pass
    return book
