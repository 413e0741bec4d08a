"""Applies a released model to new rows. That is post-processing: it costs no privacy beyond the release's own."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from aggregator.released.classifier_models import ReleasedClassifiers
from aggregator.released.model_files import head
from aggregator.released.models import ReleasedModels
from federation.errors import InputError, nearest_name
from scenarios.data.files import read_group, read_rows
from scenarios.scores.metrics import CLASS_RATIO, REGRESSION
from scenarios.scores.results import read_results
from scenarios.settings.protocol_options import BASELINES

if TYPE_CHECKING:
    from aggregator.ratios.estimator import RatioEstimator
    from aggregator.released.released_estimators import ReleasedEstimators

DEFAULT = "default"
LEVEL = 0.9  # of intervals
_FILE_NAME = re.compile(r"split-(\d+)\.npz")


@dataclass(frozen=True)
class Used:
    """The release that was applied, by its file and epsilon (infinite without one), and what it promises."""

    source: Path
    epsilon: float
    epsilons: tuple[float, ...]
    guarantee: dict[str, Any]

    @property
    def non_private(self) -> bool:
        """Whether the release protects nobody."""
        return bool(self.guarantee.get("non_private"))


@dataclass(frozen=True)
class Prediction:
    """One class name per row."""

    classes: tuple[str, ...]
    used: Used


@dataclass(frozen=True)
class RegressionPrediction:
    """One number per row."""

    values: tuple[float, ...]
    used: Used


@dataclass(frozen=True)
class Ratio:
    """The share of one class in one set of rows, and its `LEVEL` interval where the estimator has one."""

    name: str
    share: float
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class RatioPrediction:
    """A ratio per class of each set of rows, by the set's name; the whole file is one set without a name."""

    ratios: dict[str, list[Ratio]]
    rows: int
    used: Used


def predict(
    directory: Path,
    variant: str,
    file: Path,
    *,
    epsilon: float | None = None,
    split: int = 0,
    draw: int = 0,
    by: str | None = None,
) -> Prediction | RegressionPrediction | RatioPrediction:
    """What one released model of a run directory says of the rows of `file` (`scenarios.data.files.read_rows`).

    A model says of which class each row is, ties going to the first; a regression gives each row a number; a model of
    class ratios says what share each class has among all rows, or among those with equal values in the column `by`.
    `variant`: a variant's name, NAME/SETTING for one setting of a sweep, or `default`. `epsilon`: which release; the
    largest that there is when omitted. `split`, `draw`: counted from 0. Raises `InputError` naming what there is when
    something asked for is not there, and for unreadable files.
    """
    source = find_model(directory, variant, split)
    kind, _ = head(source)
    if by is not None and kind != CLASS_RATIO:
        does = "predicts a number for" if kind == REGRESSION else "names the class of"
        raise InputError(f"--by is for models of class ratios, but {source} {does} every row; omit it")
    if kind == REGRESSION:
        return _numbers(source, file, epsilon, draw)
    if kind == ReleasedClassifiers.kind:
        return _told_apart(source, file, epsilon, draw)
    if kind != CLASS_RATIO:
        models = ReleasedModels.load(source)
        used, index = _chosen(source, models, epsilon)
        _check_draw(source, draw, models.draws(index))
        rows = read_rows(file, models.columns, models.text_columns)
        best = models.scores(rows, index, draw).argmax(axis=1)
        return Prediction(tuple(models.classes[label] for label in best), used)
    from aggregator.ratios.ratio_models import ReleasedRatios

    ratios = ReleasedRatios.load(source)
    used, index = _chosen(source, ratios, epsilon)
    _check_draw(source, draw, ratios.draws(index))
    rows = read_rows(file, ratios.columns, ratios.text_columns)
    features, estimator = ratios.feature_maps[index].transform(rows), ratios.estimator(index, draw)
    sets = {"": np.arange(len(rows))} if by is None else _sets(read_group(file, by))
    with threadpool_limits(1):  # many small products, which threads slow down
        found = {name: _ratios(ratios.classes, estimator, features[members]) for name, members in sets.items()}
    return RatioPrediction(found, len(rows), used)


def _ratios(classes: Sequence[str], estimator: RatioEstimator, rows: np.ndarray) -> list[Ratio]:
    from aggregator.ratios.class_means import ClassMeans
    from aggregator.ratios.intervals import intervals

    shares = estimator.predict(rows)
    ends: list[Any] = [None] * len(classes)
    if isinstance(estimator, ClassMeans):
        with suppress(InputError):  # too little is known of the errors
            ends = [(float(low), float(high)) for low, high in intervals(estimator, rows, level=LEVEL)]
    return [Ratio(name, float(share), end) for name, share, end in zip(classes, shares, ends, strict=True)]


