"""Released models on disk: one npz per variant and world, readable with numpy alone.

Arrays: `weights` (E, draws, C, d), `epsilon` (E,), the feature map's arrays as `map.*`, and `description`, one JSON
text with the variant, class names, columns, feature map steps and one guarantee per epsilon.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from federation.errors import InputError
from federation.features import FeatureMap


@dataclass(frozen=True, eq=False)
class ReleasedModels:
    """Every release of one variant in one world. `guarantees` has one plain dict per epsilon."""

    variant: str
    classes: tuple[str, ...]
    columns: tuple[str, ...]
    text_columns: tuple[int, ...]
    feature_map: FeatureMap
    epsilons: np.ndarray
    weights: np.ndarray
    guarantees: tuple[dict[str, Any], ...]

    def scores(self, rows: np.ndarray, epsilon_index: int, draw: int) -> np.ndarray:
        """Class scores (n, C) of raw rows (n, columns) by one release."""
        return self.feature_map.transform(rows) @ self.weights[epsilon_index, draw].T

    def save(self, path: Path) -> None:
        """Write the npz."""
        steps, arrays = self.feature_map.to_arrays()
        description = {
            "variant": self.variant,
            "classes": list(self.classes),
            "columns": list(self.columns),
            "text_columns": list(self.text_columns),
            "feature_map": steps,
            "guarantees": list(self.guarantees),
        }
        contents: dict[str, Any] = {f"map.{name}": array for name, array in arrays.items()}
        contents.update(weights=self.weights, epsilon=self.epsilons, description=np.array(json.dumps(description)))
        with path.open("wb") as file:
            np.savez(file, **contents)

    @classmethod
    def load(cls, path: Path) -> ReleasedModels:
        """Inverse of `save`. Raises `InputError` when the file is missing or not such a model."""
        try:
            with np.load(path, allow_pickle=False) as stored:
                description = json.loads(str(stored["description"]))
                arrays = {name[4:]: stored[name] for name in stored.files if name.startswith("map.")}
                return cls(
                    description["variant"],
                    tuple(description["classes"]),
                    tuple(description["columns"]),
                    tuple(description["text_columns"]),
                    FeatureMap.from_arrays(description["feature_map"], arrays),
                    stored["epsilon"],
                    stored["weights"],
                    tuple(description["guarantees"]),
                )
        except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile) as error:
            raise InputError(f"{path} is not a released model: {error}") from error
