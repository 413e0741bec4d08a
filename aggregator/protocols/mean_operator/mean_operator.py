"""Protocol `mean_operator` (Patrini, Nielsen and Nock 2015): one noisy mean of y x, and any linear-odd loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from aggregator.contract.limits import require_waves
from aggregator.contract.option_rules import refuse_misplaced, require_positive
from aggregator.contract.protocol import Place, Protocol, Refused, Requires, Trust
from aggregator.contract.public_numbers import Promise, PublicNumbers, Sent, product
from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, NoGuarantee, Unit
from federation.contract.question import OFF

if TYPE_CHECKING:
    from aggregator.learners.linear_odd.losses import LinearOddLoss
    from aggregator.protocols.mean_operator.moment_session import MomentSession
    from aggregator.protocols.mean_operator.worst_sums import WorstSums
    from aggregator.regressions.worst_labels import WorstLabels
    from aggregator.world.world import World

_RESPONSE = "randomised_response"
_LEAST_REGULARISATION = 1e-8
_BY_L1 = ("auto", "laplace", "published_laplace")


@dataclass(frozen=True)
class MeanOperator(Protocol):
    """Parties send the sum of y x over their rows, with noise; that and unlabelled rows are all a linear model needs.

    loss: a linear-odd loss: `logistic`, `square`, `matsushita`, `unhinged`, `double_hinge`, `perceptron` or `rho` (the
        last two are least at weights of zero, which tell nothing, unless noise moves the mean operator far).
    rho: of the loss rho |z| - rho z + 1.
    noise: `auto` (by public numbers, the least of the next three), `laplace` (per feature), `pure` (L2-Gamma),
        `gaussian` (uses delta), `randomised_response` (of every label, which then goes with its row),
        `published_laplace` (as published; what it really promises is epsilon times the root of the number of features)
        or `off` (NON-PRIVATE).
    l1_bound: of `auto`, `laplace` and `published_laplace`: rows are cut to this norm in L1, too; null takes the root of
        the number of features, which no row of norm 1 exceeds.
    protect: one `label`, features being public, or one whole `row`.
    summation: each party hides its sum by itself (`parties`), or adds a share of the noise to a `secure` summation,
        which reveals only the sum over all; shares are such that a quorum of honest parties suffices.
    unlabelled: rows of the loss's label-free part: the parties' `own`, which are public when labels are protected, or
        the public `auxiliary` ones; `auto` takes the former where they may be used.
    expansion: of the features: `none`, `fourier` (random features of the Gaussian kernel) or `polynomial`.
    dimensions: of the Fourier features.
    bandwidth: gamma of the kernel exp(-gamma |x-y|^2) times the median squared distance; null is 16 over the number of
        features, at least 1.
    degree: of the polynomial, 2 or 3.
    regularisation: lambda of lambda |w|^2; null is max(1e-4, half the expected squared norm of the noise).
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}
    task: ClassVar[str] = "classification"
    model: ClassVar[str] = "linear"
    requires: ClassVar[Requires] = Requires(two_classes=True, single_rows=True, features=("standardise", "constant"))
    why_default: ClassVar[str] = (
        "the default: one answer serves every draw of the model; expansion: fourier is for classes that no line\n"
        "divides, summation: secure for many parties"
    )

    loss: Literal["logistic", "square", "matsushita", "rho", "unhinged", "perceptron", "double_hinge"] = "logistic"
    rho: float = 1.0
    noise: Literal["auto", "laplace", "pure", "gaussian", "randomised_response", "published_laplace", "off"] = "auto"
    l1_bound: float | None = None
    protect: Literal["label", "row"] = "label"
    summation: Literal["parties", "secure"] = "parties"
    unlabelled: Literal["auto", "own", "auxiliary"] = "auto"
    expansion: Literal["none", "fourier", "polynomial"] = "none"
    dimensions: int = 100
    bandwidth: float | None = None
    degree: int = 2
    regularisation: float | None = None

    def __post_init__(self) -> None:
        require_positive("rho", self.rho)
        if self.regularisation is not None and self.regularisation < _LEAST_REGULARISATION:
            raise InputError(
                f"regularisation must be at least {_LEAST_REGULARISATION:g}, got {self.regularisation:g}: without it a "
                "noisy mean operator has no minimiser, and double precision finds none"
            )
        for name in ("l1_bound", "bandwidth"):
            if getattr(self, name) is not None:
                require_positive(name, getattr(self, name))
        refuse_misplaced(self, ("l1_bound",), "noise: auto, laplace or published_laplace", self.noise in _BY_L1)
        require_waves(self.dimensions)
        if self.degree not in (2, 3):
            raise InputError(f"degree must be 2 or 3, got {self.degree}")
        refuse_misplaced(self, ("rho",), "loss: rho", self.loss == "rho")
        refuse_misplaced(self, ("dimensions", "bandwidth"), "expansion: fourier", self.expansion == "fourier")
        refuse_misplaced(self, ("degree",), "expansion: polynomial", self.expansion == "polynomial")
        if self.protect == "row" and self.unlabelled == "own":
            raise InputError("protect: row keeps the rows at the parties; use unlabelled: auxiliary")
        if self.noise == _RESPONSE and (self.protect == "row" or self.summation == "secure"):
            raise InputError(
                "noise: randomised_response sends every row with a private label; use protect: label and summation: "
                "parties"
            )

    @classmethod
    def why_refused(cls, option: str, value: str) -> str | None:
        """Why a value of an option is not among those allowed, where there is more to say; None elsewhere."""
        from aggregator.learners.linear_odd.catalogue import NOT_LINEAR_ODD, loss

        if option == "loss" and value in NOT_LINEAR_ODD:
            try:
                loss(value)
            except InputError as error:
                return str(error)
        return None

    def idle(self) -> dict[str, str]:
        """Options that make no difference whatever their values, and beside which others."""
        found = {"summation": "noise: off"} if self.noise == OFF else {}
        return {**found, "unlabelled": "loss: unhinged"} if self.loss == "unhinged" else found

    @property
    def unlabelled_rows(self) -> str:
        """Whose rows without labels are used: "own" or "auxiliary"."""
        if self.loss == "unhinged":  # which is linear and looks at none, so that nobody need send any
            return "auxiliary"
        if self.unlabelled != "auto":
            return self.unlabelled
        return "own" if self.protect == "label" else "auxiliary"

    def chosen_loss(self) -> LinearOddLoss:
        """The loss."""
        from aggregator.learners.linear_odd.catalogue import loss

        return loss(self.loss, rho=self.rho) if self.loss == "rho" else loss(self.loss)

    def spent_delta(self, delta: float) -> float:
        """The delta that the noise makes use of."""
        return delta if self.noise in ("auto", "gaussian") else 0.0

    def asked(self) -> tuple[str | float | None, ...]:
        """The options that decide what is asked, its noise aside: with equal ones, noise is keyed alike."""
        given = () if self.l1_bound is None or self.noise == OFF else (self.l1_bound,)
        rows = (self.expansion, self.dimensions, self.bandwidth, self.degree)
        return (*given, self.protect, self.summation, self.l1_bound, *rows)

    def noise_at(self, trust: Trust) -> Place | Refused:
        """At every party, or as shares of one noise, which hide nothing but in a sum."""
        if self.noise == OFF:
            return Place.NOWHERE
        if self.summation == "parties":
            return Place.PARTY
        if trust is Trust.NONE:
            return Refused("summation: secure adds shares of one noise, which somebody must sum without looking")
        return Place.SHARES

    def promise(self, public: PublicNumbers, epsilon: float, trust: Trust) -> Promise:
        """The epsilon that it aims at; with `published_laplace` that times the L1 bound of rows, as it really is."""
        whole = "" if self.summation == "parties" else "a share of "
        features = self._features(public)
        sends = [Sent(f"{whole}the sum of its rows by class", features, self.noise != OFF)]
        if self.noise == _RESPONSE:
            sends = [Sent("a label of every row", public.largest_bag, True)]
        if self.unlabelled_rows == "own" or self.noise == _RESPONSE:
            sends.append(Sent("its public rows without labels", product(public.largest_bag, features), False))
        if self.noise == OFF:
            return Promise(NoGuarantee("noise is off"), tuple(sends))
        if self.noise == "published_laplace":
            widest = math.sqrt(features or 1)
            epsilon *= widest if self.l1_bound is None else min(self.l1_bound, widest)
        guarantee = Guarantee(
            epsilon, self.spent_delta(public.delta), Unit(self.protect), Adjacency.REPLACE, type(self).__name__
        )
        return Promise(guarantee, tuple(sends))

    def _features(self, public: PublicNumbers) -> int | None:
        """How many features a row has behind the expansion, at most."""
        if self.expansion == "fourier":
            return self.dimensions
        if public.features is None:
            return None
        whole = public.features + 1  # with a constant one where the map does not bound norms
        return whole if self.expansion == "none" else math.comb(whole + self.degree - 1, self.degree)

    def begin(self, world: World, epsilon: float, draws: int) -> MomentSession:
        """A session that asks once, and minimises for each noise draw."""
        from aggregator.protocols.mean_operator.moment_session import MomentSession

        return MomentSession(world, self, epsilon, draws)

    def worst_case(self, units: int, public: PublicNumbers) -> WorstSums | WorstLabels:
        """A row as long as any turns into its opposite; of shares, half are missing in place of a second such row."""
        from aggregator.protocols.mean_operator.worst_sums import ALONE, FOURIER, WORLD, worst_sums
        from aggregator.regressions.worst_labels import CHANGED, RUNS, TWO_COLUMNS, WorstLabels

        options = {"dimensions": FOURIER} if self.expansion == "fourier" else {}
        if self.noise == _RESPONSE:
            return WorstLabels(ALONE, TWO_COLUMNS, RUNS, world=WORLD, options=options, changed=units, rows=CHANGED)
        return worst_sums(units, shared=self.summation == "secure", options=options)
