"""Tables of numbers that are larger than memory: in a file of the temporary folder, for all processes of a run."""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from federation.contract.errors import InputError
from federation.contract.randomness import digest
from federation.numerics.rows import Floats


def mapped_rows(what: Any, shape: tuple[int, int], fill: Callable[[Floats], None]) -> Floats:
    """Rows (n, d), float64, that `fill` writes to an array of zeros, read from the disk where they are used.

    The first process of this user that asks for `what`, JSON values that say which rows they are, fills the file; the
    others wait for it and share it. It lies in a folder of the temporary folder (the environment variable TMPDIR) that
    nobody else may open, and is removed when a process that asked for it ends.
    Raises `InputError` where there is no room for the file, and where the folder is somebody else's.
    """
    folder = Path(tempfile.gettempdir()) / f"federation-{os.getuid()}"
    file = folder / f"{digest(json.dumps([what, shape]), {})}.rows"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        _require_own(folder)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not file.exists():
                _make(file, shape, fill)
            found: Floats = np.memmap(file, np.float64, "r", shape=shape)
    except OSError as error:
        raise InputError(
            f"{folder} cannot be written: {error.strerror}; name another folder in the environment variable TMPDIR"
        ) from error
    atexit.register(partial(file.unlink, missing_ok=True))
    return found


def _require_own(folder: Path) -> None:
    found = folder.lstat()
    if not folder.is_dir() or folder.is_symlink() or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise InputError(
            f"{folder} is not a folder that only you may open; remove it, or name another folder in the environment "
            "variable TMPDIR"
        )


def _make(file: Path, shape: tuple[int, int], fill: Callable[[Floats], None]) -> None:
    """Write a file, there as a whole or not at all. Raises `InputError` where there is no room, and `OSError`s."""
    part, size = file.with_suffix(".part"), 8 * prod(shape)
    try:
        with part.open("wb") as opened:
            if shutil.disk_usage(file.parent).free < size:
                raise InputError(
                    f"{file.parent} has no room for the {size / 2**30:.1f} GiB of numbers in the file; name a folder "
                    "on a larger disk in the environment variable TMPDIR"
                )
            opened.truncate(size)
            if hasattr(os, "posix_fallocate"):  # else a disk that is full later would end the process
                os.posix_fallocate(opened.fileno(), 0, size)
        fill(np.memmap(part, np.float64, "r+", shape=shape))
        part.rename(file)
    finally:
        part.unlink(missing_ok=True)
