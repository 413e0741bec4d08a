"""Certified minimisers against independent solvers, their certificate, and their refusals."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from support.examples import examples

from federation.contract.errors import FederationError, InputError
from federation.numerics import erm
from federation.numerics.erm import fit_labels, gradient_floor, minimise, risk_minimiser
from federation.numerics.label_losses import LabelLoss


def unit_rows(rng, n, d):
    rows = rng.normal(size=(n, d))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def statistic(rows, shares):
    mu = shares.T @ rows / len(rows)
    return mu[1] if shares.shape[1] == 2 else mu


def random_problem(rng, n, d, classes):
    """Unit rows, shares of the classes, and their statistic."""
    rows, shares = unit_rows(rng, n, d), rng.dirichlet(np.ones(classes), size=n)
    return rows, shares, statistic(rows, shares)


def exact_gradient_norm(rows, mu, regularisation, weights):
    """The gradient from the risk's definition, in extended precision."""
    rows, mu, weights = (np.asarray(a, dtype=np.longdouble) for a in (rows, mu, weights))
    z = rows @ np.atleast_2d(weights).T
    if weights.ndim == 1:
        z = np.hstack([np.zeros_like(z), z])
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    mean = p.T @ rows / len(rows)
    gradient = (mean[1] if weights.ndim == 1 else mean) - mu + regularisation * weights
    return float(np.sqrt((gradient**2).sum()))


