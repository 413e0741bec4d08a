"""From noisy vote statistics to models: post-processing, which sees public rows and noise laws only.

A decoder takes draws of the statistic B' A' Y / N (`aggregator.protocols.soft_vote.decoders`), (draws, (C-1) r), and
gives weights (draws, C, d). Coordinates are Y = X U / t; v are the variances of the rows along U.

Maximum-entropy models within a given distance of a noisy statistic (Morozov's discrepancy principle).

    minimise  R(w) + threshold |w|,    R(w) = mean_i log sum_k exp(w_k'x_i) - <mu, w>      (or its binary form)

is the dual of maximising the entropy of the labels subject to |mu(w) - mu| <= threshold, mu(w) being the model's
own statistic (Dudik, Phillips and Schapire 2007, J. Mach. Learn. Res. 8). Where w is not 0 it is the minimiser w_lam
of the ridge risk R(w) + lam/2 |w|^2 with lam |w_lam| = threshold. Both sides are monotone: lam |w_lam| =
|grad R(w_lam)| rises with lam, up to |grad R(0)|, while |w_lam| falls.

Noisy votes: all vote shares are released, and whatever learns from the labels is post-processing.

The Gaussian noisy maximum of PATE (Papernot et al. 2018) on every auxiliary row at once, charged as one release of
N (C-1) numbers, which for many rows is far less than N releases of one.

Statistic perturbation: noise on all that a risk takes from the votes; the model is post-processing.
"""

from __future__ import annotations

import math

import numpy as np

from aggregator.contract.session import Decode, Decoder, LinearScores, Perturbable
from aggregator.ensembles.output import Ensemble
from aggregator.ensembles.sessions import PUBLIC_ROWS, VOTE_ASSUMPTIONS, VOTE_CHECKS, two_rows
from aggregator.trial.public_rows import Coordinates
from federation.contract.errors import InputError
from federation.contract.guarantee import Assumption, Check
from federation.mechanisms.accounting import sensitivity
from federation.mechanisms.noise.additive import AdditiveMechanism
from federation.numerics.erm import attainable_tolerance, minimise, risk_minimiser
from federation.numerics.label_losses import label_loss
from federation.numerics.rows import Floats, contrast_rounding, contrasts

SMALLEST_RIDGE = 1e-6  # where (nearly) no distance is asked for, and a minimiser need not exist
_ACCURACY = 1e-4  # relative, of the distance
_SECANT_STEPS = 12  # a handful is usual; whatever is left after them is halved
_STEPS = 100
_FLATTEST = 0.02  # least slope that a secant step trusts


def discrepancy_minimiser(rows: Floats, mu: Floats, threshold: float) -> Floats:
    """The minimiser of R(w) + threshold |w|, in the shape of mu; its distance is met to a ten-thousandth.

    `rows` (N, d); `mu` (d,) binary or (C, d) multinomial, any vectors, in the coordinates in which distances are
    Euclidean. Zero when the threshold is at least |grad R(0)|. Never regularised by less than a ridge of 1e-6, whose
    distance may then exceed the threshold. Raises `InputError` for a threshold that is negative or not finite, and
    for arrays as `federation.numerics.erm.minimise`.

    Examples:
        >>> rows, mu = np.eye(2), np.array([0.3, 0.2])  # of weights 0 it is (1/4, 1/4)
        >>> discrepancy_minimiser(rows, mu, threshold=0.02).round(2)
        array([ 0.29, -0.29])
        >>> discrepancy_minimiser(rows, mu, threshold=0.1)  # which weights of 0 meet
        array([0., 0.])
    """
    if not 0 <= threshold < math.inf:
        raise InputError(f"threshold must be finite and not negative, got {threshold}")
    at_zero, _ = label_loss(rows, mu, SMALLEST_RIDGE).gradient(np.zeros(np.size(mu)))
    farthest = float(np.linalg.norm(at_zero))
    if threshold >= farthest:
        return np.zeros(np.shape(mu))
    accuracy = _ACCURACY * max(threshold, _ACCURACY * farthest)
    floor = low = math.log(SMALLEST_RIDGE)
    high = math.inf
    # The quadratic model at w = 0 has lam |w_lam| = |grad R(0)| lam / (lam + curvature).
    curvature = float(np.einsum("nd,nd->", rows, rows)) / rows.size / (4 if np.ndim(mu) == 1 else len(mu))
    ridge = max(SMALLEST_RIDGE, curvature * threshold / (farthest - threshold))
    at, slope, last = math.log(ridge), curvature / (ridge + curvature), None
    weights, floored = np.zeros(np.shape(mu)), False
    for step in range(_STEPS):
        ridge = math.exp(at)
        tolerance = attainable_tolerance(accuracy / 4, rows, ridge)
        weights = minimise(rows, mu, ridge, gradient_tolerance=tolerance, start=weights).weights
        distance = ridge * float(np.linalg.norm(weights))
        if abs(distance - threshold) <= accuracy or (distance > threshold and at == floor):
            break
        low, high = (at, high) if distance < threshold else (low, at)
        error = math.log(distance / max(threshold, accuracy))  # rises with the log ridge, by a slope of at most 1
        if last is not None:
            slope = min(1.0, max(_FLATTEST, (error - last[1]) / (at - last[0])))
        last, at = (at, error), at - error / slope
        if at < floor and not floored:
            at, floored = floor, True  # the distance may be out of reach, which only the floor shows
        elif not low < at < high or step >= _SECANT_STEPS:
            at = (low + high) / 2 if high < math.inf else low + 1
    return weights


