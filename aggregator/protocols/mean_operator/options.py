"""Options of `mean_operator`, the rules between them, and their consequences for noise and queries.

`MomentOptions` holds the options. `response_weight` compares two harms from public rows alone: that of an error of
randomised response, and that of noise of the same size on a sum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from aggregator.contract.protocol import refuse_misplaced, require_positive
from aggregator.trial.plan import PublicNumbers
from federation.contract.errors import InputError
from federation.contract.query import OFF, require_waves
from federation.contract.trust import TrustTerms
from federation.contract.validation import apart
from federation.mechanisms.sums.row_sums import (
    LEAST_EPSILON,
    calibrate_row_sums,
    calibrate_summed_response,
    regularisation,
)
from federation.numerics.rows import Floats
from federation.queries.row_sums import LARGEST_WEIGHT, RESPONSE

if TYPE_CHECKING:
    from aggregator.learners.linear_odd.losses import LinearOddLoss


_LEAST_REGULARISATION = 1e-8
_BY_L1 = ("auto", "sums", "laplace", "published_laplace")


class ExpectedNoise(NamedTuple):
    """The root mean square norm of the noise on the mean of y x, and whether it is that of randomised responses."""

    norm: float
    responses: bool


@dataclass(frozen=True)
class MomentOptions:
    """What parties send of their rows, under which noise, and what is minimised with it.

    loss: a linear-odd loss: `logistic`, `square`, `matsushita`, `unhinged`, `double_hinge`, `perceptron` or `rho` (the
        last two are least at weights of zero, which tell nothing, unless noise moves the mean operator far).
    rho: of the loss rho |z| - rho z + 1.
    noise: `auto` (that of the next two which harms less, by public rows and the number of each party's rows, or of all
        rows where noise is shared; `sums` where the parties' own rows are not used), `randomised_response` (of every
        label in the sum: best for few rows), `sums` (by public numbers, the least of the next three), `laplace` (per
        feature), `pure` (L2-Gamma), `gaussian` (uses delta), `published_laplace` (as published; what it really promises
        is epsilon times the root of the number of features) or `off` (NON-PRIVATE).
    l1_bound: of `auto`, `sums`, `laplace` and `published_laplace`: rows are cut to this norm in L1, too; null takes the
        root of the number of features, which no row of norm 1 exceeds.
    protect: one `label`, features being public, or one whole `row`.
    denoise: the sum is shrunk towards what a linear fit to labels from -1 to 1 can explain, by the known size of the
        noise, before anything is learned from it; costs nothing, and is done where the parties' own rows are used and
        have 1000 features at most.
    unlabelled: rows of the loss's label-free part: the parties' `own`, which are public when labels are protected, or
        the public `auxiliary` ones; `auto` takes the former where they may be used.
    expansion: of the features: `none`, `fourier` (random features of the Gaussian kernel) or `polynomial`.
    dimensions: of the Fourier features.
    bandwidth: gamma of the kernel exp(-gamma |x-y|^2) times the median squared distance; null is 16 over the number of
        features, at least 1.
    degree: of the polynomial, 2 or 3.
    regularisation: lambda of lambda |w|^2; null is max(1e-4, half the expected squared norm of the noise, or of what is
        left of it after `denoise`).
    """

    loss: Literal["logistic", "square", "matsushita", "rho", "unhinged", "perceptron", "double_hinge"] = "logistic"
    rho: float = 1.0
    noise: Literal["auto", "sums", "laplace", "pure", "gaussian", "randomised_response", "published_laplace", "off"] = (
        "auto"
    )
    l1_bound: float | None = None
    protect: Literal["label", "row"] = "label"
    denoise: bool = True
    unlabelled: Literal["auto", "own", "auxiliary"] = "auto"
    expansion: Literal["none", "fourier", "polynomial"] = "none"
    dimensions: int = 100
    bandwidth: float | None = None
    degree: int = 2
    regularisation: float | None = None

    def __post_init__(self) -> None:
        require_positive("rho", self.rho)
        if self.regularisation is not None and self.regularisation < _LEAST_REGULARISATION:
            least, given = apart(_LEAST_REGULARISATION, self.regularisation)
            raise InputError(
                f"regularisation must be at least {least}, got {given}: without it a "
                "noisy mean operator has no minimiser, and double precision finds none"
            )
        for name in ("l1_bound", "bandwidth"):
            if getattr(self, name) is not None:
                require_positive(name, getattr(self, name))
        refuse_misplaced(self, ("l1_bound",), "noise: auto, sums, laplace or published_laplace", self.noise in _BY_L1)
        require_waves(self.dimensions)
        if self.degree not in (2, 3):
            raise InputError(f"degree must be 2 or 3, got {self.degree}")
        refuse_misplaced(self, ("rho",), "loss: rho", self.loss == "rho")
        refuse_misplaced(self, ("dimensions", "bandwidth"), "expansion: fourier", self.expansion == "fourier")
        refuse_misplaced(self, ("degree",), "expansion: polynomial", self.expansion == "polynomial")
        if self.protect == "row" and self.unlabelled == "own":
            raise InputError("protect: row keeps the rows at the parties; use unlabelled: auxiliary")
        if self.noise == RESPONSE and self.protect == "row":
            raise InputError("noise: randomised_response hides every label by itself, and no row; use protect: label")

    @property
    def unlabelled_rows(self) -> str:
        """Whose rows without labels are used: "own" or "auxiliary"."""
        if self.loss == "unhinged":  # which is linear and looks at none, so that nobody need send any
            return "auxiliary"
        if self.unlabelled != "auto":
            return self.unlabelled
        return "own" if self.protect == "label" else "auxiliary"

    @property
    def denoises(self) -> bool:
        """Whether the sum is shrunk: there is noise, and the rows are known that the sum is over."""
        return self.denoise and self.noise != OFF and self.unlabelled_rows == "own"

    def chosen_loss(self) -> LinearOddLoss:
        """The linear-odd loss that these options name."""
        from aggregator.learners.linear_odd.losses import loss

        return loss(self.loss, rho=self.rho) if self.loss == "rho" else loss(self.loss)

    def spent_delta(self, delta: float) -> float:
        """The delta that the noise makes use of."""
        return delta if self.noise in ("auto", "sums", "gaussian") else 0.0

    @property
    def may_respond(self) -> bool:
        """Whether `auto` may take randomised response: labels alone are protected, and rows are sent as they are."""
        return self.protect == "label" and self.unlabelled_rows == "own"

    def expected_noise(self, public: PublicNumbers, epsilon: float, dimension: int, *, shared: bool) -> ExpectedNoise:
        """The noise on the mean of y x, parties having as many rows as each other.

        `public` tells rows and parties, and perhaps the spectrum of public rows: without it errors of responses count
        as those of a sum. `shared` tells whether parties share one noise.
        Raises `InputError` for numbers that a noise cannot work with.
        """
        rows, terms = public.rows or 1, public.terms or TrustTerms(1)
        responses, weight = math.inf, 1.0
        if epsilon >= LEAST_EPSILON and (self.noise == RESPONSE or (self.noise == "auto" and self.may_respond)):
            variance = calibrate_summed_response(epsilon).label_variance
            responses = rows * variance
            if public.spectrum and self.expansion == "none":
                weight = weight_along(np.array(public.spectrum), dimension, variance / rows)
        if self.noise == "randomised_response" or self.noise == "off":
            return ExpectedNoise(math.sqrt(responses) / rows if self.noise == RESPONSE else 0.0, self.noise == RESPONSE)
        shares = terms.honest if shared else 0
        noise = calibrate_row_sums(
            "auto" if self.noise == "sums" else self.noise,
            dimension=dimension,
            epsilon=epsilon,
            delta=self.spent_delta(public.delta),
            rows=max(1, rows // terms.parties),
            l1_bound=self.l1_bound,
            contributors=shares,
        )
        summed = terms.parties / (shares or 1) * noise.noise_norm() ** 2
        responds = weight * responses < summed
        return ExpectedNoise(math.sqrt(responses if responds else summed) / rows, responds)

    def asked(self, shared: bool) -> tuple[str | float | None, ...]:
        """The options that decide what is asked, its noise aside: with equal ones, noise is keyed alike.

        `shared` says whether parties share a noise.
        """
        given = () if self.l1_bound is None or self.noise == OFF else (self.l1_bound,)
        rows = (self.expansion, self.dimensions, self.bandwidth, self.degree)
        return (*given, self.protect, "secure" if shared else "parties", self.l1_bound, *rows)


_CURVATURE = 0.25  # of the even part of the logistic loss at 0
_ROWS = 1000  # that are looked at, evenly spaced: more would not change two digits


def response_weight(rows: Floats, noise_variance: float) -> float:
    """tr(G M G M) / tr(G M^2) times d / tr G, for public rows (n, d) of norm at most 1.

    `noise_variance` is the expected squared norm of the noise on the mean of y x, which the regularisation follows. 1
    where the rows go in all directions alike, and for rows that are all zero.

    Noise on the sum of y x goes in all directions alike. Errors of randomised response go where the rows are: their
    covariance is w G, with G the mean of x x'. Weights of a logistic model, to first order, are M mu with
    M = (G/4 + 2 lam)^-1, so an error of covariance N moves scores by tr(G M N M) on average. Where noise is small,
    M undoes G, and errors that go with the rows harm less. Where noise is large, lam rules, and these errors harm more,
    as the signal is there, too.

    Examples:
        >>> even, uneven = np.eye(2), np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
        >>> response_weight(even, 1.0), response_weight(uneven, 1.0), response_weight(uneven, 1e-4)
        (1.0, 1.2, 0.75)
    """
    some = rows[:: -(-len(rows) // _ROWS)]
    # Directions without rows have no scores, and count among the dimensions only.
    spectrum = np.square(np.linalg.svd(some, compute_uv=False)) / len(some)
    return weight_along(spectrum, rows.shape[1], noise_variance)


def weight_along(spectrum: Floats, features: int, noise_variance: float) -> float:
    """The same of rows of so many `features` with these second moments along their principal directions, up to all.

    Examples:
        >>> weight_along(np.array([0.75, 0.25]), 2, 1.0)
        1.2
    """
    if not spectrum.sum():
        return 1.0
    model = 1 / (_CURVATURE * spectrum + 2 * regularisation(noise_variance))
    harm = np.square(spectrum * model).sum() / (spectrum * model**2).sum()
    return float(np.clip(features * harm / spectrum.sum(), 1 / LARGEST_WEIGHT, LARGEST_WEIGHT))
