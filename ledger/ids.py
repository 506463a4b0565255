"""Time-ordered identifiers for rows (RFC 9562 version 7).

The 48-bit clock only orders index pages; nothing decides by it. `source` can be set by the simulator, so that a run
can be played again.
"""

import os
import time
import uuid
from collections.abc import Callable


def _system() -> tuple[int, bytes]:
    return time.time_ns() // 1_000_000, os.urandom(10)  # noqa: TID251  the one place where ids meet a clock


source: Callable[[], tuple[int, bytes]] = _system
"""Answers (milliseconds, ten random bytes)."""


def uuid7() -> uuid.UUID:
    millis, noise = source()
    raw = bytearray(millis.to_bytes(6, "big") + noise)
    raw[6] = (raw[6] & 0x0F) | 0x70
    raw[8] = (raw[8] & 0x3F) | 0x80
    return uuid.UUID(bytes=bytes(raw))
