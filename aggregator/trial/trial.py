"""A trial as the sessions of its variants see it: its plan, its public rows behind feature maps, and shared work.

A `World` is one trial: one split of the data under one setting of the sweep. All sessions of the trial share it.

A `View` is the public rows behind one feature map, and how parties train behind that map. A trial has one view unless
its features contain the stage `{whiten: auto}`. With this stage, the noise and the epsilon of a release decide how many
dimensions the release can afford. `affordable` computes this number from public numbers only. Parties train once behind
every map that is chosen.
"""

from __future__ import annotations

import json
import math
import secrets
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from aggregator.trial.feature_fitting import fit_rows, identifiers, indicators, mixed_units, remarks
from aggregator.trial.plan import PublicNumbers, PublicTable, TrialPlan, VariantPlan
from aggregator.trial.public_rows import PublicRows
from federation.contract.errors import InputError
from federation.contract.guarantee import require_epsilon
from federation.contract.query import OFF, Noise, ReleaseId
from federation.contract.randomness import digest
from federation.features.feature_map import FeatureMap
from federation.mechanisms.accounting import sensitivity
from federation.mechanisms.noise import gaussian
from federation.queries.votes import Training

AUTO = {"whiten": "auto"}

Stages = Sequence[str | Mapping[str, Any]]


def fitted(features: Stages, table: PublicTable, **release: Any) -> tuple[FeatureMap, np.ndarray]:
    """The feature map of a release, fitted on the public rows, and these rows (N, D) behind it.

    `release` is what `sized` takes of it. Raises `InputError` as `aggregator.trial.feature_fitting.fit_rows`.
    """
    stages = sized(features, spectrum_to_whiten(features, table), **release)
    return fit_rows(stages, table.rows, table.text_columns, identifiers(table))


def sized(features: Stages, spectrum: Spectrum | None, **release: Any) -> Stages:
    """The stages of a release's feature map, automatic dimensions chosen by public numbers.

    `spectrum` is what `spectrum_to_whiten` finds, and `release` what `affordable` takes beside it. Without noise (and
    for baselines) there are as many dimensions as are ever chosen.
    """
    return features if spectrum is None else of_size(features, affordable(spectrum=spectrum, **release))


def of_size(features: Stages, dimensions: int) -> list[str | Mapping[str, Any]]:
    """The stages with so many dimensions in place of `{whiten: auto}`."""
    return [{"whiten": dimensions} if stage == AUTO else stage for stage in features]


def spectrum_to_whiten(features: Stages, table: PublicTable) -> Spectrum | None:
    """The spectrum of the public rows as they reach the stage {whiten: auto}, the first of them; None without one."""
    if AUTO not in features:
        return None
    before = features[: list(features).index(AUTO)]
    return Spectrum.of(fit_rows(before, table.rows, table.text_columns, identifiers(table))[1])


@dataclass(frozen=True, eq=False)
class View:
    """The public rows behind one feature map, and how parties are told to train behind it."""

    public: PublicRows
    training: Training


class Views:
    """The views of one world, each fitted when it is first asked for; equal maps are one view."""

    def __init__(self, plan: TrialPlan) -> None:
        self._plan = plan
        self.table: PublicTable = plan.task.table.call()
        self._fitted: dict[tuple[str, float, bool], View] = {}
        self._sized: dict[str, View] = {}
        self._known: dict[str, View] = {}

    def at(self, noise: str, epsilon: float, minimiser: bool = False) -> View:
        """The view of a release with this noise and epsilon, on a minimiser or on something less sensitive."""
        key = (noise, epsilon, minimiser) if AUTO in self._plan.task.stages else ("any", 0.0, False)
        if key not in self._fitted:
            self._fitted[key] = self._fit(*key)
        return self._fitted[key]

    @cached_property
    def spectrum(self) -> Spectrum | None:
        """The spectrum of the public rows as they reach `{whiten: auto}`; None without that stage."""
        return spectrum_to_whiten(self._plan.task.stages, self.table)

    def remarks(self) -> list[str]:
        """A sentence for each column that says nothing, by public rows alone."""
        table = self.table
        left_out, rows = identifiers(table), table.rows
        if len(table.text_columns) or left_out:
            rows = indicators(rows, table.text_columns, left_out).apply(rows)
        return [*remarks(table, self._plan.task.stages, mixed_units(rows))]

    def known(self) -> list[View]:
        """The views asked for so far."""
        return list(self._known.values())

    def whitened(self, dimensions: int) -> PublicRows:
        """The public rows behind the features with so many dimensions in place of `{whiten: auto}`."""
        stages = of_size(self._plan.task.stages, dimensions)
        found = fit_rows(stages, self.table.rows, self.table.text_columns, identifiers(self.table))
        return PublicRows(*found, stages)

    def behind(self, features: Stages) -> View:
        """The view behind other stages than the world's own, for what is no release: without noise."""
        return self._fit("off", float("inf"), False, features)

    def _fit(self, noise: str, epsilon: float, minimiser: bool, features: Stages | None = None) -> View:
        plan, classes = self._plan, len(self._plan.task.classes)
        stages = plan.task.stages if features is None else features
        chosen = sized(
            stages,
            self.spectrum if features is None else spectrum_to_whiten(stages, self.table),
            noise=noise,
            classes=classes,
            parties=plan.terms.parties,
            epsilon=epsilon,
            delta=plan.public.delta,
            minimiser=minimiser,
        )
        sizes = json.dumps(chosen)  # most epsilons of a sweep afford the same
        if sizes not in self._sized:
            feature_map, rows = fit_rows(chosen, self.table.rows, self.table.text_columns, identifiers(self.table))
            name = digest(*feature_map.to_arrays())
            if name not in self._known:
                public = PublicRows(feature_map, rows, stages)
                self._known[name] = View(public, Training(feature_map, classes, plan.task.classifier, plan.task.split))
            self._sized[sizes] = self._known[name]
        return self._sized[sizes]


