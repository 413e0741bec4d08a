"""Applies a released model to new rows. That is post-processing: it costs no privacy beyond the release's own."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aggregator.models import ReleasedModels
from federation.errors import InputError, nearest_name
from scenarios.files import read_rows
from scenarios.protocol_options import BASELINES
from scenarios.results import read_results

DEFAULT = "default"
_FILE_NAME = re.compile(r"split-(\d+)\.npz")


@dataclass(frozen=True)
class Prediction:
    """One class name per row, the release that gave them (`source` and its epsilon) and what that release promises."""

    classes: tuple[str, ...]
    source: Path
    epsilon: float
    epsilons: tuple[float, ...]
    guarantee: dict[str, Any]

    @property
    def non_private(self) -> bool:
        """Whether the release protects nobody."""
        return bool(self.guarantee.get("non_private"))


def predict(
    directory: Path,
    variant: str,
    file: Path,
    *,
    epsilon: float | None = None,
    split: int = 0,
    draw: int = 0,
) -> Prediction:
    """The classes of the rows of `file` (`scenarios.files.read_rows`) by one released model of a run directory.

    `variant`: a variant's name, NAME/SETTING for one setting of a sweep, or `default`. `epsilon`: which release; the
    largest that there is when omitted. `split`, `draw`: counted from 0. Ties go to the first class. Raises
    `InputError` naming what there is when something asked for is not there, and for unreadable files.
    """
    source = find_model(directory, variant, split)
    models = ReleasedModels.load(source)
    known = [float(value) for value in models.epsilons]
    index = known.index(max(known)) if epsilon is None else _index(known, epsilon, source)
    draws = len(models.weights[index])
    if not 0 <= draw < draws:
        raise InputError(f"--draw must be from 0 to {draws - 1} for {source}, got {draw}")
    rows = read_rows(file, models.columns, models.text_columns)
    best = models.scores(rows, index, draw).argmax(axis=1)
    return Prediction(
        tuple(models.classes[label] for label in best),
        source,
        known[index],
        tuple(known),
        models.guarantees[index],
    )


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
