"""What the files of released models have in common: feature maps in plain arrays, each of them kept once."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from federation.digest import digest
from federation.errors import InputError
from federation.features import FeatureMap


def head(path: Path) -> tuple[str | None, list[float]]:
    """The kind of the models in a file, None for linear ones, and the epsilon that each release aimed at.

    Raises `InputError` for a file that is no released model.
    """
    try:
        with np.load(path, allow_pickle=False) as stored:
            return json.loads(str(stored["description"])).get("kind"), stored["epsilon"].tolist()
    except (OSError, ValueError, KeyError, AttributeError, EOFError, BadZipFile) as error:
        raise InputError(f"{path} is not a released model: {error}") from error


def kept_once(names: Sequence[Hashable]) -> tuple[list[int], list[int]]:
    """For each name the number of the distinct one that it is, and for each number the position of its first name."""
    first: dict[Hashable, int] = {}
    for position, name in enumerate(names):
        first.setdefault(name, position)
    numbers = {name: number for number, name in enumerate(first)}
    return [numbers[name] for name in names], list(first.values())


def feature_maps(maps: Sequence[FeatureMap]) -> tuple[list[str], np.ndarray, dict[str, Any]]:
    """The steps of every distinct map, the number (E,) of the map of each release, and the arrays `map_m.*`."""
    described = [feature_map.to_arrays() for feature_map in maps]
    numbers, kept = kept_once([digest(*description) for description in described])
    arrays = {
        f"map_{number}.{name}": array
        for number, first in enumerate(kept)
        for name, array in described[first][1].items()
    }
    return [described[first][0] for first in kept], np.array(numbers, dtype=np.int64), arrays


def read_feature_maps(steps: Sequence[str], stored: Any) -> tuple[FeatureMap, ...]:
    """The map of each release in an open npz; raises what a damaged file raises."""
    maps = [FeatureMap.from_arrays(text, _named(stored, f"map_{number}.")) for number, text in enumerate(steps)]
    return tuple(maps[number] for number in stored["map"])


def _named(stored: Any, prefix: str) -> dict[str, np.ndarray]:
    """The arrays whose names begin with `prefix`, without it."""
    return {name[len(prefix) :]: stored[name] for name in stored.files if name.startswith(prefix)}
