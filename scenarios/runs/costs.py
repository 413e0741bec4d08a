"""Seconds and peak memory of a run, by phase."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Costs:
    """Accumulates over phases and worlds; memory is this process's peak so far, in MiB."""

    seconds: dict[str, float] = field(default_factory=dict)
    peak_mebibytes: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time spent inside to `name`."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.add(name, time.perf_counter() - started)

    def add(self, name: str, seconds: float) -> None:
        """Add seconds measured elsewhere to `name`, and note the peak memory reached."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds
        self.peak_mebibytes[name] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
