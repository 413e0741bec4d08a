"""What noise in the mean operator costs: against Gaussian classes that are told from noisy sums, and its limits.

The repaired Theorems 6 and 10 of Patrini et al. 2015: never violated, attained, and where the printed ones fail.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.learners.linear_odd.losses import loss
from aggregator.learners.linear_odd.minimiser import minimise_linear_odd
from aggregator.learners.mean_operators.accuracy import (
    ALIGNMENTS,
    explained_by,
    loss_in_words,
    noisy_accuracies,
    predicted_accuracy,
    score_accuracy,
    typical_spectrum,
)
from federation.contract.errors import InputError

SPECTRUM = np.array([0.4, 0.25, 0.15, 0.1, 0.06, 0.04])
N, MOST = 40_000, 0.5  # rows, and how much of labels they explain


def gaussian_classes(alignment, positive=0.5):
    """Rows (N, 6) of these second moments, and labels of which the share of each direction follows from it."""
    random = np.random.default_rng(4)
    labels = np.where(random.random(N) < positive, 1.0, -1.0)
    between = 4 * positive * (1 - positive)
    share = SPECTRUM**alignment / (SPECTRUM**alignment).sum()
    signal = np.sqrt(MOST * share)  # E y z, and z has a variance of 1 with both classes together
    within = np.linalg.cholesky(np.eye(6) - np.outer(signal, signal) / between)
    z = (labels - (2 * positive - 1))[:, None] * signal / between + random.standard_normal((N, 6)) @ within.T
    return z * np.sqrt(SPECTRUM), labels, random


@pytest.mark.slow
@pytest.mark.parametrize("alignment", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("responses", [False, True])
@pytest.mark.parametrize("norm", [0.05, 0.3])
def test_it_is_what_gaussian_classes_lose(alignment, responses, norm):
    rows, labels, random = gaussian_classes(alignment)
    scale = np.sqrt(SPECTRUM if responses else np.full(6, 1 / 6))
    moments = labels @ rows / N + norm * random.standard_normal((300, 6)) * scale
    noise = norm**2 * scale**2 / SPECTRUM
    prior = MOST * (1 / 6 + SPECTRUM) / 2
    measured = np.mean(np.sign((moments / SPECTRUM * prior / (prior + noise)) @ rows.T) == labels)
    found = noisy_accuracies(SPECTRUM, norm, score_accuracy(MOST), responses=responses, shrunk=True)
    # The law takes a ratio of means for the mean of a function of ratios.
    assert found[ALIGNMENTS.index(alignment)] == pytest.approx(measured, abs=0.02)


@pytest.mark.parametrize("positive", [0.5, 0.7])
def test_a_score_tells_uneven_classes_as_often_as_it_says(positive):
    rows, labels, _ = gaussian_classes(0.0, positive)
    design = np.column_stack([rows, np.ones(N)])
    fitted = design @ np.linalg.lstsq(design, labels)[0]
    assert score_accuracy(float(fitted.var()), positive) == pytest.approx(np.mean(np.sign(fitted) == labels), abs=0.006)
    assert score_accuracy(explained_by(0.85, positive), positive) == pytest.approx(0.85)


@given(st.floats(0.0, 10.0), st.floats(0.0, 10.0), st.floats(0.5, 1.0), st.booleans(), st.booleans())
def test_more_noise_never_makes_accuracy_better(one, other, exact, responses, shrunk):
    less, more = (
        noisy_accuracies(typical_spectrum(8), norm, exact, responses=responses, shrunk=shrunk)
        for norm in sorted((one, other))
    )
    assert (more <= less + 1e-9).all()
    assert (more >= 0.5 - 1e-9).all()
    assert (less <= exact).all()


def test_the_linear_loss_attains_the_bound_nothing_is_lost_without_noise_which_has_a_word():
    for majority in (0.5, 0.7, 1.0):
        found = noisy_accuracies(SPECTRUM, 0.0, 0.9, majority, responses=False, shrunk=True)
        np.testing.assert_allclose(found, 0.9, atol=1e-6)
    uneven, even = (
        noisy_accuracies(SPECTRUM, 0.3, 0.9, majority, responses=True, shrunk=True) for majority in (0.8, 0.5)
    )
    assert (uneven > even).all()
    # Directions that rows lack do not matter, and noise on the sum harms most in those that they nearly lack.
    wide = noisy_accuracies(np.append(SPECTRUM, 0.0), 0.3, 0.9, 0.8, responses=True, shrunk=True)
    np.testing.assert_allclose(wide, uneven)
    summed = noisy_accuracies(SPECTRUM, 0.3, 0.9, responses=False, shrunk=True)
    assert (np.diff(summed) > 0).all()
    assert predicted_accuracy(0.42) == pytest.approx(0.7)
    assert predicted_accuracy(0.0) == 0.9
    words = {0.0: "little", 0.05: "little", 0.06: "visible", 0.21: "large", 0.9: "very large"}
    assert {norm: loss_in_words(norm) for norm in words} == words
    rows = np.array([[1.0, 0.0], [0.0, 1.0]])
    moments = np.array([[0.5, 0.1], [0.2, 0.5]])
    distance = np.linalg.norm(moments[0] - moments[1])
    weights = minimise_linear_odd(loss("linear"), rows, moments, 0.1).weights
    assert np.linalg.norm(weights[0] - weights[1]) == pytest.approx(weight_shift(2.0, 0.1, distance), rel=1e-12)
    # Mean operators beyond what labels give: the even part's slope is the same at both minimisers.
    moments = np.array([[5.0, 0.0], [9.0, 0.0]])
    weights = minimise_linear_odd(loss("rho", rho=3.0), rows, moments, 0.1).weights
    moved = np.linalg.norm(weights[0] - weights[1])
    assert moved == pytest.approx(weight_shift(6.0, 0.1, 4.0), rel=1e-6)
    assert moved > 4.0 / 0.1


@pytest.mark.parametrize("norm", [-1.0, np.nan, np.inf])
def test_norms_are_numbers_from_zero(norm):
    for use in (
        predicted_accuracy,
        loss_in_words,
        lambda norm: noisy_accuracies(SPECTRUM, norm, 0.9, responses=True, shrunk=True),
    ):
        with pytest.raises(InputError, match=r"noise_norm.*0"):
            use(norm)


def weight_shift(slope, regularisation, moment_distance):
    """Largest distance of the minimisers for two mean operators (Theorem 6; its 1/lam holds only for |a| <= 4)."""
    return abs(slope) / (4 * regularisation) * moment_distance


@given(
    st.sampled_from(["logistic", "square", "matsushita", "rho", "linear", "perceptron", "double_hinge"]),
    st.integers(0, 10**6),
    st.sampled_from([1e-3, 0.1, 5.0]),
    st.sampled_from([1e-3, 0.3, 5.0]),
)
def test_weights_move_by_no_more_than_the_bound(name, seed, lam, noise):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(25, 3))
    mu = rng.choice([-1, 1], 25) @ rows / 25
    moments = np.array([mu, mu + noise * rng.normal(size=3), np.zeros(3)])
    found = loss(name)
    weights, distances = minimise_linear_odd(found, rows, moments, lam)
    for other in (1, 2):
        moved = np.linalg.norm(weights[0] - weights[other])
        bound = weight_shift(found.slope, lam, float(np.linalg.norm(moments[0] - moments[other])))
        assert moved <= bound * (1 + 1e-12) + distances[0] + distances[other]


@given(st.floats(0.0, 1e6), st.floats(0.0, 1e6), st.floats(0.5, 1.0))
def test_more_noise_never_makes_accuracy_better_bounds(one, other, exact):
    less, more = sorted((one, other))
    low, high = predicted_accuracy(more, exact), predicted_accuracy(less, exact)
    assert 0.5 <= low <= high <= exact
