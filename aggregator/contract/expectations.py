"""Signal and noise of a release: expectations before it, diagnostics beside it, and the bound of a published theorem.

- `expected_accuracy` and `expected_of_means` give the cost of noise in classification as an `Expected`. The first knows
  only the norm of the noise. The second is for means, and knows the directions of the rows as well.
- `diagnose` reports what a release shows: its noise-to-signal ratio and the expected agreement.
- `excess_risk_bound` is the bound of Hamm et al. 2016, Theorem 4.

Everything here may be published with a release. It is a function of public rows, of the noise law and of values that
the noise already covers.
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from scipy.special import ndtr

from aggregator.contract.session import Decoder, LinearScores, Perturbable
from aggregator.learners.mean_operators.accuracy import (
    USUAL,
    loss_in_words,
    noisy_accuracies,
    predicted_accuracy,
    typical_spectrum,
)
from aggregator.trial.plan import PublicNumbers
from federation.contract.errors import InputError
from federation.mechanisms.noise.additive import AdditiveMechanism

_SMOOTHNESS = 0.25  # c: the logistic loss has a c-Lipschitz derivative
_NODES = 32  # of the Gauss-Hermite rule
_ROWS = 512  # auxiliary rows that the agreement is averaged over, evenly spaced: more would not change two digits


def excess_risk_bound(
    *,
    features: int,
    regularisation: float,
    parties: int,
    epsilon: float,
    rows: int,
    best_norm: float,
    noise_failure: float = 0.05,
    sample_failure: float = 0.05,
) -> float:
    """Hamm et al. 2016, Theorem 4: R(w_p) - R(w_0) of the private soft vote, with probability 1 - d_p - d_s.

        4 d^2 (c+lam) log^2(d/d_p) / (lam M epsilon)^2 + 16 (32 + log(1/d_s)) / (lam N) + lam/2 |w_0|^2

    for d features, M parties, N auxiliary rows, the published sensitivity and any w_0 of norm `best_norm`; d_p is
    `noise_failure`, d_s `sample_failure`. The paper gives the orders; these constants follow from its Lemmas 5 and 6
    and Sridharan et al. 2008, Theorem 1. The risk of a useless classifier is ln 2, which the bound exceeds a
    millionfold at the sizes of the paper's own experiments: it says how error scales, never how large it is. Raises
    `InputError` for numbers outside their ranges.

    Examples:
        >>> sizes = {"features": 10, "regularisation": 1e-2, "parties": 100, "epsilon": 1.0, "rows": 10_000}
        >>> round(excess_risk_bound(**sizes, best_norm=1.0), 1)  # a useless classifier has ln 2
        2925.1
    """
    given = (features, regularisation, parties, epsilon, rows)
    for name, value in zip(("features", "regularisation", "parties", "epsilon", "rows"), given, strict=True):
        if not 0 < value < math.inf:
            raise InputError(f"{name} must be positive and finite, got {value}")
    if not (0 < noise_failure < 1 and 0 < sample_failure < 1 and 0 <= best_norm < math.inf):
        raise InputError(
            "noise_failure and sample_failure must lie in (0, 1) and best_norm must be >= 0, "
            f"got {noise_failure}, {sample_failure} and {best_norm}"
        )
    noise = 2 * features * math.log(features / noise_failure) / (regularisation * parties * epsilon)
    estimation = 16 * (32 + math.log(1 / sample_failure)) / (regularisation * rows)
    return noise**2 * (_SMOOTHNESS + regularisation) + estimation + regularisation / 2 * best_norm**2


def noise_to_signal(mechanism: AdditiveMechanism, largest_norm: float) -> float:
    """E|noise| over the largest norm that the perturbed value can have: above 1 nothing can be learned.

    Examples:
        >>> from federation.mechanisms.noise.additive import calibrate
        >>> mechanism = calibrate("pure", sensitivity=0.01, dimension=5, epsilon=1.0, delta=0.0)
        >>> round(noise_to_signal(mechanism, largest_norm=1.0), 3)
        0.05
    """
    return mechanism.expected_noise_norm() / largest_norm


def diagnose(perturbable: Perturbable | Decoder, mechanism: AdditiveMechanism, noisy: np.ndarray) -> dict[str, float]:
    """What may be said beside a release: its `noise_to_signal` and `expected_agreement`.

    `noisy` (D,) is the value that was released. A number that this kind of release does not have is left out: the
    agreement is a function of the auxiliary rows, hence of none where one is protected. For `perturb: votes` the
    agreement is that of the labels, before a model is fitted to them.
    """
    found: dict[str, float] = {}
    if perturbable.largest_norm is not None:
        found["noise_to_signal"] = noise_to_signal(mechanism, perturbable.largest_norm)
    if perturbable.scores is not None:
        found["expected_agreement"] = float(expected_agreement(perturbable.scores, noisy[None, :], mechanism)[0])
    return found


def expected_agreement(scores: LinearScores, noisy: np.ndarray, mechanism: AdditiveMechanism) -> np.ndarray:
    """Expected fraction of auxiliary rows whose predicted class the noise left as it was, per draw: (draws,).

    From noisy values (draws, D) alone. The noise has variance s^2 in every coordinate; let the value itself be
    N(0, v q_j) a priori, q the `profile`, with v estimated by the excess of |noisy|^2 over D s^2 (0 when there is
    none). Given the noisy one it is then N(rho_j noisy_j, rho_j s^2) with rho_j = v q_j / (v q_j + s^2) (James and
    Stein 1961; Efron and Morris 1973). Scores are linear: without noise, those of row i are the scores of rho noisy
    plus independent noise of deviation t_i = spread_i(rho s^2) in each class, and the chance that the class k which
    leads with noise leads without it is an integral over one normal variable,
        int phi(u) prod_{j != k} Phi(u + (score_k - score_j) / t_i) du,
    which is 1/C where there is no signal. L2-Gamma noise is treated as Gaussian of the same covariance, which it
    approaches in many dimensions.
    """
    variance, width = mechanism.variance(), len(scores.profile)
    agreements = []
    for one in noisy:
        blocks = one.reshape(-1, width)
        excess = float(one @ one) - len(one) * variance
        prior = max(0.0, excess / (len(blocks) * scores.profile.sum())) * scores.profile
        signal = prior / (prior + variance)
        noisy_scores = scores.of(one)
        some = slice(None, None, -(-len(noisy_scores) // _ROWS))
        leads = _leads(scores.of((blocks * signal).ravel())[some], noisy_scores[some].argmax(axis=1))
        # Rows at the origin, and values without signal, have no scores at all: every class leads as likely.
        spread = np.maximum(scores.spread(signal * variance)[some], np.finfo(np.float64).tiny)
        agreements.append(float(_chance_of_leading(leads / spread[:, None]).mean()))
    return np.array(agreements)


def _leads(scores: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """By how much the chosen class (N,) leads each of the others, (N, C-1), in scores (N, C)."""
    others = np.arange(scores.shape[1]) != chosen[:, None]
    leading = np.take_along_axis(scores, chosen[:, None], axis=1)
    return np.asarray((leading - scores)[others].reshape(len(scores), -1))


def _chance_of_leading(leads: np.ndarray) -> np.ndarray:
    """P[Z_0 + lead_j > Z_j for all j] (N,), Z independent standard normal; closed form for a single rival."""
    if leads.shape[1] == 1:
        return np.asarray(ndtr(leads[:, 0] / math.sqrt(2)))
    chance = np.zeros(len(leads))
    for node, weight in zip(*_normal_nodes(), strict=True):
        chance += weight * ndtr(node + leads).prod(axis=1)
    return chance


@cache
def _normal_nodes() -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights (_NODES,) of the mean over a standard normal variable."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    return nodes, weights / weights.sum()


def expected_accuracy(noise: float, public: PublicNumbers, basis: "Basis", caveat: str = "") -> "Expected":
    """The share of rows that are told wrongly, by `predicted_accuracy`, beside that of the most frequent class.

    `noise` is relative to the largest signal, as b is. `caveat` says what else is taken for granted.

    Examples:
        >>> found = expected_accuracy(0.05, PublicNumbers(1e-6, classes=2, majority=0.6), "measured")
        >>> round(found.error, 2), found.constant, found.assuming
        (0.16, 0.4, '0.9 can be had without noise')
    """
    without = USUAL if public.attainable is None else public.attainable
    chance = min(1 / (public.classes or 2), without)
    assuming = f"{without:g} can be had without noise{caveat and ' and '}{caveat}"
    return Expected(1 - predicted_accuracy(noise, without, chance), noise, basis, assuming, _constant(public))


def expected_of_means(
    noise: float, public: PublicNumbers, basis: "Basis", caveat: str = "", *, responses: bool, shrunk: bool
) -> "Expected":
    """The same of two classes that are told by the mean of y x, whose noise has this norm, by `noisy_accuracies`.

    `public` tells how many features rows have, and perhaps their spectrum, which else is the typical one. Between which
    accuracies the unknown alignment of classes lets it be is said behind what is taken for granted.

    Examples:
        >>> known = PublicNumbers(1e-6, features=20, majority=0.6)
        >>> found = expected_of_means(0.05, known, "measured", responses=True, shrunk=True)
        >>> round(found.error, 2), found.assuming
        (0.12, '0.9 can be had without noise and classes differ as on usual tables')
    """
    without = USUAL if public.attainable is None else public.attainable
    spectrum = np.array(public.spectrum) if public.spectrum else typical_spectrum(public.features or 1)
    majority = 0.5 if public.majority is None else max(public.majority, 1 - public.majority)
    found = noisy_accuracies(spectrum, noise, without, majority, responses=responses, shrunk=shrunk)
    assuming = f"{without:g} can be had without noise{caveat and ', '}{caveat} and classes differ as on usual tables"
    least, most = (f"{one:.2f}" for one in (found.min(), found.max()))
    if least != most:
        assuming += f", else {least} to {most}"
    return Expected(float(1 - found.mean()), noise, basis, assuming, _constant(public))


def _constant(public: PublicNumbers) -> float | None:
    return None if public.majority is None else 1 - public.majority


Basis = Literal["exact", "measured", "guess"]


@dataclass(frozen=True)
class Expected:
    """What a release may be expected to miss, in the measure of its protocol's task: the smaller, the better.

    error: the share of rows that are told wrongly (`classification`), the mean squared error beyond that of the best
        linear model (`regression`), or the summed error of a set's class ratios (`class_ratio`).
    noise: the size of the noise as a share of the largest signal that the rows can give; None where that is not known.
    basis: whether the formula is `exact`, rests on what was `measured` of other releases, or is a `guess`.
    assuming: what it takes for granted, in words that go behind "if".
    constant: the same error of the best answer that is the same for all rows; None where public numbers do not tell it.

    Raises `InputError` for an error or noise below 0, or not a number.

    Examples:
        >>> Expected(0.2, 0.1, "measured", "nine in ten rows can be told without noise").loss
        'visible'
    """

    error: float
    noise: float | None
    basis: Basis
    assuming: str
    constant: float | None = None

    def __post_init__(self) -> None:
        for name in ("error", "noise", "constant"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < math.inf:
                raise InputError(f"{name} of an Expected must be a finite number of at least 0, got {value}")

    @property
    def loss(self) -> str:
        """The loss by the noise in a word; empty where it is not known."""
        return "" if self.noise is None else loss_in_words(self.noise)

    @property
    def hopeless(self) -> bool:
        """Whether the answer that is the same for all rows is expected to be as good."""
        return self.constant is not None and self.error >= self.constant
