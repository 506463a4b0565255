"""Where the data of the tests' servers lie: in memory, where there is enough of it.

A database is 300 files, and ext4 takes 0.3 to 1 ms for each while others were deleted just now: half a minute of the
kernel's time in a run. What a server does with its files is the same in both places; no test here cuts the power.
"""

import os
import shutil
import tempfile
from pathlib import Path

_MEMORY = Path("/dev/shm")  # Linux; a container's has often no more than 64 MB, and may run no programs
_NEEDED_BYTES = 4 * 2**30


def server_folder(name: str) -> Path:
    """Make a folder for a server's data, `counterfoil-NAME-…`; the caller removes it."""
    return Path(tempfile.mkdtemp(prefix=f"counterfoil-{name}-", dir=_MEMORY if _is_usable() else None))


def _is_usable() -> bool:
    return (
        os.access(_MEMORY, os.W_OK)
        and not os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC
        and shutil.disk_usage(_MEMORY).free > _NEEDED_BYTES
    )
