"""For tool owners: one run a submission key, so that a caller who lost the answer can ask again without harm.

>>> from counterfoil.server import keyed
>>> keyed(server, store="keys.sqlite3")

Opening this door needs the owner's MCP SDK and nothing of the fleet; `RedisStore` needs the `redis` package.
docs/tool-owners.md is its page.
"""

from typing import TYPE_CHECKING

from .keyed import keyed
from .sqlite_store import SqliteStore
from .store import Entry, Store, StoreError

if TYPE_CHECKING:
    from .redis_store import RedisStore

__all__ = ["Entry", "RedisStore", "SqliteStore", "Store", "StoreError", "keyed"]


def __getattr__(name: str) -> object:
    if name != "RedisStore":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .redis_store import RedisStore  # noqa: PLC0415  # not every owner has the redis package

    return RedisStore
