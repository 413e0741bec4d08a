"""A student of the noisy statistic on the public rows: clusters that agree with the release may replace its model.

The public rows are unlabelled, but there may be many, and a release labels them, wrongly here and there. Where classes
are clusters of the public rows, a mixture of Gaussians started from those labels finds the clusters, whatever
directions the noise forbade the release to use. All of it is post-processing of the release and of public rows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aggregator.contract.session import Decode
from aggregator.ensembles.sessions import Refinement
from aggregator.trial.public_rows import Coordinates, PublicRows, Shape, stage_name
from aggregator.trial.trial import Views
from federation.features.feature_map import FeatureMap
from federation.mechanisms.noise.additive import AdditiveMechanism
from federation.numerics.rows import Floats, contrasts

DIMENSIONS = 32  # of the public rows, in which clusters are looked for
_TAIL = ["whiten", "constant", "unit_norm"]
_CHECK = "where clusters of the public rows replaced the model, a test on the release and on public numbers let them"
_ROUNDS = 15  # of expectation maximisation
_TRUST = 0.9  # in the labels that it starts from
_RIDGE, _LEAST_VARIANCE = 0.1, 0.05  # of the covariance within classes; the whole has 1
_DEVIATIONS = 2  # of |noise|^2, within which nothing can be told from noise
_EXPLAINED = 0.9  # least share of the signal that the clusters must explain
_CERTAINTY = 0.9  # least mean probability of a row's cluster


@dataclass(frozen=True, eq=False)
class Student(Refinement):
    """Looks for a release's classes among the clusters of the public rows.

    `asked` are the public rows behind the map that parties were asked about, d whitened dimensions, the constant,
    and rows of norm 1; `released` those behind the map of the model, of as many dimensions or more. Weights of the
    one are weights of the other, zero on what is added.
    """

    released: PublicRows
    coordinates: Coordinates

    @property
    def feature_map(self) -> FeatureMap:
        """That of the student's dimensions."""
        return self.released.feature_map

    @property
    def checks(self) -> tuple[str, ...]:
        """What may have replaced the model."""
        return (_CHECK,)

    def refined(self, decode: Decode) -> Decode:
        """Decodes noisy shares to the models that pass them on, or that the student has in their place."""

        def decoded(noisy: Floats, mechanism: AdditiveMechanism | None) -> Floats:
            weights = decode(noisy, mechanism)
            return self.lifted(weights) if mechanism is None else self.taught(noisy, weights, mechanism)

        return decoded

    def lifted(self, weights: Floats) -> Floats:
        """Weights (draws, C, d + 1) behind the map of the released model, with the same decisions."""
        added = self.released.rows.shape[1] - weights.shape[2]
        return np.insert(weights, [weights.shape[2] - 1] * added, 0.0, axis=2)

    def taught(self, noisy: Floats, weights: Floats, mechanism: AdditiveMechanism) -> Floats:
        """The lifted weights, those of draws (draws, D) that pass the test replaced by linear discriminants."""
        found = self.lifted(weights)
        for draw, value in enumerate(noisy):
            discriminant = self._discriminant(value, weights[draw], mechanism)
            if discriminant is not None:
                found[draw] = discriminant
        return found

    def _discriminant(self, value: Floats, weights: Floats, mechanism: AdditiveMechanism) -> Floats | None:
        """Weights (C, d) of the clusters, or None where the release has no signal or they do not explain it."""
        noise = mechanism.dimension * mechanism.variance()
        slack = _DEVIATIONS * _relative_deviation(mechanism) * noise
        squared = float(value @ value)
        if squared - noise <= slack:
            return None
        labels = (self.asked.rows @ weights.T).argmax(axis=1)
        released = self.released.rows
        whitened = released[:, :-1] / released[:, -1:]  # the last entry is the norm's
        points = whitened[:, :DIMENSIONS]
        responsibilities, discriminant = gaussian_clusters(points, labels, len(weights))
        statistic = contrasts(len(weights)).T @ responsibilities.T @ self.coordinates.rows
        along = max(0.0, float(np.vdot(statistic, value)) / float(np.linalg.norm(statistic)))
        left = squared - along**2 - noise
        certain = responsibilities.max(axis=1).mean() > _CERTAINTY
        if not (left < slack and along**2 > _EXPLAINED * (squared - noise) and certain):
            return None
        found = np.zeros((len(weights), released.shape[1]))
        found[:, : points.shape[1]] = discriminant[:, :-1]
        found[:, -1] = discriminant[:, -1]
        return found


def student_of(views: Views, asked: PublicRows, shape: Shape) -> Student | None:
    """The student of releases behind these public rows; None where their features do not end in whitened dimensions."""
    stages: Sequence[Any] = asked.stages or ()
    if [stage_name(stage) for stage in stages[-3:]] != _TAIL:
        return None
    wide = 0 if views.spectrum is None else min(views.spectrum.usable(), DIMENSIONS)
    released = views.whitened(wide) if wide > asked.feature_map.dimension - 1 else asked
    return Student(asked, released, asked.coordinates(shape))


def gaussian_clusters(points: Floats, labels: np.ndarray, classes: int) -> tuple[Floats, Floats]:
    """A mixture of `classes` Gaussians of one covariance, by expectation maximisation from labels (N,).

    The points (N, d) have covariance I. Returns the responsibilities (N, C), and the linear discriminant (C, d + 1)
    whose last column is the intercept.

    Examples:
        >>> points = np.array([[-1.1], [-0.9], [-1.0], [1.0], [0.9], [1.1]])
        >>> shares, discriminant = gaussian_clusters(points, np.array([0, 0, 1, 1, 1, 1]), classes=2)
        >>> shares.argmax(axis=1)  # the third point was in the wrong class
        array([0, 0, 0, 1, 1, 1])
    """
    shares = _TRUST * np.eye(classes)[labels] + (1 - _TRUST) / classes
    extended = np.column_stack([points, np.ones(len(points))])
    for _ in range(_ROUNDS):
        sizes = shares.sum(axis=0)
        means = shares.T @ points / sizes[:, None]
        between = means.T @ (means * (sizes / len(points))[:, None])
        values, vectors = np.linalg.eigh((1 + _RIDGE) * np.eye(points.shape[1]) - between)
        inverse = (vectors / np.maximum(values, _LEAST_VARIANCE)) @ vectors.T
        slopes = means @ inverse
        intercepts = np.log(sizes / len(points)) - np.einsum("cd,cd->c", slopes, means) / 2
        discriminant = np.column_stack([slopes, intercepts])
        shares = extended @ discriminant.T
        shares -= shares.max(axis=1, keepdims=True)
        np.exp(shares, out=shares)
        shares /= shares.sum(axis=1, keepdims=True)
        shares = np.maximum(shares, np.finfo(float).tiny)
    return shares, discriminant


def _relative_deviation(mechanism: AdditiveMechanism) -> float:
    """Standard deviation of |noise|^2 over its mean: exact for L2-Gamma, and of chi-squared for Gaussian noise."""
    dimension = mechanism.dimension
    if mechanism.name == "l2_gamma":
        return math.sqrt((4 * dimension + 6) / (dimension * (dimension + 1)))
    return math.sqrt(2 / dimension)
