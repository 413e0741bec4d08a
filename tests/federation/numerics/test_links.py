"""Class probabilities and curvature of the log-loss, by their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from federation.numerics.label_losses import Logistic, Softmax


def curve(link, scores, direction, counts):
    out = np.empty_like(direction)
    link.curve(link.curvature(link.probabilities(scores), counts), direction, out)
    return out


def test_probabilities_at_known_scores():
    np.testing.assert_allclose(
        Logistic().probabilities(np.array([[[0.0, np.log(3), -2000, 2000]]])), [[[0.5, 0.75, 0, 1]]]
    )
    scores = np.log(np.array([[[1.0], [2.0], [5.0]]]))
    for shift in (0.0, -3000.0, 3000.0):
        np.testing.assert_allclose(Softmax().probabilities(scores + shift)[0, :, 0], [0.125, 0.25, 0.625])


@pytest.mark.parametrize(("link", "classes"), [(Logistic(), 1), (Softmax(), 2), (Softmax(), 5)])
def test_curvature_is_the_derivative_of_the_probabilities(link, classes):
    rng = np.random.default_rng(0)
    z, direction = rng.normal(size=(2, 3, classes, 4))
    counts = np.array([4.0, 3.0, 9.0])[:, None, None]
    step = 1e-6
    expected = (link.probabilities(z + step * direction) - link.probabilities(z - step * direction)) / (2 * step)
    np.testing.assert_allclose(curve(link, z, direction, counts), expected / counts, atol=1e-9)


def test_two_class_softmax_is_the_logistic_link():
    rng = np.random.default_rng(1)
    z = rng.normal(size=(2, 2, 3))
    difference = z[:, 1:] - z[:, :1]
    np.testing.assert_allclose(Softmax().probabilities(z)[:, 1:], Logistic().probabilities(difference))


def test_the_curved_scores_sum_to_zero_over_classes_in_single_precision():
    rng = np.random.default_rng(2)
    z, direction = rng.normal(size=(2, 50, 6, 20)).astype(np.float32)
    curved = curve(Softmax(), z, direction, np.full((50, 1, 1), 20, dtype=np.float32))
    assert curved.dtype == np.float32
    assert np.abs(curved.sum(axis=1)).max() < 1e-8
