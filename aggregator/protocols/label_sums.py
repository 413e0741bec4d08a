"""Protocol `label_sums`: X'y with noise in the shape that costs least squares least, or X'X, X'y and y'y of rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from aggregator.collectors.collectors import Summed
from aggregator.contract.expectations import Expected
from aggregator.contract.protocol import Place, Promise, Refused, Rule, Sent, Trust, refuse_misplaced
from aggregator.contract.session import OneRound
from aggregator.regressions import models as risk
from aggregator.regressions import worst_case
from aggregator.regressions.label_protocol import LabelProtocol
from aggregator.regressions.models import from_moments, shrunk
from aggregator.releases.models import Described
from aggregator.trial.plan import PublicNumbers, product
from federation.contract.errors import InputError
from federation.contract.guarantee import Unit
from federation.contract.query import OFF
from federation.mechanisms.noise import gaussian
from federation.mechanisms.sums.row_sums import RowStatistic
from federation.queries.labels import LabelledRows, LabelSumsNoise, LabelSumsQuestion
from federation.queries.row_sums import RowMomentsNoise

if TYPE_CHECKING:
    from aggregator.trial.trial import World


@dataclass(frozen=True)
class NoisyLabelSums(LabelProtocol):
    """Parties send X'X of their rows and X'y, with noise that hides every label or row; the sums give least squares.

    protect: one `label`, features being public, or one whole `row`, replaced by another one. For `row` X'X, X'y and y'y
        get noise, rows are cut to norm 1 behind a map that whitens the public rows, and X'X is not sent where that of
        the public rows is as good. Beside it `noise: off` shows what the map itself costs.
    shape: of the noise that protects labels: `optimal` (of least excess risk), `whitened` or `isotropic`; each party's
        public rows decide it, or with `trust: secure` the aggregator's, as parties share one noise.
    noise: `auto` (the less of the next two, by the number of features, epsilon and delta), `gaussian` (uses delta),
        `pure` (L2-Gamma) or `off` (NON-PRIVATE). What protects rows is Gaussian.
    shrink: whether the model takes its noise into account: the noisier a direction, the closer it stays to the middle
        of the labels' range. That is nearly always more accurate. Without it the model is least squares, whose weights
        are right on average and at a small epsilon far off; predictions stay within the range either way.
    """

    why_default: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "noise: auto",
            "the less variance of L2-Gamma and Gaussian noise, by the number of features, epsilon and delta",
            "exact variances; house values, one party, (1, 1e-6): mean squared error .425, .424 without noise",
        ),
        Rule(
            "shape: optimal",
            "noise in the shape that costs least squares least, from public rows alone",
            "house values, Gaussian, (1, 1e-6): .425, beside .428 whitened and .424 without noise; with many parties, "
            "each of which adds noise, private_labels is ahead (federation advise says from where on)",
        ),
        Rule(
            "a model averaged over shrinkage by the known noise, predictions within the declared range",
            "the released sums, the exact covariance of their noise and the range: nothing is spent or tuned",
            "4 sets, 160 cells of epsilon .1 to 3: error .24 of least squares in geometric mean, 2.5 % above it at "
            "worst; 280 cells of 8 others: .23 and 2.4 %",
        ),
    )

    suggested: ClassVar[tuple[Mapping[str, Any], ...] | Refused] = (
        {},
        {"shape": "whitened"},
        {"protect": "row"},
    )

    with_delta: ClassVar[tuple[str, ...]] = ("auto", "gaussian")

    shape: Literal["optimal", "whitened", "isotropic"] = "optimal"
    noise: Literal["auto", "gaussian", "pure", "off"] = "auto"
    shrink: bool = True
    protect: Literal["label", "row"] = "label"

    def __post_init__(self) -> None:
        refuse_misplaced(self, ("shape",), "protect: label", self.protect == "label")
        if self.protect == "row" and self.noise == "pure":
            raise InputError(
                "noise: pure cannot protect a row here, whose noise is Gaussian and makes use of delta; use "
                "noise: gaussian, or protect: label"
            )

    def promise(self, public: PublicNumbers, epsilon: float, trust: Trust) -> Promise:
        """The epsilon that it aims at, for one label or row. Raises `InputError` for rows without a delta."""
        if self.protect == "row" and self.noise != OFF and public.delta == 0:
            raise InputError(
                "protect: row adds Gaussian noise, which needs delta above 0, got 0; set privacy.delta, as to 1.0e-6"
            )
        return super().promise(public, epsilon, trust)

    @property
    def unit(self) -> Unit:
        """What is protected."""
        return Unit(self.protect)

    def noise_at(self, trust: Trust) -> Place | Refused:
        """At every party, or as shares of one noise where a secure summation is trusted."""
        shared = self.noise != OFF and trust is Trust.SECURE
        return Place.SHARES if shared else super().noise_at(trust)

    def begin(self, world: World, epsilon: float, draws: int) -> OneRound:
        """A session that asks once, and learns a model from each noise draw. Raises `InputError` without a range."""
        if self.protect == "label" and self.place is not Place.SHARES:
            return super().begin(world, epsilon, draws)
        from aggregator.regressions.row_sessions import LabelTotalsSession, RowSession

        if self.protect == "label":
            delta = world.plan.public.delta if self.spends_delta else 0.0
            shared = RowMomentsNoise(self.noise, epsilon, delta)
            return LabelTotalsSession(world, shared, self.shape, shrunk_model=self.shrink, draws=draws)
        noise = RowMomentsNoise("off" if self.noise == OFF else "gaussian", epsilon, world.plan.public.delta)
        return RowSession(world, noise, secure=self.place is Place.SHARES, shrunk=self.shrink, draws=draws)

    def noise_of(self, epsilon: float, delta: float) -> LabelSumsNoise:
        """The noise that parties are asked for."""
        return LabelSumsNoise(self.noise, epsilon, delta)

    def asked(self) -> tuple[str | float | None, ...]:
        """The options that decide what is asked, its noise aside."""
        return (self.shape,)

    def question(self, rows: LabelledRows, least: int, noise: LabelSumsNoise, **sent: Any) -> LabelSumsQuestion:
        """All rows of every party."""
        return LabelSumsQuestion(noise, rows, self.shape, **sent)

    def sends(self, public: PublicNumbers) -> tuple[Sent, ...]:
        """X'X as it is, X'y with noise, and how much; where rows are protected X'y, y'y and perhaps X'X."""
        if self.protect == "row":
            most = None if public.features is None else RowStatistic(public.features + 1).dimension
            return (Sent("the sums X'X, X'y and y'y over its rows, cut to norm 1", most, self.noise != OFF),)
        square = product(public.features, public.features)
        gram = Sent("the second moment X'X of its public rows", square, False)
        moment = Sent("the sum X'y of rows and labels", public.features, self.noise != "off")
        if self.noise == OFF:
            return gram, moment
        rows = Sent("the sum X'1 of its public rows", public.features, False)
        if self.place is Place.SHARES:
            return gram, moment, rows
        return gram, moment, rows, Sent("the covariance of its noise, which its rows decide", square, False)

    def expected_error(self, public: PublicNumbers, epsilon: float) -> Expected | None:
        """The excess risk by noise on X'y, of a model that knows how loud it is; of rows without the error of X'X."""
        rank, rows, terms = public.features, public.rows, public.terms
        if rank is None or rows is None or terms is None or public.label_range is None or self.noise == OFF:
            return None
        low, high = public.label_range
        width = high - low
        copies, known = float(terms.parties), False
        if self.place is Place.SHARES:
            copies /= terms.honest
        if self.protect == "row":
            statistic = RowStatistic(rank)
            drawn = statistic.noise(epsilon=epsilon, delta=public.delta, rows=max(1, rows // terms.parties)).variance()
            # Rows of norm 1 have squares of 1/r behind a whitening map: in coordinates of X'X = I noise is r/n of it.
            each = statistic.moment_variance(drawn) * (width / 2) ** 2 * rank / rows
            assuming = "public rows tell X'X as well as one's own, whose error the formula leaves out"
        else:
            known = self.shape in public.traces
            if not known and self.shape == "isotropic":
                return None
            usual: risk.Shape = "whitened" if self.shape == "whitened" else "optimal"
            trace = public.traces[self.shape] if known else risk.typical_trace(rank, rows, usual)
            own, share = rank, trace / rank
            if self.place is not Place.SHARES:
                # A party of few rows adds noise in their directions only, and if these are whitened no more than noise
                # on each of their labels would be: all parties together one label's noise in every direction.
                own = max(1, min(rank, rows // terms.parties))
                share = share if self.shape == "isotropic" else min(share, 1 / terms.parties)
            each = self._variance(own, width, epsilon, public.delta) * share
            assuming = f"the noise has {'the shape of the public rows' if known else 'a shape as on usual tables'}"
        noise = copies * each
        error = risk.least_squares(rank, rows, risk.residual(public, width))
        error += risk.shrunk_risk(rank, rows, noise, width) if self.shrink else rank * noise / rows
        return risk.expected(error, math.sqrt(rank * noise / rows), width, known, assuming)

    def _variance(self, rank: int, width: float, epsilon: float, delta: float) -> float:
        """Of each coordinate of the noise that hides one label."""
        pure = (rank + 1) * (width / epsilon) ** 2
        if self.noise == "pure" or delta == 0:
            return pure
        normal = (width / gaussian.mu(epsilon, delta)) ** 2
        return normal if self.noise == "gaussian" else min(pure, normal)

    def worst_case(self, units: int, public: PublicNumbers) -> worst_case.WorstLabels | worst_case.WorstRows:
        """One label moves from one end of its range to the other; or one row of norm 1 turns into its opposite."""
        shared = self.place is Place.SHARES
        if self.protect == "row":
            return worst_case.worst_rows(units, public, shared=shared)
        if shared:
            return worst_case.worst_label_totals(units, public)
        return worst_case.worst_labels(units, public, worst_case.RUNS_OF_SUMS)

    def learn(self, answers: Summed, draw: int, seed: int) -> Described:
        """The model of one noise draw from the sums of all parties that answered, and of their noise."""
        question = answers.question
        assert isinstance(question, LabelSumsQuestion)
        label_range = question.rows.label_range
        gram, moment = answers.total("gram"), answers.total("moment")[draw]
        if self.noise == "off" or not self.shrink:
            return from_moments(gram, moment, label_range)
        noise, row_sum, rows = (answers.total(name) for name in ("covariance", "row_sum", "size"))
        return shrunk(gram, moment, noise, row_sum, float(rows), label_range)
