"""Memory of large arrays, kept for the next one."""

from __future__ import annotations

from functools import cache

import numpy as np

_LARGEST = (32 << 20) - (64 << 10)  # just below what glibc takes into account


@cache
def keep_freed_memory() -> None:
    """Let this process reuse the memory of arrays up to 32 MiB that it has freed, up to twice as much at a time.

    By default glibc returns large freed blocks to the system at once, and fetching their pages again can cost several
    times what is done with the votes in them. It raises its thresholds to the largest block that it has seen freed
    (mallopt(3), "dynamic mmap threshold"): this frees one that was never touched. Elsewhere it does nothing.
    """
    np.empty(_LARGEST, dtype=np.uint8)
