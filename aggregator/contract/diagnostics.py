"""How much of a release is signal, from public numbers and from the release itself; and the theorem's own promise.

Everything here may be published with a release: it is a function of public rows, the noise law and what the noise
has already covered. For `perturb: votes` the agreement is that of the labels, before a model is fitted to them.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from aggregator.contract.perturbable import Decoder, LinearScores, Perturbable
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
    agreement is a function of the auxiliary rows, hence of none where one is protected.
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
    from scipy.special import ndtr

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
