"""From noisy vote statistics to models: post-processing, which sees public rows and noise laws only.

A decoder takes draws of the statistic B' A' Y / N (`aggregator.protocols.soft_vote.statistic`), (draws, (C-1) r), and
gives weights (draws, C, d). Coordinates are Y = X U / t; v are the variances of the rows along U.
"""

from __future__ import annotations

import numpy as np

from aggregator.contract.perturbable import Decode, Decoder, LinearScores
from aggregator.ensembles.decoding import two_rows
from aggregator.protocols.soft_vote.discrepancy import discrepancy_minimiser
from aggregator.world.public_rows import Coordinates
from federation.mechanisms.noise.additive import AdditiveMechanism
from federation.numerics.erm import attainable_tolerance, minimise
from federation.numerics.rows import contrasts

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
