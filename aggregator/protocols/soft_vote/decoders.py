"""Perturbed vectors of `soft_vote`, and decoders that turn noisy vectors into models.

`perturb_statistic` adds noise to everything that a risk takes from the votes. `least_squares` and `erm` decode the
noisy statistic. `perturb_votes` adds noise to all vote shares, and learns from labels that follow from them.

Decoding is post-processing: a decoder sees noisy values, public rows and noise laws only.

A decoder of statistics takes draws of B' A' Y / N (`perturb_statistic`), (draws, (C-1) r). It returns weights
(draws, C, d). Coordinates are Y = X U / t; v are the variances of the rows along U.
"""

import numpy as np

from aggregator.contract.session import Decode, Decoder, LinearScores, Perturbable
from aggregator.ensembles.output import Ensemble
from aggregator.ensembles.sessions import PUBLIC_ROWS, VOTE_ASSUMPTIONS, VOTE_CHECKS, two_rows
from aggregator.trial.public_rows import Coordinates
from federation.contract.guarantee import Assumption, Check
from federation.mechanisms.accounting import sensitivity
from federation.mechanisms.noise.additive import AdditiveMechanism
from federation.numerics.erm import attainable_tolerance, minimise, risk_minimiser
from federation.numerics.rows import contrast_rounding, contrasts

_WITHOUT_NOISE = 1e-4  # regularisation where no noise asks for any
_RELATIVE_TOLERANCE = 1e-4  # of the gradient, in units of the regularisation
_SHRINKAGE = 0.1  # of least squares, in mean variances


def least_squares(coordinates: Coordinates, classes: int) -> Decoder:
    """W = (mu - 1 xbar'/C) (Sigma + c I)^-1 with c = 0.1 tr(Sigma)/r: scores by least squares on shares."""
    variances = coordinates.variances
    filters = coordinates.scale / (variances + _SHRINKAGE * variances.mean())
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


_VOTE_TOLERANCE = 1e-3  # of the gradient, in units of the regularisation
_DECIMALS = 12
_ENTRIES = 1 << 20  # noisy shares turned to labels at a time


def perturb_votes(ensemble: Ensemble, regularisation: float) -> Perturbable:
    """Noise on the vote shares themselves, in contrast coordinates: A B, shape (N, C-1) flattened.

    One party moves each row by at most sqrt(2)/M, hence all of them by sqrt(2 N)/M. The label of a row is the class
    of the largest noisy share, the model the minimiser of the risk of those labels (Hamm et al. 2016, Alg. 1 from
    line 3 on).

    With Gaussian noise, this is the noisy maximum of PATE (Papernot et al. 2018) on every auxiliary row at once. It is
    charged as one release of N (C-1) numbers. For many rows that is far less than N releases of one row.
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
