"""What can be wrong with a tool's declaration once its parts are put together: keys its protocol has no use for, and
lookups that could find nothing."""

from collections.abc import Collection, Iterator

from ..adapters.http_api import HttpApi
from ..adapters.profile import Profile
from .target_entries import API_KEYS, LookupEntry

Fault = tuple[str, str]
"""The key, and what is wrong with it."""


def faults(
    profile: Profile, api: HttpApi | None, lookup: LookupEntry | None, written: Collection[str]
) -> Iterator[Fault]:
    """`written`: the keys that stand at the tool or its target. A key without a use would be a silent wish."""
    for key in sorted(API_KEYS - profile.declares):
        if key in written:
            yield key, f"is not for {profile.protocol}."
    if api is not None:
        yield from (("routes", fault) for fault in _of_routes(api))
    if lookup is not None:
        yield from (("lookup", fault) for fault in _of_lookup(profile, api, lookup))


def _of_routes(api: HttpApi) -> Iterator[str]:
    routes = api.routes
    if routes.status is None and (routes.result, routes.cancel, routes.lookup) != (None, None, None):
        yield "needs `status` beside `result`, `cancel` or `lookup`: its id names the work."
    if routes.lookup is not None and not api.carries_key:
        yield "has a lookup, which finds nothing unless the submission key travels: declare `key`."


def _of_lookup(profile: Profile, api: HttpApi | None, lookup: LookupEntry) -> Iterator[str]:
    if api is None:
        if lookup.tool is None and not lookup.replay:
            yield "names one way: `tool: NAME`, or `replay: true`."
    elif lookup.tool is not None:
        yield f"can't name a tool: {profile.protocol} has none. Declare `routes.lookup`, or `replay: true`."
    elif lookup.replay and api.routes.lookup is not None:
        yield "names one way: `replay: true`, or `routes.lookup`."
    elif not lookup.replay and api.routes.lookup is None:
        yield "needs a way: `routes.lookup`, or `replay: true`."
    elif lookup.replay and not api.carries_key:
        yield "finds nothing unless the submission key travels: declare `key`."