T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class World:
    """What all sessions of a world share: its plan, the views of the public rows, and work that is done once."""

    plan: TrialPlan
    views: Views
    variant: VariantPlan | None = None  # whose sessions see it
    _known: dict[Hashable, Any] = field(default_factory=dict)

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what `make` returns, computed for the first of equal keys and kept for the others.

        A key that has the `id` of an object must be used while a reference to that object exists.
        """
        if key not in self._known:
            self._known[key] = make()
        found: T = self._known[key]
        return found

    def of(self, variant: VariantPlan) -> World:
        """The same world for the sessions of one variant."""
        return replace(self, variant=variant)

    @property
    def own(self) -> VariantPlan:
        """The variant whose sessions see this world. Raises `InputError` in a world without a variant."""
        if self.variant is None:
            raise InputError("this world is no variant's; begin sessions in World.of(variant)")
        return self.variant

    @property
    def view(self) -> View:
        """The public rows behind the feature map of releases whose noise has no part in choosing it."""
        return self.views.at(OFF, math.inf)

    @property
    def feature_map(self) -> FeatureMap:
        """The feature map of these releases."""
        return self.view.public.feature_map

    def require_two_classes(self) -> None:
        """Refuse a world with another number of classes. Raises `InputError`."""
        kind = self.own.kind
        if len(self.plan.task.classes) != 2:
            raise InputError(
                f"{kind} is for two classes, and there are {len(self.plan.task.classes)}; name those that count as the "
                "positive one in data.positive"
            )

    def require_label_range(self) -> tuple[float, float]:
        """The range of real labels. Raises `InputError` in a world of classes."""
        if self.plan.public.label_range is None:
            raise InputError(f"'{self.own.name}' needs real labels with a declared range, and the plan has classes")
        return self.plan.public.label_range

    def release(self, noise: Noise, parts: Iterable[Any]) -> ReleaseId:
        """Name the release of one response by every party, with this noise.

        `parts` are all other public numbers and options that decide the query: other bags or features are another
        release, from which equal noise would cancel. Variants of a kind that send the same query share one release.
        """
        return ReleaseId(self.named(self.own.kind, *noise.named, *parts))

    def named(self, *parts: Any) -> str:
        """The name of a release of this world; a new one in every run without a seed and without signed messages.

        Signed messages name their exchange, and sites have agreed to the names of the releases.
        """
        told_apart = self.plan.run.noise_seed is not None or self.plan.run.in_letters
        fresh = [] if told_apart else [self.once("token", lambda: secrets.token_hex(16))]
        return "|".join(map(str, [self.plan.name, *parts, *fresh]))

    def drawn(self, draws: int) -> dict[str, Any]:
        """Return the arguments of a private query about its noise: the number of draws, and whether they are seeded."""
        return {"draws": draws, "seeded": self.plan.run.noise_seed is not None}

    def numbers(self, features: int | None = None) -> PublicNumbers:
        """The public numbers of this world, for a release behind so many features."""
        classes, rows = len(self.plan.task.classes), len(self.views.table.rows)
        return replace(self.plan.public, classes=classes, features=features, public_rows=rows)


OMITTED = 0.7
ROWS_PER_DIMENSION = 4  # with fewer public rows the smallest of the whitened directions are made of chance
FAINT = 0.25  # of the mean variance; fainter directions are left out ...
FEW = 32  # ... but not among so many, where noise is all that they cost
_NEGLIGIBLE_VARIANCE = 1e-10  # of the largest: rounding errors
SIZES = (3, 4, 6, 8, 10, 16, 24, 32, 40, 48, 56, 64, 80, 96)  # a ladder, so that many epsilons need few trainings


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The public rows that are to be whitened: how many, and their principal variances (r,), largest first, above 0."""

    rows: int
    variances: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray) -> Spectrum:
        """The spectrum of public rows (N, d); r is their rank. Raises `InputError` when no two rows differ."""
        centred = rows - rows.mean(axis=0) if rows.size else rows
        moments = centred.T @ centred if rows.shape[1] <= len(rows) else centred @ centred.T
        variances = np.linalg.eigvalsh(moments)[::-1] / max(1, len(rows))
        if not (variances > 0).any():
            raise InputError(f"the {len(rows)} public rows are all equal, so none of them varies; raise data.auxiliary")
        return cls(len(rows), variances[variances > _NEGLIGIBLE_VARIANCE * variances[0]])

    def omitted(self) -> np.ndarray:
        """u(d) in [0, 1], shape (r,): the share of the variance beyond the first d = 1..r directions."""
        beyond = np.append(np.cumsum(self.variances[:0:-1])[::-1], 0.0)
        return np.asarray(beyond / self.variances.sum())

    def usable(self) -> int:
        """How many directions are worth whitening, noise or not: those that are not faint, `FEW` at least.

        At most r, and a quarter of the number of rows; 0 for fewer than 4 rows. Even without noise the last of many
        directions are left out. Whitening makes them as loud as the first, and the parties learn from few rows.
        """
        loud = int(np.sum(self.variances >= FAINT * self.variances.mean()))
        return min(len(self.variances), self.rows // ROWS_PER_DIMENSION, max(FEW, loud))


def errors(
    noise: str,
    spectrum: Spectrum,
    *,
    classes: int,
    parties: int,
    epsilon: float,
    delta: float,
    minimiser: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Mean squared errors (r,) of a class's score with d = 1..r dimensions: by noise, and by what is omitted.

    A release of d dimensions predicts vote shares by least squares from d features of unit variance. Two errors keep
    the prediction from the shares. The first grows with d, and the second falls. Both are mean squares of a class's
    score, averaged over public rows and classes:

    - Noise: (E|noise|)² / C. With sensitivity s, E|noise| is (C-1) d s/epsilon for L2-Gamma noise. For Gaussian noise
      it is about sigma sqrt((C-1) d). On a minimiser the error is d times as large: rows of norm 1 have coordinates of
      size 1/sqrt(d). The weights make up for this size, and the noise does not.
    - Omission: the error by the directions that are left out is taken to be OMITTED u(d) / d^1.5. Here u(d) is their
      share of the variance of the public rows. Directions of less variance tell less, each by itself as well.

    The law and the constants were chosen on HAR and on Gaussian classes. They were then corrected on MNIST (the share
    of the variance) and on census data (faint directions). `benchmarks.dimensions` compares with fixed choices.

    `noise` is "pure" (L2-Gamma) or "gaussian", of the whitened vote statistic, which one of the declared `parties`
    moves by at most s = sqrt(2)/M, or with `minimiser` of a minimiser; `delta` is for Gaussian noise only. Raises
    `InputError` for another noise, fewer than 2 classes or 1 party, and epsilon or delta out of range.
    """
    if classes < 2:
        raise InputError(f"classes must be at least 2, got {classes}")
    require_epsilon(epsilon)
    moved = sensitivity.statistic(parties)
    dimensions = np.arange(1, len(spectrum.variances) + 1)
    if noise == "pure":
        with np.errstate(over="ignore"):  # of an epsilon so small that nothing but one dimension is affordable
            squared = ((classes - 1) * dimensions * moved / epsilon) ** 2
    elif noise == "gaussian":
        squared = (classes - 1) * dimensions * (moved / gaussian.mu(epsilon, delta)) ** 2
    else:
        raise InputError(f"noise must be 'pure' or 'gaussian', got {noise!r}")
    if minimiser:
        squared = squared * dimensions
    return squared / classes, OMITTED * spectrum.omitted() / dimensions**1.5


def affordable(noise: str, spectrum: Spectrum, **public: Any) -> int:
    """The d of least total error, or all usable directions where they are fewer, rounded down to one of `SIZES`.

    All r directions are taken where that is what d says, and `SIZES[0]` at least, if there are so many. `noise` is
    "pure", "gaussian", or "off", which takes the usable directions whatever the other numbers, which are those that
    `errors` takes. Rounding is downwards because too much noise costs more than too few directions. Raises
    `InputError` as `errors`.
    """
    most = spectrum.usable()
    if noise != "off":
        most = min(most, 1 + int(np.argmin(sum(errors(noise, spectrum, **public)))))
    rank = len(spectrum.variances)
    if most == rank < SIZES[-1]:
        return rank
    return min(rank, SIZES[max(0, bisect_right(SIZES, most) - 1)])
