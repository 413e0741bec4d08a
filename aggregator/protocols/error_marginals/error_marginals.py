"""Protocol `error_marginals` (EXPRIL; Lacombe, Jetley and Sebag 2021): learning from marginals of errors, in rounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from aggregator.contract.expectations import Expected, expected_of_means
from aggregator.contract.protocol import Place, Promise, Protocol, Refused, Requires, Rule, Sent, Trust
from aggregator.protocols.error_marginals.options import ExchangeOptions
from aggregator.trial.plan import PublicNumbers
from federation.contract.guarantee import Adjacency, Unit
from federation.contract.query import OFF
from federation.mechanisms.marginals.noise import calibrate
from federation.queries.marginals import PUBLISHED

if TYPE_CHECKING:
    from aggregator.protocols.error_marginals.session import Change, ExchangeSession, WorstExchange
    from aggregator.trial.trial import World

_NO_SUM = (
    "noise: published has every party divide its errors by its rows, and such rates cannot be added; use noise: auto, "
    "pure or gaussian, or trust: none"
)
_CALIBRATED = ("auto", "pure", "gaussian")
_BINS = 2  # of a feature that tell as much as its mean


@dataclass(frozen=True)
class ErrorMarginals(ExchangeOptions, Protocol):
    """Parties are oracles: asked about a hypothesis, they count its errors in bins of each feature, with noise.

    The aggregator's public auxiliary rows are the source that it labels and trains on; no row and no label leaves a
    party. The number of queries is agreed on beforehand, and noise is for all of them.

    Options: `aggregator.protocols.error_marginals.options.ExchangeOptions`.
    """

    task: ClassVar[str] = "classification"
    model: ClassVar[str] = "classifier"
    requires: ClassVar[Requires] = Requires(
        two_classes=True, single_rows=True, public_rows=True, features=("impute", "standardise")
    )
    suggested: ClassVar[tuple[Mapping[str, Any], ...] | Refused] = ({}, {"protect": "label"})
    why_default: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "noise: auto",
            "the less variance of discrete Laplace and discrete Gaussian, by bins, queries, epsilon and delta",
            "cardiotocograms, one hospital, (1, 1e-5): accuracy .874, .843 with pure noise; 9 other sets: .835, "
            "beside .834 of mean_operator, which needs one answer in place of rounds",
        ),
        Rule(
            "importance: auto",
            "asked for where the scenario says that public rows are drawn otherwise than the parties'",
            "cardiotocograms with other public rows, chosen by heart rate: accuracy .875, .874 with the same ones",
        ),
    )

    def idle(self) -> dict[str, str]:
        """Options that make no difference whatever their values, and beside which others."""
        return dict.fromkeys(("protect", "adjacency", "expected_rows"), "noise: off") if self.noise == OFF else {}

    def noise_at(self, trust: Trust) -> Place | Refused:
        """At every party, or as shares of one noise where a secure summation is trusted: each query is one sum."""
        if self.noise == OFF:
            return Place.NOWHERE
        if trust is not Trust.SECURE:
            return Place.PARTY
        return Refused(_NO_SUM) if self.noise == PUBLISHED else Place.SHARES

    def promise(self, public: PublicNumbers, epsilon: float, trust: Trust) -> Promise:
        """The epsilon that it aims at, for all queries of an exchange together."""
        counts = Sent(f"up to {self.rounds + 1} answers of counts in bins", None, self.noise != OFF)
        delta, adjacency = self.noise_of(epsilon, public.delta).delta, Adjacency(self.neighbours)
        return Promise.of(self, epsilon, delta, Unit(self.protect), counts, adjacency=adjacency)

    def expected_error(self, public: PublicNumbers, epsilon: float) -> Expected | None:
        """By the noise on a count beside all rows, as if a feature were told by its mean.

        Where rows are protected it is the constant answer at worst: answers that noise has drowned let it fall back to
        the most frequent class, whose share the first one tells. Where labels are, `mean_operator` does so as well.
        """
        if public.features is None or public.rows is None or public.terms is None or self.noise not in _CALIBRATED:
            return None
        noise = calibrate(
            "pure" if self.noise == "pure" else "gaussian" if self.noise == "gaussian" else "auto",
            features=public.features,
            queries=self.rounds + 1,
            epsilon=epsilon,
            delta=public.delta,
            unit=Unit(self.protect),
            adjacency=Adjacency(self.neighbours),
        )
        copies = float(public.terms.parties)
        if self.place is Place.SHARES:
            copies /= public.terms.honest
        loud = math.sqrt(_BINS * copies) * noise.deviation / public.rows
        told = "counts in bins tell as much as means"
        # Noise in bins is neither that of a sum nor that of responses, and is taken for the one that costs more.
        both = [
            expected_of_means(loud, public, "guess", told, responses=responses, shrunk=self.protect == "label")
            for responses in (False, True)
        ]
        found = max(both, key=lambda one: one.error)
        if found.constant is None or self.protect == "label":
            return found
        return replace(found, error=min(found.error, found.constant))

    def begin(self, world: World, epsilon: float, draws: int) -> ExchangeSession:
        """A session of one exchange for each noise draw."""
        from aggregator.protocols.error_marginals.session import ExchangeSession

        return ExchangeSession(world, self, epsilon, draws, share=self.place is Place.SHARES)

    def worst_case(self, units: int, public: PublicNumbers) -> WorstExchange:
        """One row or label, and queries that always ask about it; of shares, half are missing in place of a second."""
        from aggregator.protocols.error_marginals.session import worst_exchange

        change: Change = "label" if self.protect == "label" else self.adjacency
        return worst_exchange(units, change, shared=self.place is Place.SHARES)
