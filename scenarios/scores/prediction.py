"""Applies a released model to new rows. That is post-processing: it costs no privacy beyond the release's own."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from aggregator.contract.registry import model
from aggregator.releases.model_files import ReleasedFile, head, reading
from federation.contract.errors import InputError, nearest_name
from federation.contract.files import is_file, is_folder
from federation.contract.guarantee import Guarantee, require_delta, require_epsilon
from federation.features.steps import OneHot
from scenarios.data.files import read_group
from scenarios.data.frames import read_unlabelled
from scenarios.data.hashing import MOST_CELLS
from scenarios.data.sheets import NO_TEXT
from scenarios.data.tables import Table, cut, listed
from scenarios.scores.results import REMEDY, read_results
from scenarios.settings.protocol_options import BASELINES, DEFAULT

LEVEL = 0.9  # of intervals
_SHOWN = 8  # columns in a message
_FILE_NAME = re.compile(r"split-(\d+)\.npz")


@dataclass(frozen=True)
class Used:
    """The release that was applied, by its file and epsilon (infinite without one), and what it promises."""

    source: Path
    epsilon: float
    epsilons: tuple[float, ...]
    guarantee: dict[str, Any]
    remark: str | None = None  # on the rows


@dataclass(frozen=True, eq=False, repr=False)
class Chosen:
    """One release of a file, by its number, and one of its noise draws."""

    models: ReleasedFile[Any]
    release: int
    draw: int
    used: Used

    def __repr__(self) -> str:
        return f"Chosen('{self.models.variant}', epsilon={self.used.epsilon:g}, draw={self.draw})"


@dataclass(frozen=True, eq=False)
class Prediction:
    """One class name per row, or one number per row of a regression.

    `probabilities` (n, C) are of the `classes`, where the model was learned to tell them.
    """

    values: tuple[str, ...] | tuple[float, ...]
    used: Used
    classes: tuple[str, ...] = ()
    probabilities: NDArray[np.float64] | None = None


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
) -> Prediction | RatioPrediction:
    """What a released model, one of a run directory or a file, says of the rows of `file` (`scenarios.data.files`).

    A model says of which class each row is, ties going to the first; a regression gives each row a number; a model of
    class ratios says what share each class has among all rows, or among those with equal values in the column `by`.
    `variant`: a variant's name, NAME/SETTING for one setting of a sweep, or `default`. `epsilon`: which release; the
    largest that there is when omitted. `split`, `draw`: counted from 0. Raises `InputError` naming what there is when
    something asked for is not there, and for unreadable files.
    """
    source = find_model(directory, variant, split)
    chosen = choose(source, epsilon, draw)
    models, release, used = chosen.models, chosen.release, chosen.used
    if by is not None and models.predicts != "ratios":
        does = "predicts a number for" if models.predicts == "numbers" else "names the class of"
        raise InputError(f"--by is for models of class ratios, but {source} {does} every row; omit it")
    missing, unused = models.feature_maps[release].imputes, unused_columns(chosen)
    rows = read_unlabelled(file, models.columns, models.text_columns, missing=missing, unused=unused)
    used = replace(used, remark=unknown_texts(chosen, np.asarray(rows.blocks[0])) if models.text_columns else None)
    groups = np.array([""]) if by is None else read_group(file, by)  # the one text stands for all rows
    sets = {}
    if models.predicts == "ratios":
        sets = {str(one): np.flatnonzero(np.broadcast_to(groups == one, len(rows))) for one in np.unique(groups)}
        _require_whole(sets, rows, file)
    with applied(chosen, str(file)):
        if models.predicts == "ratios":
            with threadpool_limits(1):  # many small products, which threads slow down
                found = {name: _ratios(models, release, draw, rows.rows(members)) for name, members in sets.items()}
            return RatioPrediction(found, len(rows), used)
        every = range(len(rows))
        predicted = np.concatenate([models.predicted(release, draw, part) for part in rows.parts(every)])
        if models.predicts == "numbers":
            return Prediction(tuple(map(float, finite(predicted))), used)
        names = tuple(models.classes[code] for code in predicted)
        if models.probabilities(release, draw, rows.rows(every[:1])) is None:
            return Prediction(names, used, models.classes)
        shares = [np.asarray(models.probabilities(release, draw, part)) for part in rows.parts(every)]
        return Prediction(names, used, models.classes, finite(np.concatenate(shares)))


def _require_whole(sets: Mapping[str, NDArray[np.intp]], rows: Table, file: Path) -> None:
    """Refuse sets of rows that are too large to stand together. Raises `InputError`."""
    for members in sets.values():
        if len(members) * len(rows.columns) > MOST_CELLS:
            raise InputError(
                f"{file} has {len(members)} rows of {len(rows.columns)} columns in one set, more than the {MOST_CELLS} "
                "cells that are kept at a time; take fewer rows"
            )


def choose(source: Path, epsilon: float | None = None, draw: int = 0) -> Chosen:
    """The release of a file that aimed at `epsilon`, or at the largest that there is, and one of its noise draws.

    Raises `InputError` naming what there is when one of them is not there, and for a file that is no released model.
    """
    kind, _ = head(source)
    try:
        loaded = model(kind)
    except InputError as error:
        raise InputError(f"{source}: {error}; install what has written it, perhaps a later release") from error
    models = loaded.load(source)
    known = [float(value) for value in models.epsilons]
    wanted = max(known) if epsilon is None else epsilon
    release = next((i for i, value in enumerate(known) if math.isclose(value, wanted, rel_tol=1e-9)), None)
    if release is None:
        there = _are(f"{value:g}" for value in known)
        raise InputError(f"epsilon {wanted:g} has no release in {source}; there {there}")
    if not 0 <= draw < models.draws(release):
        raise InputError(f"draw must be from 0 to {models.draws(release) - 1} for {source}, got {draw}")
    with reading(source, loaded.what):
        _require_told(models.guarantees[release])
    return Chosen(models, release, draw, Used(source, known[release], tuple(known), models.guarantees[release]))


def unused_columns(chosen: Chosen) -> frozenset[int]:
    """The columns that make no difference, because the feature map leaves them out: new rows may lack them."""
    return frozenset(column for column, vocabulary in _vocabularies(chosen) if not len(vocabulary))


def _vocabularies(chosen: Chosen) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """The columns that become indicators, and the codes of the texts that each has one for."""
    for step in chosen.models.feature_maps[chosen.release].steps[:1]:
        if isinstance(step, OneHot):
            for column, (start, end) in zip(step.columns.tolist(), pairwise(step.starts), strict=True):
                yield column, step.codes[start:end]


def unknown_texts(chosen: Chosen, rows: NDArray[np.float64]) -> str | None:
    """What to say where a text column of raw rows (n, columns) has texts, but none that the model knows; else None.

    One new text among others is nothing to speak of; a whole column of them is more often written otherwise, as true
    for True.
    """
    found = []
    for column, vocabulary in _vocabularies(chosen):
        texts = rows[rows[:, column] != NO_TEXT, column]
        if len(vocabulary) and len(texts) and not np.isin(texts, vocabulary).any():
            found.append(f"'{cut(chosen.models.columns[column])}'")
    if not found:
        return None
    return (
        f"the model knows none of the texts in {listed(found, _SHOWN)}: it takes them for unknown ones; write them as "
        "where it was learned"
    )


@contextmanager
def applied(chosen: Chosen, rows: str) -> Iterator[None]:
    """A context in which a model is applied to `rows`; what a damaged one raises there becomes an `InputError`."""
    with (
        reading(chosen.used.source, f"{chosen.models.what} that can be applied to {rows}"),
        np.errstate(all="ignore"),
    ):
        yield


def _require_told(guarantee: Mapping[str, Any]) -> None:
    """Refuse a record that says neither what is promised nor why nothing is. Raises what a damaged file raises."""
    if not guarantee.get("non_private"):
        Guarantee.from_dict(dict(guarantee))
        if not isinstance(guarantee["parameters"], dict):
            raise TypeError("the parameters of its guarantee must be an object")
    elif "claimed" in guarantee:
        epsilon, delta = guarantee["claimed"]
        require_epsilon(epsilon)
        require_delta(delta)


def finite(predicted: NDArray[np.float64]) -> NDArray[np.float64]:
    """What a damaged model may not give. Raises `ValueError`."""
    if not np.isfinite(predicted).all():
        raise ValueError("what it predicts must be finite numbers")
    return predicted


def _ratios(models: ReleasedFile[Any], release: int, draw: int, rows: NDArray[np.float64]) -> list[Ratio]:
    shares, known = finite(models.predicted(release, draw, rows)), models.intervals(release, draw, rows, LEVEL)
    ends = [None] * len(shares) if known is None else [(float(low), float(high)) for low, high in known]
    return [Ratio(name, float(share), end) for name, share, end in zip(models.classes, shares, ends, strict=True)]


def find_model(directory: Path, variant: str, split: int) -> Path:
    """The file of one variant's releases in one world; or `directory` itself, where that is a released model.

    Raises `InputError` naming what there is.
    """
    if directory.suffix == ".npz" and is_file(directory):
        return directory
    if not is_folder(directory):
        there = [path.name for path in sorted(directory.parent.glob("*.npz"))] if directory.suffix == ".npz" else []
        models = f", or a model: in {directory.parent} there are {listed(there, _SHOWN)}" if there else ""
        raise InputError(f"there is no run in {directory}; {REMEDY}{models}")
    if variant.split("/")[0] in BASELINES:
        raise InputError(f"variant '{variant}' is a baseline, and baselines keep no model; name another variant")
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
            f"variant '{name}' has no model in {root}; there {_are(stored)}{nearest_name(name, stored)} "
            "(`federation run --keep-models` keeps all variants)"
        )
    if len(matching) > 1:
        raise InputError(f"variant '{name}' was released in several settings; name one of {', '.join(matching)}")
    splits = stored[matching[0]]
    if split not in splits:
        raise InputError(f"split {split} has no model of '{matching[0]}'; there {_are(map(str, sorted(splits)))}")
    return splits[split]


def _default(directory: Path, stored: Iterable[str]) -> str:
    """The only variant with models, or the one that the results mark as the default."""
    variants = {key.split("/")[0] for key in stored}
    if len(variants) > 1:
        variants = {row["variant"] for row in read_results(directory / "results.csv") if row["default"]}
    if len(variants) != 1:
        raise InputError(f"{directory} has no default variant; variant must name one: there {_are(stored)}")
    return variants.pop()


def _are(names: Iterable[str]) -> str:
    listed = list(names)
    return f"{'is' if len(listed) == 1 else 'are'} {', '.join(listed)}"
