"""The common format of files of released models: one npz per variant and trial, readable with numpy alone.

Arrays:

- `epsilon` (E,), for each release e = 0..E-1.
- `map` (E,), the number m of the feature map of each release. The arrays of this map are named `map_m.*`.
- `description`, one JSON text: the variant, class names, columns, the steps of every feature map, and one guarantee per
  release. It also names the kind of the models, unless they are linear.

Each kind adds arrays of its own.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar

import numpy as np

from federation.contract.errors import InputError
from federation.contract.npz_files import DAMAGED, NpzFile
from federation.contract.query import whole
from federation.contract.randomness import digest
from federation.features.feature_map import FeatureMap

Release = TypeVar("Release", bound=Sized)  # of one epsilon: an entry for each noise draw
Arrays = dict[str, np.ndarray]
LINEAR = "linear"  # the kind that files do not name

_REMEDY = "restore it, or run its scenario again"


@dataclass(frozen=True, eq=False)
class ReleasedFile(ABC, Generic[Release]):
    """Every release of one variant in one world; a subclass says what kind of models they are.

    `epsilons` (E,), infinite where none was aimed at; per release the models of all its noise draws, the feature map
    that rows pass before them and its guarantee as a plain dict. `proper_loss` names the loss for which the models'
    scores stand for probabilities (`aggregator.contract.protocol.Protocol.proper_loss`), if there is one.
    """

    variant: str
    classes: tuple[str, ...]
    columns: tuple[str, ...]
    text_columns: tuple[int, ...]
    epsilons: np.ndarray
    releases: tuple[Release, ...]
    feature_maps: tuple[FeatureMap, ...]
    guarantees: tuple[dict[str, Any], ...]
    proper_loss: str | None = None

    kind: ClassVar[str | None]  # in the file; None for linear models
    what: ClassVar[str]  # a model of this kind, in a sentence
    predicts: ClassVar[Literal["classes", "numbers", "ratios"]]  # of every row, or of a set of rows

    def draws(self, release: int) -> int:
        """Number of noise draws of a release."""
        return len(self.releases[release])

    def save(self, path: Path) -> None:
        """Write the npz; equal feature maps are kept once."""
        steps, numbers, maps = _feature_maps(self.feature_maps)
        own, further = self._packed()
        description = {
            **({} if self.kind is None else {"kind": self.kind}),
            "variant": self.variant,
            "classes": list(self.classes),
            "columns": list(self.columns),
            "text_columns": list(self.text_columns),
            "feature_maps": steps,
            "guarantees": list(self.guarantees),
            **({} if self.proper_loss is None else {"proper_loss": self.proper_loss}),
            **further,
        }
        contents: dict[str, Any] = {**maps, **own, "map": numbers, "epsilon": self.epsilons}
        with path.open("wb") as file:
            np.savez(file, **contents, description=np.array(json.dumps(description)))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Inverse of `save`. Raises `InputError` when the file is missing or not of this kind."""
        with reading(path, cls.what):
            stored = NpzFile(path, _REMEDY)
            description = _described(stored)
            found = description.get("kind")
            if found != cls.kind:
                raise ValueError(f"it holds {found or 'linear models'}")
            names = ("classes", "columns", "text_columns", "guarantees")
            classes, columns, text_columns, guarantees = (_listed(description, name) for name in names)
            models = cls(
                description["variant"],
                classes,
                columns,
                text_columns,
                stored["epsilon"],
                cls._unpacked(description, stored),
                _read_feature_maps(description["feature_maps"], stored),
                guarantees,
                description.get("proper_loss"),
            )
            models._require_whole()
        return models

    def _require_whole(self) -> None:
        """Refuse parts of a file that do not belong together. Raises `InputError`."""
        texts, releases = (self.variant, *self.classes, *self.columns), len(self.releases)
        if not all(isinstance(text, str) for text in texts) or not self.columns:
            raise InputError("its variant, classes and columns must be texts, and there must be a column")
        for column in self.text_columns:
            whole("text_columns", column, 0, len(self.columns) - 1)
        if not releases == len(self.epsilons) == len(self.feature_maps) == len(self.guarantees) > 0:
            raise InputError("it must have an epsilon, a feature map and a guarantee for each release")
        if self.epsilons.dtype.kind != "f" or self.epsilons.ndim != 1 or not (self.epsilons > 0).all():
            raise InputError("epsilon must hold a number above 0 for each release")
        if not all(isinstance(guarantee, dict) for guarantee in self.guarantees):
            raise InputError("guarantees must be objects")
        if any(feature_map.columns != len(self.columns) for feature_map in self.feature_maps):
            raise InputError(f"every feature map must take its {len(self.columns)} columns")
        if not all(self.draws(release) for release in range(releases)):
            raise InputError("every release must have a noise draw")

    @abstractmethod
    def predicted(self, release: int, draw: int, rows: np.ndarray) -> np.ndarray:
        """What one model says of raw rows (n, columns): class codes or numbers (n,), or class ratios (C,) of them all.

        Raises `InputError` for a damaged file.
        """

    def decided(self, release: int, draw: int, rows: np.ndarray) -> np.ndarray | None:
        """What decides between the classes of raw rows (n, columns): (n,), of the second of two, or else (n, C).

        None for models that have no such numbers.
        """
        return None

    def probabilities(self, release: int, draw: int, rows: np.ndarray) -> np.ndarray | None:
        """Probabilities (n, C) of the classes of raw rows; None for models that were not learned to tell them."""
        return None

    def intervals(self, release: int, draw: int, rows: np.ndarray, level: float) -> np.ndarray | None:
        """Intervals (C, 2) of ratios that cover with probability `level`; None where too little is known of errors."""
        return None

    @classmethod
    @abstractmethod
    def gathered(cls, models: Sequence[Any]) -> Release:
        """The release of one epsilon from the models of its noise draws."""

    @abstractmethod
    def _packed(self) -> tuple[Arrays, dict[str, Any]]:
        """The releases as arrays, and what the description says of them."""

    @classmethod
    @abstractmethod
    def _unpacked(cls, description: dict[str, Any], stored: NpzFile) -> tuple[Release, ...]:
        """Inverse of `_packed`, from an open npz; raises what a damaged file raises."""


