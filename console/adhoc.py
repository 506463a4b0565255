"""A server that stands in no targets file: given on the command line, and negotiated with in the foreground."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias
from urllib.parse import urlsplit

from pydantic import ValidationError

from ..adapters import registry
from ..ledger.errors import InputRefused
from ..workers.target_entries import TargetEntry
from ..workers.targets import Target
from .probe import Probe, probe

Entry: TypeAlias = Mapping[str, object]
"""A target's lines, as the targets file would hold them."""


def entry_of(url: str, **given: object) -> Entry:
    """The lines for what was given; what is None or False stands in no file."""
    return {"url": url, **{name: value for name, value in given.items() if value not in (None, False)}}


def target_of(name: str, entry: Entry) -> Target:
    """Raises InputRefused (E_TARGETS) for what a targets file could not hold either."""
    try:
        checked = TargetEntry.model_validate(dict(entry))
    except ValidationError as error:
        faults = error.errors(include_input=False, include_url=False)
        words = [f"{'.'.join(map(str, f['loc']))}: {f['msg'].removeprefix('Value error, ')}" for f in faults]
        raise InputRefused("; ".join(words).rstrip(".") + ".", code="E_TARGETS") from None
    return Target(name, registry.adapter(checked.protocol).profile, checked)


def pin(entry: Entry, protocol: str) -> dict[str, object]:
    """The same lines with the protocol, after the URL."""
    return {"url": entry["url"], "protocol": protocol, **{k: v for k, v in entry.items() if k != "url"}}


def negotiate(entry: Entry, protocol: str | None, tool: str | None) -> Probe:
    """Try every protocol that can be recognised, or the one that is named. Raises InputRefused (E_TARGETS)."""
    tried = registry.RECOGNISED if protocol is None else ((protocol,),)
    families = [[target_of("", pin(entry, each)) for each in family] for family in tried]
    name = urlsplit(families[0][0].endpoint().url).netloc
    return asyncio.run(probe([[replace(target, name=name) for target in family] for family in families], tool))
