"""Protocol `mean_operator` (Patrini, Nielsen and Nock 2015): one noisy mean of y x, and any linear-odd loss."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from aggregator.contract.expectations import Expected, expected_of_means
from aggregator.contract.protocol import Place, Promise, Protocol, Refused, Requires, Rule, Sent, Trust
from aggregator.protocols.mean_operator.options import MomentOptions
from aggregator.trial.plan import PublicNumbers, product
from federation.contract.errors import InputError
from federation.contract.guarantee import Unit
from federation.contract.query import OFF
from federation.queries.row_sums import RESPONSE

if TYPE_CHECKING:
    from aggregator.protocols.mean_operator.session import MomentSession, WorstSums
    from aggregator.trial.trial import World


@dataclass(frozen=True)
class MeanOperator(MomentOptions, Protocol):
    """Parties send the sum of y x over their rows, with noise; that and unlabelled rows are all a linear model needs.

    Options: `aggregator.protocols.mean_operator.options.MomentOptions`.
    """

    task: ClassVar[str] = "classification"
    model: ClassVar[str] = "linear"
    requires: ClassVar[Requires] = Requires(
        two_classes=True, single_rows=True, features=("impute", "standardise", "constant")
    )
    why_default: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "noise: auto",
            "noise on the sum, of the least exact variance, or randomised response of every label: by the smaller "
            "expected error of each party's number of rows, weighed by where public rows go; noise on the sum where "
            "the parties' own rows are not used",
            "7 sets, 60 cells of epsilon .3 to 3: mean accuracy at 1, 100 and 1000 parties .829, .814 and .792, of "
            "noise on sums alone .829, .738 and .653, of randomised response .814, .815 and .792",
        ),
        Rule(
            "denoise: true",
            "the size of the noise is known and the rows are public: shrinking the sum towards what they explain of "
            "labels from -1 to 1 is free",
            "the same cells: mean accuracy .812, without it .811; within .01 of the best of both and of every single "
            "noise in 95 %, .015 below it at worst, without it in 92 % and .043 (census incomes)",
        ),
        Rule(
            "unlabelled: auto",
            "the parties' own rows where these are public, else the auxiliary ones",
            "breast cancer, one provider, epsilon 1: accuracy .94, .971 without noise; not compared with auxiliary "
            "rows alone",
        ),
    )

    suggested: ClassVar[tuple[Mapping[str, Any], ...] | Refused] = (
        {},
        {"noise": "sums"},
        {"noise": "randomised_response"},
        {"protect": "row"},
    )

    @classmethod
    def why_refused(cls, option: str, value: str) -> str | None:
        """Why a value of an option is not among those allowed, where there is more to say; None elsewhere."""
        from aggregator.learners.linear_odd.losses import NOT_LINEAR_ODD, loss

        if option == "loss" and value in NOT_LINEAR_ODD:
            try:
                loss(value)
            except InputError as error:
                return str(error)
        return None

    def idle(self) -> dict[str, str]:
        """Options that make no difference whatever their values, and beside which others."""
        found = {"denoise": "noise: off"} if self.noise == OFF else {}
        if self.unlabelled_rows == "auxiliary":
            found["denoise"] = "rows that are not the parties' own"
        return {**found, "unlabelled": "loss: unhinged"} if self.loss == "unhinged" else found

    @property
    def proper_loss(self) -> str | None:
        """`logistic`, `square` or `matsushita`, where one of them is minimised."""
        from aggregator.learners.linear_odd.losses import SymmetricProper

        return self.loss if isinstance(self.chosen_loss(), SymmetricProper) else None

    def noise_at(self, trust: Trust) -> Place:
        """At every party, or as shares of one noise where a secure summation is trusted.

        Randomised response hides every label by itself, whoever adds up.
        """
        if self.noise == OFF:
            return Place.NOWHERE
        return Place.SHARES if trust is Trust.SECURE and self.noise != RESPONSE else Place.PARTY

    def promise(self, public: PublicNumbers, epsilon: float, trust: Trust) -> Promise:
        """The epsilon that it aims at; with `published_laplace` that times the L1 bound of rows, as it really is."""
        features = self._features(public)
        sends = [Sent("the sum of its rows by class", features, self.noise != OFF)]
        if self.unlabelled_rows == "own":
            sends.append(Sent("its public rows without labels", product(public.largest_bag, features), False))
        if self.noise == "published_laplace":
            widest = math.sqrt(features or 1)
            epsilon *= widest if self.l1_bound is None else min(self.l1_bound, widest)
        return Promise.of(self, epsilon, self.spent_delta(public.delta), Unit(self.protect), *sends)

    def _features(self, public: PublicNumbers) -> int | None:
        """How many features a row has behind the expansion, at most."""
        if self.expansion == "fourier":
            return self.dimensions
        if public.features is None:
            return None
        whole = public.features + 1  # with a constant one where the map does not bound norms
        return whole if self.expansion == "none" else math.comb(whole + self.degree - 1, self.degree)

    def expected_error(self, public: PublicNumbers, epsilon: float) -> Expected | None:
        """By the exact size of the noise on the mean of y x, and the directions in which rows of this kind vary."""
        dimension = public.features if self.expansion == "none" else self._features(public)
        if dimension is None or public.rows is None or public.parties is None or self.noise == OFF:
            return None
        noise = self.expected_noise(public, epsilon, dimension, shared=self.place is Place.SHARES)
        known = replace(public, features=dimension, spectrum=public.spectrum if self.expansion == "none" else ())
        found = expected_of_means(noise.norm, known, "measured", responses=noise.responses, shrunk=self.denoises)
        if self.may_respond and self.noise in ("sums", RESPONSE):
            # Which of the two is better the rule of `auto` tells more surely than the difference of both expectations.
            auto = replace(self, noise="auto").expected_error(public, epsilon)
            assert auto is not None, "it needs the same numbers"
            found = replace(found, error=max(found.error, auto.error))
        return found

    def begin(self, world: World, epsilon: float, draws: int) -> MomentSession:
        """A session that asks once, and minimises for each noise draw."""
        from aggregator.protocols.mean_operator.session import MomentSession

        return MomentSession(world, self, epsilon, draws, share=self.place is Place.SHARES)

    def worst_case(self, units: int, public: PublicNumbers) -> WorstSums:
        """A row as long as any turns into its opposite; of shares, half are missing in place of a second such row."""
        from aggregator.protocols.mean_operator.session import FOURIER, worst_sums

        options = {"dimensions": FOURIER} if self.expansion == "fourier" else {}
        return worst_sums(units, shared=self.place is Place.SHARES, options=options)