def head(path: Path) -> tuple[str, list[float]]:
    """The kind of the models in a file, as its entry point is called, and the epsilon that each release aimed at.

    Raises `InputError` for a file that is no released model.
    """
    with reading(path, "a released model"):
        stored = NpzFile(path, _REMEDY)
        kind, epsilons = _described(stored).get("kind") or LINEAR, stored["epsilon"]
        if not isinstance(kind, str) or epsilons.dtype.kind != "f" or epsilons.ndim != 1:
            raise ValueError("its kind must be a text, and epsilon an array of numbers")
        return kind, epsilons.tolist()


def kept_once(names: Sequence[Hashable]) -> tuple[list[int], list[int]]:
    """For each name the number of the distinct one that it is, and for each number the position of its first name.

    Examples:
        >>> kept_once(["a", "b", "a"])
        ([0, 1, 0], [0, 1])
    """
    first: dict[Hashable, int] = {}
    for position, name in enumerate(names):
        first.setdefault(name, position)
    numbers = {name: number for number, name in enumerate(first)}
    return [numbers[name] for name in names], list(first.values())


@contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """Within, what a damaged file raises becomes an `InputError`: that the file is not `what`, why, and what to do."""
    try:
        yield
    except (InputError, *DAMAGED) as error:
        why = f"it lacks {error}" if isinstance(error, KeyError) else " ".join(str(error).split())
        why = why.replace(f"{path} ", "it ").replace(f"{path}: ", "its ").removesuffix(f"; {_REMEDY}")
        raise InputError(f"{path} is not {what}: {why}; {_REMEDY}") from error


def _described(stored: NpzFile) -> dict[str, Any]:
    description = json.loads(str(stored["description"]))
    if not isinstance(description, dict):
        raise ValueError("its description is no object")
    return description


def _listed(description: dict[str, Any], name: str) -> tuple[Any, ...]:
    if not isinstance(description[name], list):
        raise ValueError(f"its {name} must be a list")
    return tuple(description[name])


def _feature_maps(maps: Sequence[FeatureMap]) -> tuple[list[str], np.ndarray, Arrays]:
    """The steps of every distinct map, the number (E,) of the map of each release, and the arrays `map_m.*`."""
    described = [feature_map.to_arrays() for feature_map in maps]
    numbers, kept = kept_once([digest(*description) for description in described])
    arrays = {
        f"map_{number}.{name}": array
        for number, first in enumerate(kept)
        for name, array in described[first][1].items()
    }
    return [described[first][0] for first in kept], np.array(numbers, dtype=np.int64), arrays


def _read_feature_maps(steps: Sequence[str], stored: NpzFile) -> tuple[FeatureMap, ...]:
    """The map of each release in an open npz; raises what a damaged file raises."""
    maps = [FeatureMap.from_arrays(text, _named(stored, f"map_{number}.")) for number, text in enumerate(steps)]
    if (stored["map"] < 0).any():
        raise ValueError("it has a feature map of a number below 0")
    return tuple(maps[number] for number in stored["map"])


def _named(stored: Any, prefix: str) -> Arrays:
    """The arrays whose names begin with `prefix`, without it."""
    return {name[len(prefix) :]: stored[name] for name in stored if name.startswith(prefix)}
