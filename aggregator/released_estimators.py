"""Released estimators on disk: one npz per variant and world, readable with numpy alone.

Arrays: `epsilon` (E,); `map` (E,), the number m of each release's feature map, whose arrays are named `map_m.*`;
`array_n`, what the estimators have learned; and `description`, one JSON text with the kind, variant, class names,
columns, the steps of every feature map, one guarantee per release and, per release and noise draw, the estimator: its
name, parameters and fitted values, and the number n of each fitted array.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self
from zipfile import BadZipFile

import numpy as np

from aggregator.model_files import feature_maps, kept_once, read_feature_maps
from federation.digest import digest
from federation.errors import InputError
from federation.features import FeatureMap

Described = tuple[dict[str, Any], dict[str, np.ndarray]]


@dataclass(frozen=True, eq=False)
class ReleasedEstimators:
    """Every release of one variant in one world; a subclass says what kind of estimators they are.

    `epsilons` (E,), infinite where none was aimed at; per release the estimators of its draws, each a JSON description
    and named arrays, the feature map that rows pass before them and its guarantee.
    """

    variant: str
    classes: tuple[str, ...]
    columns: tuple[str, ...]
    text_columns: tuple[int, ...]
    epsilons: np.ndarray
    described: tuple[tuple[Described, ...], ...]
    feature_maps: tuple[FeatureMap, ...]
    guarantees: tuple[dict[str, Any], ...]

    kind: ClassVar[str]
    what: ClassVar[str]  # an estimator of this kind, in a sentence

    def draws(self, release: int) -> int:
        """Number of noise draws of a release."""
        return len(self.described[release])

    def save(self, path: Path) -> None:
        """Write the npz; equal arrays and feature maps are kept once."""
        steps, maps, contents = feature_maps(self.feature_maps)
        arrays = [array for draws in self.described for _, fitted in draws for array in fitted.values()]
        numbers, kept = kept_once([digest("", {"": array}) for array in arrays])
        contents.update({f"array_{n}": arrays[first] for n, first in enumerate(kept)})
        remaining = iter(numbers)
        releases = [
            [{**known, "arrays": {name: next(remaining) for name in fitted}} for known, fitted in draws]
            for draws in self.described
        ]
        description = {
            "kind": self.kind,
            "variant": self.variant,
            "classes": list(self.classes),
            "columns": list(self.columns),
            "text_columns": list(self.text_columns),
            "feature_maps": steps,
            "guarantees": list(self.guarantees),
            "releases": releases,
        }
        contents["map"], contents["epsilon"] = maps, self.epsilons
        contents["description"] = np.array(json.dumps(description))
        with path.open("wb") as file:
            np.savez(file, **contents)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Inverse of `save`. Raises `InputError` when the file is missing or not of this kind."""
        try:
            with np.load(path, allow_pickle=False) as stored:
                description = json.loads(str(stored["description"]))
                if description["kind"] != cls.kind:
                    raise ValueError(f"it holds {description['kind']}")
                arrays = {name: stored[name] for name in stored.files if name.startswith("array_")}
                described = tuple(
                    tuple(
                        (
                            {name: value for name, value in draw.items() if name != "arrays"},
                            {name: arrays[f"array_{number}"] for name, number in draw["arrays"].items()},
                        )
                        for draw in draws
                    )
                    for draws in description["releases"]
                )
                return cls(
                    description["variant"],
                    tuple(description["classes"]),
                    tuple(description["columns"]),
                    tuple(description["text_columns"]),
                    stored["epsilon"],
                    described,
                    read_feature_maps(description["feature_maps"], stored),
                    tuple(description["guarantees"]),
                )
        except (OSError, ValueError, KeyError, TypeError, IndexError, EOFError, BadZipFile) as error:
            raise InputError(f"{path} is not {cls.what}: {error}") from error
