"""Released estimators: a file (`model_files`) with `array_n`, what they have learned.

The description says, per release and noise draw, what the estimator is: its name, parameters and fitted values, and the
number n of each fitted array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from aggregator.releases.model_files import Arrays, ReleasedFile, kept_once
from federation.contract.npz_files import NpzFile
from federation.contract.randomness import digest

Described = tuple[dict[str, Any], dict[str, np.ndarray]]


class ReleasedEstimators(ReleasedFile[tuple[Described, ...]]):
    """Estimators, each a JSON description and named arrays; the release of each epsilon is those of its draws."""

    kind: ClassVar[str]

    @classmethod
    def gathered(cls, models: Sequence[Any]) -> tuple[Described, ...]:
        """From the description and arrays of each draw."""
        return tuple(models)

    def _packed(self) -> tuple[Arrays, dict[str, Any]]:
        """Equal arrays are kept once."""
        arrays = [array for draws in self.releases for _, fitted in draws for array in fitted.values()]
        numbers, kept = kept_once([digest("", {"": array}) for array in arrays])
        remaining = iter(numbers)
        releases = [
            [{**known, "arrays": {name: next(remaining) for name in fitted}} for known, fitted in draws]
            for draws in self.releases
        ]
        return {f"array_{n}": arrays[first] for n, first in enumerate(kept)}, {"releases": releases}

    @classmethod
    def _unpacked(cls, description: dict[str, Any], stored: NpzFile) -> tuple[tuple[Described, ...], ...]:
        arrays = {name: stored[name] for name in stored if name.startswith("array_")}
        for name, array in arrays.items():
            if array.dtype.kind not in "biuf":
                raise ValueError(f"its array {name} must hold numbers, got {array.dtype}")

        def described(draw: dict[str, Any]) -> Described:
            known = {name: value for name, value in draw.items() if name != "arrays"}
            return known, {name: arrays[f"array_{number}"] for name, number in draw["arrays"].items()}

        return tuple(tuple(map(described, draws)) for draws in description["releases"])
