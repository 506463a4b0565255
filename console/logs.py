"""How long-running processes log: on stderr, as text or as one JSON object a line, secrets taken out.

Nothing here is meant to log a secret. Libraries' texts and tracebacks may hold one all the same (a URL with a password,
a header), so what looks like one, and every secret that this process was given by environment, is taken out of the
finished line: after formatting, since a traceback is formatted late.
"""

import json
import logging
import os
import re
import time
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from ..workers.settings import Settings

HIDDEN = "***"
MIN_SECRET_CHARS = 6
"""A shorter value would hide half of every line."""

_SHAPES = (
    (re.compile(r"(?<=://)[^\s/@'\"]+@"), f"{HIDDEN}@"),
    (re.compile(r"(?i)\b(bearer|basic)(\s+)[\w.~+/=-]{4,}"), rf"\1\2{HIDDEN}"),
    (re.compile(r"\bwhsec_[\w+/=-]+"), HIDDEN),
    (
        re.compile(r"(?i)([\"']?(?:password|passwd|secret|token|api[_-]?key|authorization)[\"']?\s*[=:]\s*)[^\s,;)}]+"),
        rf"\1{HIDDEN}",
    ),
)
_SECRET_NAMES = re.compile(r"(?i)(secret|token|passw|credential|api_?key|_keys?$)(?!.*_(file|path|dir|uri|url)$)")
_CODE = re.compile(r"\bE_[A-Z][A-Z_]+\b")
# What they say once a second, or once a request with its URL, is no news.
_TOO_CHATTY = ("celery.app.trace", "celery.beat", "celery.worker.strategy", "httpx", "httpcore", "uvicorn")


def log_to_stderr(settings: Settings) -> None:
    """One format for everything in this process and its children."""
    handler = logging.StreamHandler()
    hide = Hider(os.environ, (settings.database_url, settings.broker_url))
    handler.setFormatter(JsonLines(hide) if settings.log_format == "json" else TextLines(hide))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    for name in _TOO_CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)


class Hider:
    """Takes secrets out of a line: `environ`'s by the names of its variables, the passwords in `urls`, and what looks
    like one."""

    def __init__(self, environ: Mapping[str, str], urls: tuple[str | None, ...] = ()) -> None:
        known = {value for name, value in environ.items() if _SECRET_NAMES.search(name)}
        known |= {part.strip() for value in known for part in value.split(",")}
        for url in filter(None, urls):
            password = urlsplit(url).password
            known |= {password, unquote(password)} if password else set()
        # The longest first: a secret that contains another must not leave a rest.
        self._known = sorted((one for one in known if len(one) >= MIN_SECRET_CHARS), key=len, reverse=True)

    def __call__(self, text: str) -> str:
        for secret in self._known:
            text = text.replace(secret, HIDDEN)
        for shape, instead in _SHAPES:
            text = shape.sub(instead, text)
        return text


class TextLines(logging.Formatter):
    """For people. Whatever a message holds, it is one line: nobody else writes lines into our log."""

    def __init__(self, hide: Hider) -> None:
        super().__init__("%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s")
        self._hide = hide

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  the library's name
        return super().formatMessage(record).replace("\r", "\\r").replace("\n", "\\n")

    def format(self, record: logging.LogRecord) -> str:
        return self._hide(super().format(record))


class JsonLines(logging.Formatter):
    """For collectors: `at` (UTC), `level`, `logger`, `process`, `message`, and where there are: `code` (the first E_…
    code of the message), `error` (its type) and `traceback`. Whatever else somebody attaches stays inside."""

    def __init__(self, hide: Hider) -> None:
        super().__init__()
        self._hide = hide
        self.converter = time.gmtime  # machines of one fleet must agree

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        line: dict[str, object] = {
            "at": f"{self.formatTime(record, '%Y-%m-%dT%H:%M:%S')}.{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "process": record.process,
            "message": self._hide(message),
        }
        if code := _CODE.search(message):
            line["code"] = code[0]
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
            line["traceback"] = self._hide(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=True)
