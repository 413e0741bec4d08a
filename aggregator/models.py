"""Released models on disk: one npz per variant and world, readable with numpy alone.

Arrays: `epsilon` (E,), for each release e = 0..E-1 `weights_e` (draws, C, d) and `map` (E,), the number m of its
feature map, whose arrays are named `map_m.*`; and `description`, one JSON text with the variant, class names, columns,
the steps of every feature map and one guarantee per release.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from aggregator.model_files import feature_maps, read_feature_maps
from federation.errors import InputError
from federation.features import FeatureMap


@dataclass(frozen=True, eq=False)
class ReleasedModels:
    """Every release of one variant in one world.

    `epsilons` (E,), infinite without a guarantee; per release the weights (draws, C, d) of its draws, the feature map
    that they apply to and its guarantee as a plain dict.
    """

    variant: str
    classes: tuple[str, ...]
    columns: tuple[str, ...]
    text_columns: tuple[int, ...]
    epsilons: np.ndarray
    weights: tuple[np.ndarray, ...]
    feature_maps: tuple[FeatureMap, ...]
    guarantees: tuple[dict[str, Any], ...]

    def scores(self, rows: np.ndarray, epsilon_index: int, draw: int) -> np.ndarray:
        """Class scores (n, C) of raw rows (n, columns) by one release."""
        return self.feature_maps[epsilon_index].transform(rows) @ self.weights[epsilon_index][draw].T

    def save(self, path: Path) -> None:
        """Write the npz; equal feature maps are kept once."""
        steps, maps, contents = feature_maps(self.feature_maps)
        description = {
            "variant": self.variant,
            "classes": list(self.classes),
            "columns": list(self.columns),
            "text_columns": list(self.text_columns),
            "feature_maps": steps,
            "guarantees": list(self.guarantees),
        }
        contents.update({f"weights_{number}": weights for number, weights in enumerate(self.weights)})
        contents["map"], contents["epsilon"] = maps, self.epsilons
        contents["description"] = np.array(json.dumps(description))
        with path.open("wb") as file:
            np.savez(file, **contents)

    @classmethod
    def load(cls, path: Path) -> ReleasedModels:
        """Inverse of `save`. Raises `InputError` when the file is missing or not such a model."""
        try:
            with np.load(path, allow_pickle=False) as stored:
                description = json.loads(str(stored["description"]))
                return cls(
                    description["variant"],
                    tuple(description["classes"]),
                    tuple(description["columns"]),
                    tuple(description["text_columns"]),
                    stored["epsilon"],
                    tuple(stored[f"weights_{number}"] for number in range(len(stored["epsilon"]))),
                    read_feature_maps(description["feature_maps"], stored),
                    tuple(description["guarantees"]),
                )
        except (OSError, ValueError, KeyError, TypeError, IndexError, EOFError, BadZipFile) as error:
            raise InputError(f"{path} is not a released model: {error}") from error