@pytest.mark.parametrize("classes", [2, 3, 6])
@pytest.mark.parametrize("regularisation", [1e-3, 1e-1])
def test_agrees_with_scikit_learn(classes, regularisation):
    n = 60
    rows, shares, mu = random_problem(np.random.default_rng(classes), n, 5, classes)
    model = LogisticRegression(
        C=1 / (n * regularisation), fit_intercept=False, tol=1e-13, max_iter=10_000, solver="newton-cholesky"
    )
    labels = np.repeat(np.arange(classes), n)
    model.fit(np.tile(rows, (classes, 1)), labels, sample_weight=shares.T.ravel())
    found = minimise(rows, mu, regularisation, gradient_tolerance=1e-11).weights
    np.testing.assert_allclose(np.atleast_2d(found), model.coef_, atol=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_agrees_with_a_general_minimiser_on_the_risk_in_label_shares(classes, n):
    rows, shares, mu = random_problem(np.random.default_rng(n), n, 2, classes)

    def risk(flat):
        z = rows @ flat.reshape(-1, 2).T
        z = np.hstack([np.zeros_like(z), z]) if classes == 2 else z
        return (np.logaddexp.reduce(z, axis=1) - (shares * z).sum(axis=1)).mean() + 0.05 * flat @ flat

    found = minimise(rows, mu, 0.1, gradient_tolerance=1e-11).weights
    other = minimize(risk, np.zeros(mu.size), method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(found.ravel(), other.x, atol=1e-6)
    assert risk(found.ravel()) <= other.fun + 1e-15


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("regularisation", [3e-3, 1.0, 1e4])
def test_fall_back_meets_the_same_tolerance(classes, regularisation):
    rows, _, mu = random_problem(np.random.default_rng(3), 12, 3, classes)
    newton = minimise(rows, mu, regularisation, gradient_tolerance=1e-10)
    slow = minimise(rows, mu, regularisation, gradient_tolerance=1e-10, newton_steps=0)
    assert exact_gradient_norm(rows, mu, regularisation, slow.weights) <= 1e-10
    assert np.linalg.norm(newton.weights - slow.weights) <= 2e-10 / regularisation
    assert slow.iterations > newton.iterations


@pytest.mark.parametrize("rows", [np.zeros((3, 2)), np.ones((3, 2))])
def test_fall_back_on_degenerate_rows(rows):
    for mu in (np.zeros(2), np.array([0.3, -0.2])):
        found = minimise(rows, mu, 0.5, gradient_tolerance=1e-12, newton_steps=0)
        assert exact_gradient_norm(rows, mu, 0.5, found.weights) <= 1e-12
    # It is fast enough where only the regulariser curves: at a condition number of 2500 plain gradient steps would need
    # twenty times the public number.
    rows, mu = np.array([[1.0, 0.0]]), np.array([0.2, 1.0])
    found = minimise(rows, mu, 1e-4, gradient_tolerance=1e-10, newton_steps=0)
    assert exact_gradient_norm(rows, mu, 1e-4, found.weights) <= 1e-10
    assert found.iterations < 4000


def test_fall_back_allows_steps_by_public_numbers_only(monkeypatch):
    """With the early exit disabled, the number of steps is the same for every set of labels, and suffices."""
    rng = np.random.default_rng(4)
    rows = unit_rows(rng, 8, 3)
    evaluations = []
    for _ in range(4):
        loss = erm.label_loss(rows, statistic(rows, rng.dirichlet(np.full(3, 0.1), size=8)), 0.02)
        gradient, norms = loss.gradient, []
        monkeypatch.setattr(loss, "gradient", lambda w, g=gradient, n=norms: n.append(1) or g(w))
        monkeypatch.setattr(erm, "_norm", lambda v: np.linalg.norm(v) + 1e-8)  # never reads as met
        w, _, met = erm._accelerated_gradient(loss, 1.0, 1e-9)
        assert not met
        assert np.linalg.norm(gradient(w)[0]) <= 1e-9
        evaluations.append(len(norms))
    rate = math.sqrt(0.02 / 0.52)  # L = 1/2 + lam, G = sqrt(1 - 1/3)
    steps = math.ceil(math.log(2 * 0.52 * (2 / 3) / (0.02 * 1e-9**2)) / -math.log(1 - rate))
    assert set(evaluations) == {steps + 3}  # one more step, and the gradients at both ends


@pytest.mark.parametrize("newton_steps", [0, 200])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_certificate_covers_rounding_that_makes_gradients_look_shorter(classes, newton_steps, monkeypatch):
    """By just under half of the tolerance, as that is what the computed gradient leaves of it."""
    rng, tolerance = np.random.default_rng(11), 1e-6
    exact = LabelLoss.gradient

    def shorter(loss, w):
        gradient, probabilities = exact(loss, w)
        return gradient * max(0.0, 1 - 0.49 * tolerance / np.linalg.norm(gradient)), probabilities

    monkeypatch.setattr(LabelLoss, "gradient", shorter)
    for regularisation in (1e-3, 1e-2):
        rows = unit_rows(rng, 12, 3)
        mu = statistic(rows, rng.dirichlet(np.ones(classes), size=12))
        found = minimise(rows, mu, regularisation, gradient_tolerance=tolerance, newton_steps=newton_steps)
        assert exact_gradient_norm(rows, mu, regularisation, found.weights) <= tolerance


def test_uncertified_weights_are_never_returned(monkeypatch):
    monkeypatch.setattr(erm, "_accelerated_gradient", lambda loss, norm, target: (np.zeros(2), 1, False))
    with pytest.raises(FederationError, match="gradient_tolerance"):
        minimise(np.eye(2), np.array([0.1, 0.2]), 0.1, gradient_tolerance=1e-9, newton_steps=0)


@settings(derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 12),
    d=st.integers(1, 6),
    classes=st.integers(2, 4),
    log_regularisation=st.floats(-6, 3),
    hard=st.booleans(),
    log_tolerance=st.floats(-9, -3),
)
def test_certificate_and_strong_convexity_bound(seed, n, d, classes, log_regularisation, hard, log_tolerance):
    rng = np.random.default_rng(seed)
    rows = unit_rows(rng, n, d) * rng.random((n, 1))
    shares = rng.dirichlet(np.ones(classes), size=n)
    if hard:
        shares = np.eye(classes)[shares.argmax(axis=1)]
    mu, lam, tolerance = statistic(rows, shares), 10**log_regularisation, 10**log_tolerance
    found = minimise(rows, mu, lam, gradient_tolerance=tolerance)
    assert exact_gradient_norm(rows, mu, lam, found.weights) <= tolerance
    floor = gradient_floor(lam)
    tight = minimise(rows, mu, lam, gradient_tolerance=floor)
    assert exact_gradient_norm(rows, mu, lam, tight.weights) <= floor
    assert np.linalg.norm(found.weights - tight.weights) <= (tolerance + floor) / lam


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("regularisation", [1e-8, 1e-4, 1.0, 1e4])
@pytest.mark.parametrize(
    "rows",
    [
        np.array([[0.6, 0.8]]),
        np.tile([[0.6, 0.8]], (5, 1)),
        np.zeros((4, 2)),
        np.vstack([np.zeros((3, 2)), [[1.0, 0.0]]]),
        np.array([[1.0, 1e-3], [1.0, 2e-3], [-1.0, 1e-3], [-1.0, 0.0]]) / 1.001,  # separable
    ],
    ids=["one", "duplicates", "zero", "mostly zero", "separable"],
)
def test_certifies_at_the_floor_on_extreme_problems(classes, regularisation, rows):
    labels = (rows[:, 0] > 0).astype(int)
    mu = statistic(rows, np.eye(classes)[labels])
    tolerance = gradient_floor(regularisation, np.linalg.norm(rows, axis=1).max())
    found = minimise(rows, mu, regularisation, gradient_tolerance=tolerance)
    assert exact_gradient_norm(rows, mu, regularisation, found.weights) <= tolerance


@pytest.mark.parametrize("classes", [2, 3])
def test_zero_rows_leave_the_ridge_solution_and_any_statistic_has_a_minimiser(classes):
    mu = np.arange(1.0, 3.0) if classes == 2 else np.arange(6.0).reshape(3, 2)
    found = minimise(np.zeros((4, 2)), mu, 0.25, gradient_tolerance=1e-12)
    np.testing.assert_allclose(found.weights, 4 * mu, rtol=1e-11)
    # A perturbed statistic may lie outside of the polytope of labels.
    rows = unit_rows(np.random.default_rng(5), 30, 3)
    mu = np.array([[5.0, -2.0, 1.0], [0.0, 7.0, 0.0], [-9.0, 0.0, 3.0]])[: 1 if classes == 2 else 3].squeeze()
    found = minimise(rows, mu, 1e-3, gradient_tolerance=1e-9)
    assert exact_gradient_norm(rows, mu, 1e-3, found.weights) <= 1e-9


@pytest.mark.parametrize("classes", [2, 5])
def test_conjugate_gradients_agree_with_the_dense_factor(classes, monkeypatch):
    rows, _, mu = random_problem(np.random.default_rng(6), 40, 7, classes)
    dense = minimise(rows, mu, 1e-3, gradient_tolerance=1e-11).weights
    monkeypatch.setattr(erm, "_DENSE_UNKNOWNS", 0)
    monkeypatch.setattr(erm, "_accelerated_gradient", None)  # Newton itself must certify
    np.testing.assert_allclose(minimise(rows, mu, 1e-3, gradient_tolerance=1e-11).weights, dense, atol=2e-11 / 1e-3)


def test_more_unknowns_than_the_dense_limit():
    rng = np.random.default_rng(7)
    rows, labels = unit_rows(rng, 50, 220), rng.integers(0, 3, 50)
    found = minimise(rows, statistic(rows, np.eye(3)[labels]), 1e-2, gradient_tolerance=1e-10).weights
    np.testing.assert_allclose(found, fit_labels(rows, labels, 3, 1e-2, 1e-10), atol=2e-8)


def test_multinomial_minimisers_sum_to_zero_over_classes_and_two_classes_are_the_binary_risk():
    rows, shares, mu = random_problem(np.random.default_rng(9), 25, 4, 2)
    softmax = minimise(rows, shares.T @ rows / 25, 0.02, gradient_tolerance=1e-12).weights
    np.testing.assert_allclose(softmax.sum(axis=0), 0, atol=1e-10)
    binary = minimise(rows, mu, 0.01, gradient_tolerance=1e-12).weights
    np.testing.assert_allclose(softmax[1] - softmax[0], binary, atol=1e-9)


@pytest.mark.parametrize("classes", [2, 3, 6])
@pytest.mark.parametrize(("n", "d"), [(1, 3), (3, 8), (6, 50), (8, 8), (20, 5)])
def test_fit_labels_is_the_full_solve(classes, n, d):
    rng = np.random.default_rng(n)
    rows, labels = unit_rows(rng, n, d), rng.integers(0, classes, n)
    rows[n // 2] = rows[0]  # a duplicate makes the row space smaller than n
    full = minimise(rows, statistic(rows, np.eye(classes)[labels]), 1e-3, gradient_tolerance=1e-11).weights
    found = fit_labels(rows, labels, classes, 1e-3, 1e-11)
    assert found.shape == full.shape
    np.testing.assert_allclose(found, full, atol=2e-11 / 1e-3)


@pytest.mark.parametrize(("n", "d", "classes"), [(6, 10, 4), (50, 37, 6), (53, 37, 2)])
def test_fit_labels_depends_on_values_only(n, d, classes):
    """The same rows in another memory layout, and after other work, give the same bits."""
    rng = np.random.default_rng(10)
    rows, labels = unit_rows(rng, n, d), rng.integers(0, classes, n)
    first = fit_labels(rows, labels, classes, 1e-4, 1e-8)
    fit_labels(unit_rows(rng, 22, 11), rng.integers(0, 2, 22), 2, 1e-4, 1e-8)
    padded = np.full((n, 2 * d + 3), np.nan)
    padded[:, 3::2] = rows
    for other in (np.asfortranarray(rows), padded[:, 3::2]):
        np.testing.assert_array_equal(fit_labels(other, labels.astype(np.uint8), classes, 1e-4, 1e-8), first)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        *(
            ({"gradient_tolerance": tolerance}, "gradient_tolerance")
            for tolerance in (0.0, 1e-14, -1.0, np.nan, np.inf)  # that double precision cannot certify
        ),
        *(
            ({"weights": np.array(weights)}, "weights")
            for weights in ([1.0, -1.0], [0.0, 0.0], [1.0], [1.0, np.nan], [[1.0], [1.0]])
        ),
    ],
)
def test_refuses_what_no_minimiser_serves(changed, told):
    with pytest.raises(InputError, match=told):
        minimise(np.ones((2, 2)), np.zeros(2), 1.0, **{"gradient_tolerance": 1e-9} | changed)


