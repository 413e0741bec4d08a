"""Two places to add the noise: the minimiser (output perturbation) or the votes' sufficient statistic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from aggregator.ensemble import Ensemble, Labels
from federation.guarantee import Assumption, Check
from federation.numerics.contrasts import contrasts
from federation.numerics.erm import attainable_tolerance, minimise
from federation.privacy import sensitivity
from federation.privacy.additive import AdditiveMechanism

Decode = Callable[[np.ndarray, AdditiveMechanism | None], np.ndarray]

VOTE_ASSUMPTIONS = (
    Assumption("every party casts one vote from the declared classes on every auxiliary row; "
               "an answer that does not is replaced by the uniform vote", Check.ENFORCED),
    Assumption("every party counts once, and a node answers for its own parties only; "
               "that a node's parties are different people is for whoever enrols them", Check.DECLARED),
    Assumption("sensitivities use the declared number of parties; a missing party is a uniform vote, "
               "and a party that fails costs no other party its vote", Check.ENFORCED),
    Assumption("whether and when a party answers is not protected; below the quorum nothing is released",
               Check.DECLARED),
    Assumption("auxiliary rows are public whoever they come from, and with the feature map and all options "
               "were chosen without private data", Check.DECLARED),
)  # fmt: skip
VOTE_CHECKS = ("votes were checked on arrival; refused and missing ones count as uniform",)


@dataclass(frozen=True)
class Perturbable:
    """A private vector, how far one party can move it, and what turns its noisy copies into models.

    `value` (D,) has L2 sensitivity `sensitivity` when one party is replaced. `decode` maps noisy values (draws, D),
    with the mechanism that made them (None without noise), to weights (draws, C, d); it sees public data only.
    """

    value: np.ndarray
    sensitivity: float
    decode: Decode
    assumptions: tuple[Assumption, ...]
    checks: tuple[str, ...]


def two_rows(weights: np.ndarray) -> np.ndarray:
    """Binary weights (..., d) as one row per class (..., 2, d), with the same decisions."""
    return np.stack([-weights / 2, weights / 2], axis=-2)


def perturb_output(ensemble: Ensemble, labels: Labels, form: str, regularisation: float) -> Perturbable:
    """Noise on the minimiser (Hamm, Alg. 1 and 2), with the solver's public tolerance charged (2 g / lam).

    `form` is published, tight or diameter. Raises `InputError` when public rows are longer than 1.
    """
    stretch = ensemble.public.require_unit_norms()
    weights = ensemble.minimiser(labels, regularisation)
    bound = sensitivity.soft_vote if labels == "soft" else sensitivity.majority_vote
    reach = bound(form, regularisation=regularisation, parties=ensemble.parties, classes=ensemble.classes)

    def decode(noisy: np.ndarray, _: AdditiveMechanism | None) -> np.ndarray:
        shaped = noisy.reshape(len(noisy), *weights.shape)
        return two_rows(shaped) if weights.ndim == 1 else shaped

    return Perturbable(
        weights.ravel(),
        stretch * reach + sensitivity.solver_slack(ensemble.gradient_tolerance(regularisation), regularisation),
        decode,
        (
            *VOTE_ASSUMPTIONS,
            Assumption("auxiliary rows have norm at most 1", Check.CHECKED),
            Assumption("the minimiser meets a public gradient tolerance, whose reach is charged", Check.CHECKED),
        ),
        (*VOTE_CHECKS, "norms of the auxiliary rows are at most 1", "the minimiser is certified"),
    )


def perturb_statistic(
    ensemble: Ensemble,
    decoder: Literal["least_squares", "erm"],
    shrinkage: float,
    regularisation: float | None,
) -> Perturbable:
    """Noise on the votes' mean operator in public whitened coordinates; the model is post-processing.

    The value is B' A' Z / N, shape (C-1, r) flattened: B are class contrasts, A the label shares, Z the auxiliary
    rows in the whitened eigenbasis of X'X/N. One replaced party moves it by at most sqrt(2)/M, whatever the norms of
    the rows; what rounding adds is charged. Directions outside the basis are not released at all.
    """
    whitening = ensemble.public.whitening
    basis = contrasts(ensemble.classes)
    value = basis.T @ (ensemble.tally.shares().T @ whitening.rows) / len(whitening.rows)
    decode = _least_squares(ensemble, shrinkage) if decoder == "least_squares" else _erm(ensemble, regularisation)
    return Perturbable(
        value.ravel(),
        whitening.norm * sensitivity.statistic(ensemble.parties) + 2 * whitening.rounding(ensemble.classes),
        decode,
        (
            *VOTE_ASSUMPTIONS,
            Assumption("the statistic is projected to the range of the public rows before noise", Check.ENFORCED),
        ),
        VOTE_CHECKS,
    )


def _least_squares(ensemble: Ensemble, shrinkage: float) -> Decode:
    """W = (mu - 1 xbar'/C) (Sigma + c I)^-1 with c = shrinkage * tr(Sigma)/r: scores by least squares on shares."""
    whitening, basis = ensemble.public.whitening, contrasts(ensemble.classes)
    variances = whitening.deviations**2
    filters = whitening.deviations / (variances + shrinkage * variances.mean())

    def decode(noisy: np.ndarray, _: AdditiveMechanism | None) -> np.ndarray:
        blocks = noisy.reshape(len(noisy), basis.shape[1], len(filters))
        return basis @ (blocks * filters) @ whitening.directions.T

    return decode


def _erm(ensemble: Ensemble, regularisation: float | None) -> Decode:
    """The softmax risk of the noisy statistic; by default lam = E|noise|, a rule in public numbers only."""
    whitening, basis = ensemble.public.whitening, contrasts(ensemble.classes)
    rows = ensemble.public.rows
    uniform = np.tile(rows.mean(axis=0) / ensemble.classes, (ensemble.classes, 1))

    def decode(noisy: np.ndarray, mechanism: AdditiveMechanism | None) -> np.ndarray:
        strength = regularisation
        if strength is None:
            strength = 1e-4 if mechanism is None else mechanism.expected_noise_norm()
        tolerance = attainable_tolerance(1e-6 * strength, rows, strength)
        blocks = noisy.reshape(len(noisy), basis.shape[1], len(whitening.deviations))
        statistics = basis @ (blocks * whitening.deviations) @ whitening.directions.T + uniform
        return np.stack([
            minimise(rows, statistic, strength, gradient_tolerance=tolerance).weights for statistic in statistics
        ])  # fmt: skip

    return decode
