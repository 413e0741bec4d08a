"""Protocol `class_ratio` (Iyer, Nath and Sarawagi 2016): class ratios of unlabelled sets from set-labelled bags."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from aggregator.contract.expectations import Expected
from aggregator.contract.protocol import Place, Promise, Protocol, Refused, Requires, Rule, Sent, Trust
from aggregator.protocols.class_ratio.options import RatioOptions
from aggregator.protocols.class_ratio.worst_case import LEAST, ONE_FREQUENCY, WorstBags, WorstCommon, worst_common
from aggregator.trial.plan import PublicNumbers, product
from federation.contract.errors import InputError
from federation.contract.guarantee import Unit
from federation.contract.query import OFF
from federation.mechanisms.counts.calibration import CountNoise, calibrate, published_guarantee

if TYPE_CHECKING:
    from aggregator.protocols.class_ratio.session import RatioSession
    from aggregator.trial.trial import World

_RUNS = 100_000  # of an audit
_ADDED_UP = ("independent_laplace", "dirichlet_floor", "dirichlet_shifted", "laplace_prior")  # over a person's bags
_SEVERAL_BAGS = (
    "a person's claim is the sum of those of its bags, of which answers with this noise together show a part only; no "
    "smaller sum is proved"
)
_EXPECTED: Mapping[str, CountNoise] = {  # those whose error even counts tell
    name: name for name in ("auto", "gaussian", "laplace", "pure", "independent_laplace")
}
_BAGS_APART = (
    "trust: secure: every party numbers the bags that it has, so that its first bag has nothing in common with the "
    "first one of another, and a sum over parties would mix them; where they are the same at all parties set "
    "parties.common_bags: true, else use trust: none, where every party hides its own counts"
)
_SHARED = ("auto", "gaussian", "pure")
_NO_SHARES = (
    "its noise has no shares that parties could draw by themselves; use noise: auto, gaussian or pure, or trust: none, "
    "where every party hides its own counts"
)
_PURE = ("pure", "published_laplace", "laplace_prior")  # whatever delta is given


@dataclass(frozen=True)
class ClassRatio(RatioOptions, Protocol):
    """Parties hold bags of rows; they release private label counts, and what the bags look like without labels.

    The default was the most accurate on census, particle and digit data, at any noise that left something to learn, and
    no worse than the mean of all bags on bags of persons, occupations and services, which differ in more than ratios.
    `estimator: whitened` with `submit: embedding` is less accurate and needs of a bag a few hundred numbers, no row.
    Options: `aggregator.protocols.class_ratio.options.RatioOptions`.
    """

    task: ClassVar[str] = "class_ratio"
    model: ClassVar[str] = "class_ratio"
    requires: ClassVar[Requires] = Requires(bags=True, features=("impute", "scale"))  # the kernel does the rest
    why_default: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "noise: auto",
            "the less distorting one of lattice Laplace and discrete Gaussian, by classes, bags, epsilon and delta",
            "exact distortions; census incomes, 4 bags of 600 rows, (.05, .05): L1 error .033 with it, .067 with "
            "published Laplace noise",
        ),
        Rule(
            "estimator: auto",
            "the bag classifier, or a stack of estimators where bags differ in more than their ratios: by a test of "
            "the bags' means on released counts, and errors by leaving bags out",
            "4 simulated worlds: as the bag classifier, .043 to .137; 8 worlds of natural or tilted bags: never above "
            "the mean of bags, .006 above the bag classifier at most, up to .20 below it; few and very different bags "
            "can mislead it",
        ),
    )

    suggested: ClassVar[tuple[Mapping[str, Any], ...] | Refused] = (
        {},
        {"submit": "embedding"},
        {"submit": "embedding", "protect": "row", "noise": "gaussian"},
    )

    def noise_at(self, trust: Trust) -> Place | Refused:
        """At every party, who trusts nobody, or as shares of one noise where a secure summation is trusted."""
        if self.noise == OFF:
            return Place.NOWHERE
        if trust is not Trust.SECURE:
            return Place.PARTY
        return Place.SHARES if self.noise in _SHARED else Refused(_NO_SHARES)

    def promise(self, public: PublicNumbers, epsilon: float, trust: Trust) -> Promise:
        """For all labels of a person where persons are known, one label, or a whole row.

        Raises `InputError` for a delta that `published_gaussian` cannot aim at, and where counts would be added of bags
        that are not the same at all parties.
        """
        if self.place is Place.SHARES and public.common_bags is False:
            raise InputError(_BAGS_APART)
        sends = self._sends(public)
        if self.noise == "published_dirichlet":
            return Promise(published_guarantee(epsilon, public.delta), sends)
        delta = 0.0 if self.noise in _PURE else public.delta
        if self.noise == "published_gaussian":  # may miss its aim, whatever the number of classes
            shares = max(1, public.rows_per_person)
            one = calibrate("published_gaussian", classes=2, epsilon=epsilon / shares, delta=public.delta / shares)
            delta = shares * one.delta
        unit = Unit.ROW if self.protect == "row" else Unit.PERSON if public.rows_per_person else Unit.LABEL
        return Promise.of(self, epsilon, delta, unit, *sends)

    def _sends(self, public: PublicNumbers) -> tuple[Sent, ...]:
        """The values that leave a party. Where parties share the noise, only sums are seen, and rows without labels."""
        shared, hidden, sums = self.place is Place.SHARES, self.protect == "row", product(public.bags, self.dimensions)
        counted = "label counts of every bag" if shared else "label counts of its bags"
        counts = Sent(counted, product(public.bags, public.classes), self.noise != OFF)
        most = product(public.bags, public.largest_bag, public.features)
        rows = Sent("the rows of its bags without labels", most, False)
        if not shared:
            embedded = rows if self.submit == "rows" else Sent("the mean of each bag", sums, hidden)
            return counts, embedded
        summed = Sent("sums of its rows in all bags", sums, hidden)
        if hidden:
            return counts, summed
        return (
            counts,
            Sent("how many rows it has of each bag", public.bags, False),
            rows if self.submit == "rows" else summed,
        )

    def expected_error(self, public: PublicNumbers, epsilon: float) -> Expected | None:
        """The noise of a bag's ratios and the chance in its rows; how unlike bags are nobody can tell by numbers."""
        if public.classes is None or public.largest_bag is None or self.noise not in _EXPECTED:
            return None
        if self.place is Place.SHARES:  # how many rows all parties have of a bag nobody knows by these numbers
            return None
        from federation.mechanisms.counts.comparison import distortion

        share = self.label_share if self.protect == "row" else 1.0
        spent = share * epsilon / max(1, public.rows_per_person)
        counts = np.full(public.classes, max(1, public.largest_bag // public.classes))
        delta = 0.0 if self.noise in _PURE else public.delta
        noise = distortion(
            calibrate(_EXPECTED[self.noise], classes=public.classes, epsilon=spent, delta=delta), counts
        ).mean
        sampling = 1 / math.sqrt(public.largest_bag)
        assuming = "bags differ in their ratios and in nothing else, and in these by much; only a pilot tells"
        return Expected(noise + sampling, noise, "guess", assuming)

    def begin(self, world: World, epsilon: float, draws: int) -> RatioSession:
        """A session that asks once, and fits an estimator to each noise draw."""
        from aggregator.protocols.class_ratio.session import CommonSession, RatioSession

        common = Trust(self.trust) is Trust.SECURE and world.plan.public.common_bags
        return (CommonSession if common else RatioSession)(world, self, epsilon, draws)

    def worst_case(self, units: int, public: PublicNumbers) -> WorstBags | WorstCommon:
        """One party; a unit leaves class 0 for class 1, and with `protect: row` one feature for one far away.

        Other rows are at the floor where one is declared, and there are none where pseudo-counts stand in for them. Of
        sums over parties that is at the first of them, and in place of two units half of the shares are missing.
        """
        if self.place is Place.SHARES:
            return worst_common(self._worst_bags(1, public), units)
        return self._worst_bags(units, public)

    def _worst_bags(self, units: int, public: PublicNumbers) -> WorstBags:
        classes, persons = public.classes or 2, public.rows_per_person
        unit = "one row or label changes"
        if persons:
            unit = f"one person changes the labels of its rows, of which {persons} count"
        return WorstBags(
            f"one party, {classes} classes, {unit}",
            np.array([[0.0], [1.0]]),
            _RUNS,
            world={
                "classes": tuple(map(str, range(classes))),
                "parties": classes,  # as many as class ratios need, of which one is asked
                "bags": persons + 1,
                "largest_bag": LEAST * classes,
                "rows_per_person": persons,
            },
            # Noise scales with the sensitivity, which is the same for any number of random features.
            options={"dimensions": ONE_FREQUENCY} if self.protect == "row" else {},
            units=units,
            classes=classes,
            rows_per_person=persons,
            least=self.floor or (0 if self.pseudo_count is not None else LEAST),
            loose=_SEVERAL_BAGS if persons > 1 and self.noise in _ADDED_UP else "",
        )
