"""What a part of the benchmark is, and what it is asked."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.defaults.jobs import Job
from benchmarks.defaults.records import Record
from benchmarks.defaults.sets import Prepared, Readers


@dataclass(frozen=True)
class Asked:
    """What the command line asks for; `folder` says that the sets are those of a folder."""

    splits: int
    draws: int
    quick: bool
    folder: bool


@dataclass(frozen=True)
class Bar:
    """A figure of the default that must be reached."""

    what: str
    value: float
    least: float = -math.inf
    most: float = math.inf

    def __str__(self) -> str:
        limit = f"at least {self.least:g}" if self.least > -math.inf else f"at most {self.most:g}"
        return f"{self.what}: {self.value:.3f}, {limit}: {'met' if self.met else 'MISSED'}"

    @property
    def met(self) -> bool:
        """Whether it is reached."""
        return self.least <= self.value <= self.most


@dataclass(frozen=True)
class Part:
    """Sets that are shipped, which sets of a folder suit as well, its jobs, and how their records are shown.

    `rows` are the most of a set, `quick_rows` with --quick, `grouped` leaves out rare groups.
    """

    sets: Readers
    quick_sets: tuple[str, ...]
    wanted: Callable[[Prepared], bool]
    jobs: Callable[[Sequence[Prepared], Asked], list[Job]]
    show: Callable[[Iterable[Record], Asked], list[Bar]]
    rows: int = 12_000
    quick_rows: int = 4_000
    grouped: bool = False


def said(value: float) -> str:
    """A share with three decimals and no zero before them, - for what was not measured."""
    if math.isnan(value):
        return "  - "
    return f"{value:.3f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.2f}"