def test_floor_rises_for_weak_regularisation_and_long_rows():
    assert gradient_floor(1.0) == 1e-13
    assert gradient_floor(1e-8) > 5e-12
    assert gradient_floor(1.0, 10.0) == 1e-12
    with pytest.raises(InputError, match="regularisation"):
        gradient_floor(0.0)


@pytest.mark.parametrize(
    ("rows", "labels", "classes", "match"),
    [
        (np.ones((2, 2)), np.array([0, 2]), 2, "0..1"),
        (np.ones((2, 2)), np.array([-1, 0]), 2, "0..1"),
        (np.ones((2, 2)), np.array([0.0, 1.0]), 2, None),
        (np.ones((2, 2)), np.array([0]), 2, "labels"),
        (np.ones((2, 2)), np.array([0, 0]), 1, "classes"),
        (np.ones((0, 2)), np.array([], dtype=int), 2, "empty"),
        (np.full((2, 2), np.nan), np.array([0, 1]), 2, "finite"),
    ],
)
def test_fit_labels_refuses_unusable_labels_and_rows(rows, labels, classes, match):
    with pytest.raises(InputError, match=match):
        fit_labels(rows, labels, classes, 0.1, 1e-8)


@given(st.integers(0, 2**32), st.sampled_from([2, 3]), st.sampled_from([0, 200]))
@settings(max_examples=examples(15))
def test_a_weight_of_two_is_a_row_that_is_there_twice(seed, classes, newton_steps):
    rng = np.random.default_rng(seed)
    rows, shares, times = unit_rows(rng, 12, 3), rng.dirichlet(np.ones(classes), size=12), rng.integers(0, 4, 12)
    times[0] += 1
    repeated, counted = np.repeat(rows, times, axis=0), shares * (times / times.mean())[:, None]
    wanted = minimise(repeated, statistic(repeated, np.repeat(shares, times, axis=0)), 0.1, gradient_tolerance=1e-11)
    found = minimise(
        rows, statistic(rows, counted), 0.1, gradient_tolerance=1e-11, newton_steps=newton_steps, weights=7.0 * times
    )
    np.testing.assert_allclose(found.weights, wanted.weights, atol=1e-9)
    ours = risk_minimiser(rows, shares, 0.1, 1e-11, weights=times)
    np.testing.assert_allclose(ours, wanted.weights, atol=1e-9)