def _told_apart(source: Path, file: Path, epsilon: float | None, draw: int) -> Prediction:
    """The classes of rows by a classifier that is no linear model."""
    models = ReleasedClassifiers.load(source)
    used, index = _chosen(source, models, epsilon)
    _check_draw(source, draw, models.draws(index))
    features = models.feature_maps[index].transform(read_rows(file, models.columns, models.text_columns))
    return Prediction(tuple(models.classes[code] for code in models.predict(index, draw, features)), used)


def _numbers(source: Path, file: Path, epsilon: float | None, draw: int) -> RegressionPrediction:
    from aggregator.released.regression_models import ReleasedRegressions

    models = ReleasedRegressions.load(source)
    used, index = _chosen(source, models, epsilon)
    _check_draw(source, draw, models.draws(index))
    features = models.feature_maps[index].transform(read_rows(file, models.columns, models.text_columns))
    return RegressionPrediction(tuple(map(float, models.predict(index, draw, features))), used)


def _chosen(source: Path, models: ReleasedModels | ReleasedEstimators, epsilon: float | None) -> tuple[Used, int]:
    """The release at an epsilon, the largest that there is for None, and its number."""
    known = [float(value) for value in models.epsilons]
    index = known.index(max(known)) if epsilon is None else _index(known, epsilon, source)
    return Used(source, known[index], tuple(known), models.guarantees[index]), index


def _check_draw(source: Path, draw: int, draws: int) -> None:
    if not 0 <= draw < draws:
        raise InputError(f"--draw must be from 0 to {draws - 1} for {source}, got {draw}")


def _sets(values: np.ndarray) -> dict[str, np.ndarray]:
    """Positions of the rows of each value, values sorted."""
    return {str(value): np.flatnonzero(values == value) for value in np.unique(values)}


def find_model(directory: Path, variant: str, split: int) -> Path:
    """The file of one variant's releases in one world. Raises `InputError` naming what there is."""
    if not directory.is_dir():
        raise InputError(f"there is no run in {directory}; name a directory that `federation run` has written")
    if variant.split("/")[0] in BASELINES:
        raise InputError(f"--variant '{variant}' is a baseline, and baselines keep no model; name another variant")
    root = directory / "models"
    stored: dict[str, dict[int, Path]] = {}
    for path in sorted(root.rglob("*.npz")):
        if match := _FILE_NAME.fullmatch(path.name):
            stored.setdefault(path.parent.relative_to(root).as_posix(), {})[int(match[1])] = path
    if not stored:
        raise InputError(f"{root} holds no released models; name a directory that `federation run` has finished")
    name = _default(directory, stored) if variant == DEFAULT else variant
    matching = [name] if name in stored else [key for key in stored if key.startswith(f"{name}/")]
    if not matching:
        raise InputError(
            f"--variant '{name}' has no model in {root}; there {_are(stored)}{nearest_name(name, stored)} "
            "(`federation run --keep-models` keeps all variants)"
        )
    if len(matching) > 1:
        raise InputError(f"--variant '{name}' was released in several settings; name one of {', '.join(matching)}")
    splits = stored[matching[0]]
    if split not in splits:
        raise InputError(f"--split {split} has no model of '{matching[0]}'; there {_are(map(str, sorted(splits)))}")
    return splits[split]


def _default(directory: Path, stored: Iterable[str]) -> str:
    """The only variant with models, or the one that the results mark as the default."""
    variants = {key.split("/")[0] for key in stored}
    if len(variants) > 1:
        variants = {row["variant"] for row in read_results(directory / "results.csv") if row["default"]}
    if len(variants) != 1:
        raise InputError(f"{directory} has no default variant; --variant must name one: there {_are(stored)}")
    return variants.pop()


def _index(known: list[float], epsilon: float, source: Path) -> int:
    for i, value in enumerate(known):
        if value == epsilon or math.isclose(value, epsilon, rel_tol=1e-9):
            return i
    raise InputError(f"--epsilon {epsilon:g} has no release in {source}; there {_are(f'{v:g}' for v in known)}")


def _are(names: Iterable[str]) -> str:
    listed = list(names)
    return f"{'is' if len(listed) == 1 else 'are'} {', '.join(listed)}"
