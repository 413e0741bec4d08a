"""The risks' derivatives against finite differences of the formulas they implement.

Class probabilities and curvature of the log-loss, by their definitions.
"""

import numpy as np
import pytest

from federation.contract.errors import InputError
from federation.numerics.label_losses import Logistic, Softmax, label_loss


def shares_risk(rows, shares, weights, regularisation):
    """Hamm et al. 2016, Eq. 19 and App. B, written with label shares (N, C) and not with the statistic."""
    if weights.ndim == 1:
        z = rows @ weights
        losses = shares[:, 1] * np.logaddexp(0, -z) + shares[:, 0] * np.logaddexp(0, z)
    else:
        z = rows @ weights.T
        losses = np.logaddexp.reduce(z, axis=1) - (shares * z).sum(axis=1)
    return losses.mean() + regularisation / 2 * (weights**2).sum()


def instance(seed, n, d, classes):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d))
    shares = rng.dirichlet(np.ones(classes), size=n)
    mu = shares.T @ rows / n
    mu = mu[1] if classes == 2 else mu
    return rows, shares, mu, rng.normal(size=mu.shape)


def differences(function, at, step):
    return np.array([(function(at + step * e) - function(at - step * e)) / (2 * step) for e in np.eye(at.size)])


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_gradient_is_the_slope_of_the_risk_in_label_shares(classes):
    rows, shares, mu, weights = instance(classes, 7, 3, classes)
    loss = label_loss(rows, mu, 0.3)
    slope = differences(lambda w: shares_risk(rows, shares, w.reshape(mu.shape), 0.3), weights.ravel(), 1e-5)
    np.testing.assert_allclose(loss.gradient(weights.ravel())[0], slope, atol=1e-9)


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("n", [1, 9, 3000])
@pytest.mark.parametrize("weighted", [False, True])
def test_hessian_is_the_slope_of_the_gradient(classes, n, weighted, monkeypatch):
    monkeypatch.setattr("federation.numerics.label_losses._BLOCK_ENTRIES", 4000)  # many blocks at n = 3000
    rows, _, mu, weights = instance(classes + n, n, 4, classes)
    loss = label_loss(rows, mu, 0.01, np.arange(1.0, n + 1) if weighted else None)
    w = weights.ravel()
    hessian = loss.hessian(loss.gradient(w)[1])
    np.testing.assert_allclose(hessian, differences(lambda v: loss.gradient(v)[0], w, 1e-5), atol=1e-8)
    np.testing.assert_allclose(hessian, hessian.T, rtol=0, atol=1e-15)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_product_is_the_hessian_times_a_vector(classes, weighted):
    rows, _, mu, weights = instance(classes, 11, 5, classes)
    loss = label_loss(rows, mu, 0.1, np.arange(11.0) if weighted else None)
    p = loss.gradient(weights.ravel())[1]
    v = np.random.default_rng(0).normal(size=mu.size)
    np.testing.assert_allclose(loss.product(p, v), loss.hessian(p) @ v, rtol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_curvature_bounds_the_hessian_and_the_regularisation_bounds_it_below(classes):
    rows, _, mu, weights = instance(5, 6, 3, classes)
    loss = label_loss(rows, mu, 0.2)
    largest = loss.curvature * (rows**2).sum(axis=1).max() + 0.2
    for scale in (0.0, 0.1, 1.0, 10.0):
        values = np.linalg.eigvalsh(loss.hessian(loss.gradient(scale * weights.ravel())[1]))
        assert values[0] >= 0.2 - 1e-12
        assert values[-1] <= largest + 1e-12


@pytest.mark.parametrize(
    ("mu", "weights"),
    [(np.zeros(1), [0.0]), (np.zeros((3, 1)), [0.0, 0.0, -60.0])],
    ids=["binary", "softmax"],
)
def test_curvature_is_reached_by_two_classes_in_balance(mu, weights):
    loss = label_loss(np.array([[2.0]]), mu, 1e-9)
    values = np.linalg.eigvalsh(loss.hessian(loss.gradient(np.array(weights))[1]))
    assert values[-1] == pytest.approx(4 * loss.curvature)


@pytest.mark.parametrize("classes", [2, 3])
def test_huge_scores_do_not_overflow(classes):
    rows, _, mu, weights = instance(1, 6, 3, classes)
    with np.errstate(all="raise", under="ignore"):
        gradient, p = label_loss(rows, mu, 1.0).gradient(1e8 * weights.ravel())
    assert np.isfinite(gradient).all()
    assert ((p >= 0) & (p <= 1)).all()


@pytest.mark.parametrize(
    ("rows", "mu", "regularisation", "match"),
    [
        *((np.ones((2, 3)), np.ones(3), lam, "regularisation") for lam in (0.0, -1.0, np.nan, np.inf)),
        *((rows, np.ones(3), 1.0, None) for rows in (np.ones((0, 3)), np.ones(3))),
        *((np.ones((2, 3)), mu, 1.0, "mu") for mu in (np.ones(2), np.ones((1, 3)), np.ones((2, 2)), np.array(1.0))),
        *((np.array([row]), np.ones(2), 1.0, "finite") for row in ([1.0, np.nan], [np.inf, -np.inf])),
        (np.ones((1, 2)), np.array([1.0, np.inf]), 1.0, "finite"),
        (np.full((4, 2), 1e160), np.ones(2), 1.0, None),
    ],
)
@pytest.mark.filterwarnings("error")
def test_refuses_what_has_no_minimiser(rows, mu, regularisation, match):
    with pytest.raises(InputError, match=match):
        label_loss(rows, mu, regularisation)


def curve(link, scores, direction, counts):
    out = np.empty_like(direction)
    link.curve(link.curvature(link.probabilities(scores), counts), direction, out)
    return out


def test_probabilities_at_known_scores_and_of_two_classes():
    logistic = Logistic().probabilities(np.array([[[0.0, np.log(3), -2000, 2000]]]))
    np.testing.assert_allclose(logistic, [[[0.5, 0.75, 0, 1]]])
    scores = np.log(np.array([[[1.0], [2.0], [5.0]]]))
    for shift in (0.0, -3000.0, 3000.0):
        np.testing.assert_allclose(Softmax().probabilities(scores + shift)[0, :, 0], [0.125, 0.25, 0.625])
    z = np.random.default_rng(1).normal(size=(2, 2, 3))
    np.testing.assert_allclose(Softmax().probabilities(z)[:, 1:], Logistic().probabilities(z[:, 1:] - z[:, :1]))


@pytest.mark.parametrize(("link", "classes"), [(Logistic(), 1), (Softmax(), 2), (Softmax(), 5)])
def test_curvature_is_the_derivative_of_the_probabilities(link, classes):
    rng = np.random.default_rng(0)
    z, direction = rng.normal(size=(2, 3, classes, 4))
    counts = np.array([4.0, 3.0, 9.0])[:, None, None]
    step = 1e-6
    expected = (link.probabilities(z + step * direction) - link.probabilities(z - step * direction)) / (2 * step)
    np.testing.assert_allclose(curve(link, z, direction, counts), expected / counts, atol=1e-9)


def test_the_curved_scores_sum_to_zero_over_classes_in_single_precision():
    rng = np.random.default_rng(2)
    z, direction = rng.normal(size=(2, 50, 6, 20)).astype(np.float32)
    curved = curve(Softmax(), z, direction, np.full((50, 1, 1), 20, dtype=np.float32))
    assert curved.dtype == np.float32
    assert np.abs(curved.sum(axis=1)).max() < 1e-8