def test_the_largest_weights_of_double_precision_are_no_overflow():
    plain, weighted = (risk_minimiser(np.eye(2), np.eye(2), 0.1, 1e-10, weights=w) for w in (None, np.full(2, 1.7e308)))
    np.testing.assert_allclose(weighted, plain, atol=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("width", [3, 30])
def test_fit_labels_counts_a_row_as_often_as_it_has_copies(classes, width, rng):
    rows, labels = unit_rows(rng, 12, width), np.arange(12) % classes
    copies = rng.integers(1, 6, 12)
    found = fit_labels(rows, labels, classes, 1e-2, 1e-11, copies)
    whole = np.repeat(rows, copies, axis=0), np.repeat(labels, copies)
    np.testing.assert_allclose(found, fit_labels(*whole, classes, 1e-2, 1e-11), atol=1e-8)
    model = LogisticRegression(C=1 / (1e-2 * copies.sum()), fit_intercept=False, tol=1e-12, max_iter=10_000)
    expected = model.fit(rows, labels, sample_weight=copies).coef_
    np.testing.assert_allclose(np.atleast_2d(found), expected, atol=1e-5)
    assert np.abs(found - fit_labels(rows, labels, classes, 1e-2, 1e-11)).max() > 0.01


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("counted", [False, True])
def test_many_rows_are_begun_with_some_of_them_and_the_minimiser_is_that_of_all(classes, counted, rng, monkeypatch):
    rows = unit_rows(rng, 3000, 4)
    labels = (rows[:, 0] + rng.normal(size=3000) > 0).astype(int) + (classes == 3) * (rows[:, 1] > 0.5)
    labels[::16] = 0  # what the first rows that are looked at say is not what all say
    copies = rng.integers(1, 5, 3000) if counted else None
    solve = (rows, labels, classes, 1e-3, 1e-10, copies)
    expected = fit_labels(*solve)
    steps = []

    def counting(loss, *rest, newton=erm._newton):
        steps.append(len(loss.rows))
        return newton(loss, *rest)

    monkeypatch.setattr(erm, "_newton", counting)
    monkeypatch.setattr(erm, "_MANY_ROWS", 3000)
    np.testing.assert_allclose(fit_labels(*solve), expected, atol=2e-10 / 1e-3)
    assert steps == [188, 3000]


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_a_start_changes_the_path_and_not_the_minimiser(scale):
    rng = np.random.default_rng(8)
    rows, _, mu = random_problem(rng, 20, 3, 3)
    cold = minimise(rows, mu, 1e-2, gradient_tolerance=1e-11).weights.ravel()
    loss = erm.label_loss(rows, mu, 1e-2)
    warm, _ = erm._certified(loss, scale * rng.normal(size=mu.size), 1e-11, 200)
    np.testing.assert_allclose(warm, cold, atol=2e-11 / 1e-2)
    assert erm._certified(loss, cold, 1e-11, 200)[1] == 0
