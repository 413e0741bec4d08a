"""What releases are for, and by which measure they are compared."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Metric:
    """A metric by which variants are compared: `name` in results.csv, `several` of them in a sentence.

    `label` is its name in words, as on the axis of a figure; `bounds` the least and the largest value it can have.
    """

    name: str
    several: str
    higher_is_better: bool
    label: str
    bounds: tuple[float, float] = (-math.inf, math.inf)

    @property
    def mean(self) -> str:
        """The mean over releases, in a sentence."""
        return f"mean {self.label.removeprefix('mean ')}"

    def better(self, value: float, other: float) -> bool:
        """Whether a value is better than another."""
        return value > other if self.higher_is_better else value < other


@dataclass(frozen=True)
class Task:
    """A task of protocols, installed under its name by an entry point `federation.tasks`.

    labels: class names, or real numbers with a declared range.
    metric: by which variants are compared.
    scoring: `module:attribute` of what scores releases on rows that neither app sees (`scenarios.scores.scoring`).
    baselines: the NON-PRIVATE references that have a meaning for it.
    targets: its releases are scored on sets of unlabelled rows.
    """

    name: str
    labels: Literal["classes", "real"]
    metric: Metric
    scoring: str
    baselines: frozenset[str] = field(default_factory=lambda: frozenset({"pooled"}))
    targets: bool = False