_VOTE_TOLERANCE = 1e-3  # of the gradient, in units of the regularisation
_DECIMALS = 12
_ENTRIES = 1 << 20  # noisy shares turned to labels at a time


def perturb_votes(ensemble: Ensemble, regularisation: float) -> Perturbable:
    """Noise on the vote shares themselves, in contrast coordinates: A B, shape (N, C-1) flattened.

    One party moves each row by at most sqrt(2)/M, hence all of them by sqrt(2 N)/M. The label of a row is the class
    of the largest noisy share, the model the minimiser of the risk of those labels (Hamm et al. 2016, Alg. 1 from
    line 3 on).
    """
    rows, classes = ensemble.public.rows, ensemble.classes
    value = ensemble.shares() @ contrasts(classes)
    rounding = 2 * contrast_rounding(classes) * float(np.sqrt(len(rows)))  # a row of shares has norm at most 1
    return Perturbable(
        value.ravel(),
        sensitivity.vote_shares(ensemble.parties, len(rows)) + rounding,
        _vote_decoder(rows, classes, regularisation),
        (*VOTE_ASSUMPTIONS, PUBLIC_ROWS),
        VOTE_CHECKS,
        largest_norm=float(np.sqrt(len(rows) * (1 - 1 / classes))),
        scores=LinearScores(
            lambda noisy: _shares(noisy, classes),
            lambda variances: np.full(len(rows), np.sqrt(variances[0])),
            np.ones(1),
        ),
    )


def _shares(noisy: np.ndarray, classes: int) -> np.ndarray:
    """Noisy shares (..., N, C), less 1/C, of noisy values (..., N (C-1))."""
    return np.asarray(noisy.reshape(*noisy.shape[:-1], -1, classes - 1) @ contrasts(classes).T)


