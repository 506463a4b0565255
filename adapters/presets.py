"""Declarations that many APIs share, as data files; and how a file's layers become one declaration."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from . import strict_json
from .http_api import HttpApi

PRESETS = ("azure", "idempotency-key", "ogc", "plain")
"""What a target may name."""

_ADDED_UP = frozenset({"routes", "statuses", "fields", "headers"})
"""Keys of which a later layer replaces members; of all others it replaces the whole."""


def declared(protocol: str, preset: str | None, *layers: Mapping[str, Any]) -> HttpApi:
    """One declaration: what the protocol itself says, the preset, then each layer, the last one counts.

    Raises pydantic's ValidationError where they do not fit together.
    """
    whole: dict[str, Any] = {}
    for layer in (_read(protocol), _read(preset), *layers):
        for name, value in layer.items():
            whole[name] = whole.get(name, {}) | value if name in _ADDED_UP else value
    return HttpApi.model_validate(whole)


@cache
def _read(name: str | None) -> Mapping[str, Any]:
    """A data file; nothing where there is none of that name."""
    path = files("counterfoil.adapters").joinpath("presets", f"{name}.json")
    found = strict_json.loads(path.read_bytes()) if path.is_file() else {}
    assert isinstance(found, dict)
    return found
