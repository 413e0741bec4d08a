"""Views of the public rows: the feature maps of one world, and how parties train behind each of them.

A world has one view unless its features say `{whiten: auto}`: then the noise and epsilon of a release choose how many
dimensions it can afford, and parties train once behind every map that is chosen.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from aggregator.world.dimensions import Spectrum, affordable
from aggregator.world.fitting import fit_rows, mixed_units
from aggregator.world.number_columns import identifiers
from aggregator.world.number_columns import remarks as of_numbers
from aggregator.world.plan import PublicTable, WorldPlan
from aggregator.world.public_rows import PublicRows
from aggregator.world.text_columns import indicators
from aggregator.world.text_columns import remarks as of_texts
from federation.contract.randomness import digest
from federation.features.feature_map import FeatureMap
from federation.queries.votes import Training

AUTO = {"whiten": "auto"}

Stages = Sequence[str | Mapping[str, Any]]


def fitted(features: Stages, table: PublicTable, **release: Any) -> tuple[FeatureMap, np.ndarray]:
    """The feature map of a release, fitted on the public rows, and these rows (N, D) behind it.

    `release` is what `sized` takes of it. Raises `InputError` as `aggregator.world.fitting.fit_rows`.
    """
    stages = sized(features, spectrum_to_whiten(features, table), **release)
    return fit_rows(stages, table.rows, table.text_columns, identifiers(table))


def sized(
    features: Stages,
    spectrum: Spectrum | None,
    *,
    noise: str,
    classes: int,
    parties: int,
    epsilon: float,
    delta: float,
    minimiser: bool = False,
) -> Stages:
    """The stages of a release's feature map, automatic dimensions chosen by public numbers.

    `spectrum` is what `spectrum_to_whiten` finds. `noise` is "pure", "gaussian" or "off"; without noise (and for
    baselines) there are as many dimensions as are ever chosen; `minimiser` says that it is a minimiser that gets the
    noise.
    """
    if spectrum is None:
        return features
    numbers: dict[str, Any] = {"classes": classes, "parties": parties, "epsilon": epsilon, "delta": delta}
    return of_size(features, affordable(noise, spectrum, **numbers, minimiser=minimiser))


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

    def __init__(self, plan: WorldPlan) -> None:
        self._plan = plan
        self.table: PublicTable = plan.public.call()
        self._fitted: dict[tuple[str, float, bool], View] = {}
        self._sized: dict[str, View] = {}
        self._known: dict[str, View] = {}

    def at(self, noise: str, epsilon: float, minimiser: bool = False) -> View:
        """The view of a release with this noise and epsilon, on a minimiser or on something less sensitive."""
        key = (noise, epsilon, minimiser) if AUTO in self._plan.features else ("any", 0.0, False)
        if key not in self._fitted:
            self._fitted[key] = self._fit(*key)
        return self._fitted[key]

    @cached_property
    def spectrum(self) -> Spectrum | None:
        """Of the public rows as they reach `{whiten: auto}`; None without that stage."""
        return spectrum_to_whiten(self._plan.features, self.table)

    def remarks(self) -> list[str]:
        """A sentence for each column that says nothing, by public rows alone."""
        table = self.table
        left_out, rows = identifiers(table), table.rows
        if len(table.text_columns) or left_out:
            rows = indicators(rows, table.text_columns, left_out).apply(rows)
        return [*of_texts(table), *of_numbers(table, self._plan.features, mixed_units(rows))]

    def known(self) -> list[View]:
        """The views asked for so far."""
        return list(self._known.values())

    def whitened(self, dimensions: int) -> PublicRows:
        """The public rows behind the features with so many dimensions in place of `{whiten: auto}`."""
        stages = of_size(self._plan.features, dimensions)
        found = fit_rows(stages, self.table.rows, self.table.text_columns, identifiers(self.table))
        return PublicRows(*found, stages)

    def behind(self, features: Stages) -> View:
        """The view behind other stages than the world's own, for what is no release: without noise."""
        return self._fit("off", float("inf"), False, features)

    def _fit(self, noise: str, epsilon: float, minimiser: bool, features: Stages | None = None) -> View:
        plan, classes = self._plan, len(self._plan.classes)
        stages = plan.features if features is None else features
        chosen = sized(
            stages,
            self.spectrum if features is None else spectrum_to_whiten(stages, self.table),
            noise=noise,
            classes=classes,
            parties=plan.parties,
            epsilon=epsilon,
            delta=plan.delta,
            minimiser=minimiser,
        )
        sizes = json.dumps(chosen)  # most epsilons of a sweep afford the same
        if sizes not in self._sized:
            feature_map, rows = fit_rows(chosen, self.table.rows, self.table.text_columns, identifiers(self.table))
            name = digest(*feature_map.to_arrays())
            if name not in self._known:
                public = PublicRows(feature_map, rows, stages)
                self._known[name] = View(public, Training(feature_map, classes, plan.classifier, plan.split))
            self._sized[sizes] = self._known[name]
        return self._sized[sizes]
