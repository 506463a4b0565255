"""The settings as they hold, each with where it comes from. Secrets are hidden."""

import os
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlsplit

from ..workers.settings import Settings

_PREFIX = "COUNTERFOIL_"
_HIDDEN = "***"
_NOT_SETTINGS = ("COUNTERFOIL_KEYS",)
"""Read where they are needed, and never shown."""

_OF_COMMANDS = ("COUNTERFOIL_HOOKS_FILE",)
"""What one command alone reads."""

_SECRET_PARAMETER = re.compile(r"pass|secret|token|key", re.IGNORECASE)


def rows(settings: Settings, environ: Mapping[str, str] = os.environ) -> Iterator[tuple[str, str | None, str]]:
    """(variable, value with secrets hidden, origin): `environment`, `dev stack` or `default`."""
    for name, field in Settings.model_fields.items():
        variable = f"{_PREFIX}{name.upper()}"
        value = getattr(settings, name)
        if environ.get(variable):
            origin = "environment"
        else:
            origin = "dev stack" if name in ("database_url", "broker_url") and value is not None else "default"
        yield variable, _shown(value, secret=not field.repr), origin
    for variable in _NOT_SETTINGS:
        given = environ.get(variable)
        yield variable, _HIDDEN if given else None, "environment" if given else "default"


def unknown_variables(environ: Mapping[str, str] = os.environ) -> list[tuple[str, str | None]]:
    """Variables with our prefix that no setting has, each with the nearest that there is."""
    known = [f"{_PREFIX}{name.upper()}" for name in Settings.model_fields] + [*_NOT_SETTINGS, *_OF_COMMANDS]
    unknown = sorted(name for name in environ if name.startswith(_PREFIX) and name not in known)
    return [(name, next(iter(get_close_matches(name, known, n=1)), None)) for name in unknown]


def _shown(value: object, *, secret: bool) -> str | None:
    if value is None:
        return None
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Path | str):
        return hide_password(str(value)) if secret else str(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def hide_password(url: str) -> str:
    """The URL without its password, also where that stands among the parameters."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    name, colon, _ = user.partition(":")
    netloc = f"{name}{colon}{_HIDDEN if colon else ''}{at}{host}"
    shown = [
        f"{quote(key)}={_HIDDEN if _SECRET_PARAMETER.search(key) else quote(value)}"
        for key, value in parse_qsl(parts.query, keep_blank_values=True)
    ]
    query = f"?{'&'.join(shown)}" if shown else ""
    return f"{parts.scheme}://{netloc}{parts.path}{query}"
