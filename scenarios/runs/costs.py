"""What runs cost: seconds and memory by phase."""

from __future__ import annotations

import logging
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

_log = logging.getLogger(__name__)
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes in which the peak memory of a process is told


@dataclass
class Costs:
    """Accumulates over phases and worlds; memory is this process's peak so far, in MiB."""

    clock = staticmethod(time.perf_counter)

    seconds: dict[str, float] = field(default_factory=dict)
    peak_mebibytes: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time spent inside to `name`."""
        started = self.clock()
        try:
            yield
        finally:
            self.add(name, self.clock() - started)

    def add(self, name: str, seconds: float) -> None:
        """Add seconds measured elsewhere to `name`, and note the peak memory reached."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds
        self.peak_mebibytes[name] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RSS_UNIT / 2**20
        _log.info("phase %s: %.2f s, peak memory %.0f MiB", name, seconds, self.peak_mebibytes[name])
