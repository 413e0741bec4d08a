"""Theorems 6, 9 and 10 as numbers: what they allow, and what is measured."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from aggregator.learners.linear_odd.losses import loss
from aggregator.learners.linear_odd.minimiser import minimise_linear_odd
from aggregator.trial.feature_fitting import fit
from federation.contract.randomness import generator
from scenarios.data.catalogue import load
from scenarios.reproductions.paper import EXACT, Observation

SOURCES = {"breast cancer": "breast_cancer", "digits": "digits"}
LOSSES = {  # by setting; the scale 1/8 makes a = 8 of a loss that is a multiple of the square one
    "logistic": loss("logistic"),
    "Matsushita": loss("matsushita"),
    "square": loss("square"),
    "twice the square": loss("symmetric_proper", generator="gini", scale=0.125),
}
DIMENSIONS = (2, 10, 22, 50)
DELTA = 0.05
_DRAWS, _LAMBDA = 4000, 1.0


def theorem_6(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """lambda |theta - theta~| / |mu - mu~| of some changes of mu, beside what is allowed."""
    random = generator(1, "changes of the mean operator")
    rows = random.normal(size=(200, 3)) / 100  # short rows: there the even part hardly matters, and the bound is tight
    for setting, each in LOSSES.items():
        moment = random.normal(size=3) / 10
        changes = random.normal(size=(20, 3)) / 100
        found = minimise_linear_odd(each, rows, np.vstack([moment, moment + changes]), _LAMBDA, tolerance=1e-9).weights
        moved = np.linalg.norm(found[1:] - found[0], axis=1) / np.linalg.norm(changes, axis=1)
        for split, distance in enumerate(moved):
            yield Observation(setting, "moved", "published", "", split, _LAMBDA * float(distance))
            yield Observation(setting, "allowed", "published", "", split, 1.0)
            yield Observation(setting, "allowed", "default", "", split, each.slope / 4)


def theorem_9(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """The label privacy that Algorithm 2 keeps at alpha = 1 on rows of L2 norm 1: their largest L1 norm."""
    for setting, source in SOURCES.items():
        table = load(source, data_dir=data_dir)
        rows = table.rows(np.arange(len(table)))
        rows = fit(["standardise", "constant", "unit_norm"], rows, table.text).transform(rows)
        yield Observation(setting, "alpha", "published", "", EXACT, float(np.abs(rows).sum(axis=1).max()))
        yield Observation(setting, "alpha", "default", "", EXACT, 1.0)
        yield Observation(setting, "alpha for all rows", "published", "", EXACT, rows.shape[1] ** 0.5)


def theorem_10(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """How often Laplace noise is longer than the bound of the proof, at delta 0.05, and with its root of d."""
    for dimension in DIMENSIONS:
        for repetition in range(5):
            random = generator(repetition, f"Laplace noise of {dimension} coordinates")
            lengths = np.linalg.norm(random.laplace(size=(_DRAWS, dimension)), axis=1)
            bound, x = np.log(dimension / DELTA), str(dimension)
            often, corrected = (float(np.mean(lengths > limit)) for limit in (bound, dimension**0.5 * bound))
            yield Observation("noise", "longer", "published", x, repetition, often)
            yield Observation("noise", "longer", "default", x, repetition, corrected)
            yield Observation("noise", "delta", "published", x, repetition, DELTA)