def _vote_decoder(rows: np.ndarray, classes: int, regularisation: float) -> Decode:
    tolerance = attainable_tolerance(_VOTE_TOLERANCE * regularisation, rows, regularisation)
    at_once = max(1, _ENTRIES // (len(rows) * classes))

    def decode(noisy: np.ndarray, _: AdditiveMechanism | None) -> np.ndarray:
        # Each draw is solved from the same start: a draw that told about another would cost that one's privacy.
        weights = []
        for first in range(0, len(noisy), at_once):
            shares = _shares(noisy[first : first + at_once], classes)
            # Ties, which only votes without noise have, are not for rounding to decide.
            labels = shares.round(_DECIMALS).argmax(axis=2)
            # Of few rows, many draws have the same labels.
            distinct, which = np.unique(labels, axis=0, return_inverse=True)
            shares = np.eye(classes)[distinct]
            weights.append(np.stack([risk_minimiser(rows, one, regularisation, tolerance) for one in shares])[which])
        fitted = np.concatenate(weights)
        return two_rows(fitted) if classes == 2 else fitted

    return decode


_RANGE = Assumption("the statistic is projected to the range of the public rows before noise", Check.ENFORCED)


def perturb_statistic(ensemble: Ensemble, coordinates: Coordinates, decoder: Decoder) -> Perturbable:
    """Noise on the votes' mean operator in public coordinates Y of the auxiliary rows.

    The value is B' A' Y / N, shape (C-1, r) flattened: B are class contrasts, A the label shares. One replaced party
    moves it by at most sqrt(2) reach / M, and what rounding adds is charged. Whitened, the reach is at most 1
    whatever the norms of the rows; isotropic, it is that of the features, and the noise has the same size in all of
    their directions. Directions outside the range of the rows are not released at all.
    """
    basis = contrasts(ensemble.classes)
    value = basis.T @ (ensemble.shares().T @ coordinates.rows) / len(coordinates.rows)
    return Perturbable(
        value.ravel(),
        sensitivity.statistic(ensemble.parties, coordinates.reach) + 2 * coordinates.rounding(ensemble.classes),
        decoder.decode,
        (*VOTE_ASSUMPTIONS, PUBLIC_ROWS, _RANGE),
        VOTE_CHECKS,
        largest_norm=coordinates.reach * float(np.sqrt(1 - 1 / ensemble.classes)),
        scores=decoder.scores,
    )


_WITHOUT_NOISE = 1e-4  # regularisation where no noise asks for any
_RELATIVE_TOLERANCE = 1e-4  # of the gradient, in units of the regularisation


def least_squares(coordinates: Coordinates, classes: int, shrinkage: float) -> Decoder:
    """W = (mu - 1 xbar'/C) (Sigma + c I)^-1 with c = shrinkage * tr(Sigma)/r: scores by least squares on shares."""
    variances = coordinates.variances
    filters = coordinates.scale / (variances + shrinkage * variances.mean())
    return _decoder(coordinates, classes, filters, lambda blocks, _: contrasts(classes) @ (blocks * filters))


def erm(coordinates: Coordinates, classes: int, regularisation: float | None) -> Decoder:
    """The softmax risk of the noisy statistic; by default lam = E|noise|, a rule in public numbers only."""
    rows = coordinates.rows * coordinates.scale
    uniform = rows.mean(axis=0) / classes

    def weights(blocks: np.ndarray, mechanism: AdditiveMechanism | None) -> np.ndarray:
        strength = regularisation
        if strength is None:
            strength = _WITHOUT_NOISE if mechanism is None else mechanism.expected_noise_norm()
        tolerance = attainable_tolerance(_RELATIVE_TOLERANCE * strength, rows, strength / 2)
        statistics = contrasts(classes) @ (blocks * coordinates.scale) + uniform
        return np.stack([_softmax_weights(rows, one, strength, tolerance) for one in statistics])

    return _decoder(coordinates, classes, 1 / coordinates.scale, weights)


def discrepancy(coordinates: Coordinates, classes: int, safety_factor: float) -> Decoder:
    """The maximum-entropy model whose statistic is as far from the noisy one as the noise is expected to be.

    Among all W, the model of largest entropy with |statistic(W) - noisy| <= safety_factor E|noise| minimises the
    softmax risk plus that threshold times |W U t|_F, the norm dual to the one in which the noise is isotropic
    (Morozov's discrepancy principle; Dudik, Phillips and Schapire 2007 for the duality). When even the uniform model
    satisfies it, the weights' direction has a limit as the threshold comes down to there: least squares without
    shrinkage where coordinates are whitened, the noisy statistic itself otherwise. That limit is returned.
    """
    rows = coordinates.rows
    uniform = rows.mean(axis=0) / classes

    def weights(blocks: np.ndarray, mechanism: AdditiveMechanism | None) -> np.ndarray:
        threshold = 0.0 if mechanism is None else safety_factor * mechanism.expected_noise_norm()
        found = [_discrepancy_weights(rows, one, uniform, threshold) for one in contrasts(classes) @ blocks]
        return np.asarray(np.stack(found) / coordinates.scale)

    return _decoder(coordinates, classes, 1 / coordinates.scale, weights)


def _decoder(coordinates: Coordinates, classes: int, filters: np.ndarray, weights: Decode) -> Decoder:
    """By the `weights` (draws, C, r) along U that are made of blocks (draws, C-1, r).

    Scores are those of the weights B (value filters) U' on the auxiliary rows, contrasts B: exact for least squares;
    decoders by a risk come near it when much regularised. The value is expected to vary over the coordinates as the
    public rows do.
    """

    def decode(noisy: np.ndarray, mechanism: AdditiveMechanism | None) -> np.ndarray:
        blocks = noisy.reshape(len(noisy), classes - 1, len(filters))
        return np.asarray(weights(blocks, mechanism) @ coordinates.directions.T)

    features = coordinates.rows * (coordinates.scale * filters)
    profile = coordinates.variances / coordinates.scale**2
    return Decoder(decode, LinearScores.of_features(features, contrasts(classes), profile))


def _softmax_weights(rows: np.ndarray, statistic: np.ndarray, regularisation: float, tolerance: float) -> np.ndarray:
    """Weights (C, r) of the softmax risk; two classes are solved as one vector w, lam |W|^2 = (lam/2) |w|^2."""
    if len(statistic) == 2:
        half = regularisation / 2
        return two_rows(minimise(rows, statistic[1], half, gradient_tolerance=tolerance).weights)
    return minimise(rows, statistic, regularisation, gradient_tolerance=tolerance).weights


def _discrepancy_weights(rows: np.ndarray, contrast: np.ndarray, uniform: np.ndarray, threshold: float) -> np.ndarray:
    """Weights (C, r) for the statistic contrast + uniform; two classes are solved as one vector, |w| = sqrt(2) |W|."""
    if len(contrast) == 2:
        weights = two_rows(discrepancy_minimiser(rows, (contrast + uniform)[1], threshold / np.sqrt(2)))
    else:
        weights = discrepancy_minimiser(rows, contrast + uniform, threshold)
    return weights if weights.any() else contrast
