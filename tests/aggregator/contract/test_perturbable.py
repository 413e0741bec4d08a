import numpy as np
import pytest

from aggregator.contract.session import LinearScores
from federation.numerics.rows import contrasts


@pytest.mark.parametrize(
    ("mixing", "blocks"), [(contrasts(2), 1), (contrasts(4), 3), (np.eye(3), 3), (np.array([[-0.5], [0.5]]), 1)]
)
def test_linear_scores_spread_as_independent_noise_per_class_would(mixing, blocks, rng):
    """The covariance of the differences of a row's scores, against noise drawn in the value."""
    features = rng.normal(size=(5, 3))
    scores = LinearScores.of_features(features, mixing, np.ones(3))
    variances = np.array([0.5, 1.0, 2.0])
    noise = rng.normal(size=(20_000, blocks, 3)) * np.sqrt(variances)
    moved = np.einsum("nr,sbr,cb->snc", features, noise, mixing)
    np.testing.assert_allclose(moved[0], scores.of(noise[0].ravel()), atol=1e-12)
    differences = moved[..., 1:] - moved[..., :1]
    for row in range(5):
        covariance = np.cov(differences[:, row].T).reshape(len(mixing) - 1, len(mixing) - 1)
        expected = scores.spread(variances)[row] ** 2 * (np.eye(len(mixing) - 1) + 1)
        np.testing.assert_allclose(covariance, expected, rtol=0.1, atol=0.05 * expected.max())
