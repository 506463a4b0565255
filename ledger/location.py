"""Where the ledger is when nobody says so: the environment, or the development stack of this folder."""

import json
import os
from pathlib import Path

from .errors import LedgerUnavailable

DEFAULT_STATE_DIR = Path(".counterfoil")


def dev_urls(state_dir: Path) -> dict[str, str]:
    """`database_url` and `broker_url` of the development stack in `state_dir`; empty where it never ran or can't be
    read."""
    try:
        servers = json.loads((state_dir / "dev.json").read_bytes())["servers"]
    except (OSError, ValueError, LookupError, TypeError):
        return {}
    urls = {}
    for name, server in (("database_url", "postgres"), ("broker_url", "valkey")):
        record = servers.get(server) if isinstance(servers, dict) else None
        url = record.get("url") if isinstance(record, dict) else None
        if isinstance(url, str) and url:
            urls[name] = url
    return urls


def default_database_url() -> str:
    """COUNTERFOIL_DATABASE_URL, else the development stack's. Raises LedgerUnavailable (E_NO_DATABASE) when there is
    neither."""
    state_dir = Path(os.environ.get("COUNTERFOIL_STATE_DIR") or DEFAULT_STATE_DIR)
    url = os.environ.get("COUNTERFOIL_DATABASE_URL") or dev_urls(state_dir).get("database_url")
    if not url:
        raise LedgerUnavailable(
            f"no database is configured: COUNTERFOIL_DATABASE_URL is not set and {state_dir}/dev.json names none.",
            code="E_NO_DATABASE",
            next_step="Run `counterfoil dev up`, or set COUNTERFOIL_DATABASE_URL to postgresql://….",
        )
    return url
