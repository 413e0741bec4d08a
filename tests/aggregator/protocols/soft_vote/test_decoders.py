"""The discrepancy minimiser against a general-purpose solver, its optimality condition and its monotonicity."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import norm
from support.voting import ensemble, instance, replaced

from aggregator.ensembles.sessions import two_rows
from aggregator.protocols.soft_vote import decoders
from aggregator.protocols.soft_vote import decoders as noisy_votes
from aggregator.protocols.soft_vote.decoders import (
    SMALLEST_RIDGE,
    discrepancy_minimiser,
    perturb_statistic,
    perturb_votes,
)
from federation.contract.errors import InputError
from federation.mechanisms.noise.additive import calibrate
from federation.numerics.erm import risk_minimiser
from federation.numerics.label_losses import label_loss
from federation.numerics.rows import contrasts

SHAPES = ["whitened", "isotropic"]


def world_and(decoder, shape="whitened", seed=1, classes=3, **options):
    votes, rows = instance(seed, classes=classes)
    world = ensemble(votes, rows, classes)
    coordinates = world.public.coordinates(shape)
    return world, perturb_statistic(world, coordinates, decoder(coordinates, classes, **options))


def mechanism_for(perturbable, epsilon=1.0):
    return calibrate(
        "pure", sensitivity=perturbable.sensitivity, dimension=len(perturbable.value), epsilon=epsilon, delta=1e-6
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_least_squares_is_ridge_regression_on_centred_shares(shape):
    shrinkage = 0.2
    world, perturbable = world_and(decoders.least_squares, shape, shrinkage=shrinkage)
    rows = world.public.rows
    weights = perturbable.decode(perturbable.value[None], None)[0]
    second = rows.T @ rows / len(rows)
    ridge = shrinkage * np.trace(second) / 4
    targets = world.tally.shares() - 1 / 3
    expected = np.linalg.solve(second + ridge * np.eye(4), rows.T @ targets / len(rows)).T
    np.testing.assert_allclose(weights, expected, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("classes", [2, 3])
def test_without_noise_the_erm_decoder_is_the_weighted_erm(shape, classes):
    world, perturbable = world_and(decoders.erm, shape, seed=2, classes=classes, regularisation=0.05)
    weights = perturbable.decode(perturbable.value[None], None)[0]
    # Softmax of two classes with lam is the binary loss with lam/2.
    expected = two_rows(world.minimiser("soft", 0.025)) if classes == 2 else world.minimiser("soft", 0.05)
    np.testing.assert_allclose(weights, expected, atol=1e-4)


def test_the_erm_decoder_is_regularised_by_public_numbers():
    _, perturbable = world_and(decoders.erm, seed=2, regularisation=None)
    weights = perturbable.decode(np.zeros((1, 8)), mechanism_for(perturbable))
    assert np.linalg.norm(weights) < 1e-3  # no votes: nothing but the uniform class


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("classes", [2, 3])
def test_the_discrepancy_decoder_solves_its_problem(shape, classes):
    """Against a general-purpose minimiser of mean lse(Wx) - <mu, W> + threshold |W U t|, in plain features."""
    world, perturbable = world_and(decoders.discrepancy, shape, seed=3, classes=classes, safety_factor=0.05)
    mechanism, rows = mechanism_for(perturbable), world.public.rows
    noisy = perturbable.value + 0.02 * np.random.default_rng(1).normal(size=len(perturbable.value))
    weights = perturbable.decode(noisy[None], mechanism)[0]
    coordinates = world.public.coordinates(shape)
    threshold = 0.05 * mechanism.expected_noise_norm()
    to_noise = coordinates.directions * coordinates.scale  # |W U t|: isotropic noise of the statistic is b = E t U'
    contrast = contrasts(classes) @ noisy.reshape(classes - 1, -1)
    mu = (contrast * coordinates.scale) @ coordinates.directions.T + rows.mean(axis=0) / classes

    def objective(flat):
        w = flat.reshape(classes, -1)
        entropy = np.logaddexp.reduce(rows @ w.T, axis=1).mean() - (mu * w).sum()
        return entropy + threshold * np.linalg.norm(w @ to_noise)

    start = np.random.default_rng(0).normal(size=weights.size)
    independent = minimize(objective, start, method="BFGS", options={"gtol": 1e-8, "maxiter": 2000})
    assert objective(weights.ravel()) <= independent.fun + 1e-7
    np.testing.assert_allclose(weights, independent.x.reshape(weights.shape), atol=2e-3 * np.abs(weights).max())
    distance = np.linalg.norm(statistic_of(weights, rows) @ to_noise / coordinates.scale**2 - contrast)
    assert distance == pytest.approx(threshold, rel=1e-3)


def statistic_of(weights, rows):
    """(1/N) sum_i (p_i - 1/C) x_i' of a softmax model."""
    scores = rows @ weights.T
    probabilities = np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])
    return (probabilities - 1 / len(weights)).T @ rows / len(rows)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_discrepancy_that_the_uniform_model_meets_gives_the_least_squares_direction(classes):
    world, perturbable = world_and(decoders.discrepancy, seed=3, classes=classes, safety_factor=100.0)
    mechanism = mechanism_for(perturbable)
    weights = perturbable.decode(perturbable.value[None], mechanism)[0]
    plain = decoders.least_squares(world.public.whitening, classes, 0.0)
    np.testing.assert_allclose(weights, plain.decode(perturbable.value[None], None)[0], atol=1e-12)


def test_the_discrepancy_direction_comes_close_to_its_limit():
    """Just below the threshold at which weights vanish, their direction is that of the limit."""
    world, perturbable = world_and(decoders.discrepancy, seed=3, safety_factor=1.0)
    mechanism = mechanism_for(perturbable)
    farthest = np.linalg.norm(perturbable.value) / mechanism.expected_noise_norm()
    below, above = (
        decoders.discrepancy(world.public.whitening, 3, factor * farthest).decode(perturbable.value[None], mechanism)[0]
        for factor in (0.999, 1.001)
    )
    cosine = (below * above).sum() / np.linalg.norm(below) / np.linalg.norm(above)
    assert cosine > 0.9999


def test_without_noise_the_discrepancy_decoder_is_nearly_unregularised():
    world, perturbable = world_and(decoders.discrepancy, seed=2, safety_factor=2.5)
    weights = perturbable.decode(perturbable.value[None], None)[0]
    np.testing.assert_allclose(weights, world.minimiser("soft", 1e-6), atol=1e-2)


@pytest.mark.parametrize("decoder", [decoders.erm, decoders.discrepancy])
def test_a_draw_says_nothing_about_another(decoder):
    """Weights to the last bit depend on their own draw alone; anything else would leak a second release."""
    options = {"regularisation": 0.1} if decoder is decoders.erm else {"safety_factor": 0.05}
    _, perturbable = world_and(decoder, **options)
    mechanism = mechanism_for(perturbable)
    noisy = perturbable.value + np.random.default_rng(3).normal(scale=0.05, size=(3, len(perturbable.value)))
    together = perturbable.decode(noisy, mechanism)
    for draw in range(3):
        np.testing.assert_array_equal(together[draw], perturbable.decode(noisy[draw : draw + 1], mechanism)[0])


@pytest.mark.parametrize("shape", SHAPES)
def test_the_linear_scores_of_least_squares_are_those_of_its_weights(shape):
    world, perturbable = world_and(decoders.least_squares, shape, shrinkage=0.3)
    weights = perturbable.decode(perturbable.value[None], None)[0]
    np.testing.assert_allclose(perturbable.scores.of(perturbable.value), world.public.rows @ weights.T, atol=1e-12)


def problem(seed, classes, rows=40, width=3, noise=0.05):
    """Rows and a noisy statistic, binary (d,) for two classes, (C, d) otherwise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, width)) * np.exp(rng.normal(size=width))
    shares = rng.dirichlet(np.ones(classes), rows)
    error = rng.normal(size=(classes, width))
    mu = shares.T @ x / rows + noise * (error - error.mean(axis=0))  # a statistic's classes sum to the mean row
    return x, mu[1] if classes == 2 else mu


def gradient(x, mu, w):
    """Of the risk without regularisation."""
    return label_loss(x, mu, 1e-300).gradient(np.ravel(w))[0]


def farthest(x, mu):
    return float(np.linalg.norm(gradient(x, mu, np.zeros(np.size(mu)))))


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.95])
def test_it_agrees_with_a_general_purpose_solver(classes, share):
    x, mu = problem(classes, classes)
    threshold = share * farthest(x, mu)

    def objective(flat):
        w = flat.reshape(mu.shape)
        if classes == 2:
            risk = np.logaddexp(0, x @ w).mean() - mu @ w
        else:
            risk = np.logaddexp.reduce(x @ w.T, axis=1).mean() - (mu * w).sum()
        return risk + threshold * np.linalg.norm(w)

    ours = discrepancy_minimiser(x, mu, threshold)
    assert ours.shape == mu.shape
    start = np.random.default_rng(1).normal(size=mu.size)
    other = minimize(objective, start, method="BFGS", options={"gtol": 1e-9, "maxiter": 5000})
    assert objective(ours.ravel()) <= other.fun + 1e-8
    np.testing.assert_allclose(ours, other.x.reshape(mu.shape), atol=2e-3 * max(1e-3, np.abs(ours).max()))


@settings(derandomize=True, deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), classes=st.integers(2, 4), share=st.floats(0.05, 0.999))
def test_the_gradient_has_the_length_of_the_threshold_and_points_back(seed, classes, share):
    x, mu = problem(seed, classes, noise=0.01)
    threshold = share * farthest(x, mu)
    w = discrepancy_minimiser(x, mu, threshold)
    pull = gradient(x, mu, w)
    ridge = np.linalg.norm(pull) / np.linalg.norm(w)
    if ridge > 1.01 * SMALLEST_RIDGE:
        assert np.linalg.norm(pull) == pytest.approx(threshold, rel=2e-4)
    else:  # no model is so near to the noisy statistic
        assert np.linalg.norm(pull) >= threshold * (1 - 2e-4)
    assert pull @ w.ravel() == pytest.approx(-np.linalg.norm(pull) * np.linalg.norm(w), rel=1e-3)


@pytest.mark.parametrize("classes", [2, 3])
def test_larger_thresholds_give_shorter_weights_and_more_entropy(classes):
    x, mu = problem(7, classes)
    whole = farthest(x, mu)
    found = [discrepancy_minimiser(x, mu, share * whole) for share in np.linspace(0.1, 1.0, 12)]
    norms = [np.linalg.norm(w) for w in found]
    assert all(a > b for a, b in itertools.pairwise(norms))
    entropies = [entropy(x, w) for w in found]
    assert all(a < b for a, b in itertools.pairwise(entropies))
    assert entropies[-1] == pytest.approx(math.log(classes), rel=1e-6)


def entropy(x, w):
    scores = np.stack([np.zeros(len(x)), x @ w]) if w.ndim == 1 else w @ x.T
    p = np.exp(scores - np.logaddexp.reduce(scores, axis=0))
    return float(-(p * np.log(p)).sum(axis=0).mean())


@pytest.mark.parametrize("classes", [2, 3])
def test_it_is_zero_exactly_from_the_distance_of_the_uniform_model_on(classes):
    x, mu = problem(3, classes)
    whole = farthest(x, mu)
    assert not discrepancy_minimiser(x, mu, whole).any()
    assert not discrepancy_minimiser(x, mu, 2 * whole).any()
    assert discrepancy_minimiser(x, mu, whole * (1 - 1e-3)).any()


@pytest.mark.parametrize("classes", [2, 3])
def test_a_statistic_that_no_model_comes_near_is_fitted_with_the_least_ridge(classes):
    x, mu = problem(3, classes)
    far = mu + 10.0
    for threshold in (0.0, 0.3):
        w = discrepancy_minimiser(x, far, threshold)
        pull = gradient(x, far, w)
        assert np.linalg.norm(pull) == pytest.approx(SMALLEST_RIDGE * np.linalg.norm(w), rel=1e-3)


def test_without_a_threshold_a_clean_statistic_is_met():
    x, mu = problem(5, 3, noise=0.0)
    assert np.linalg.norm(gradient(x, mu, discrepancy_minimiser(x, mu, 0.0))) < 1e-4


@pytest.mark.parametrize("threshold", [-1.0, math.nan, math.inf])
def test_impossible_thresholds_are_refused(threshold):
    with pytest.raises(InputError, match="threshold"):
        discrepancy_minimiser(*problem(0, 2), threshold)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(seed=st.integers(0, 10**6), classes=st.integers(2, 5), parties=st.integers(1, 9))
def test_one_party_never_moves_the_votes_further_than_their_sensitivity(seed, classes, parties):
    votes, rows = instance(seed, parties=parties, classes=classes)
    a = perturb_votes(ensemble(votes, rows, classes), 1e-2)
    b = perturb_votes(ensemble(replaced(votes, np.random.default_rng(seed)), rows, classes), 1e-2)
    assert a.value.shape == (30 * (classes - 1),)
    assert np.linalg.norm(a.value - b.value) <= a.sensitivity
    assert np.linalg.norm(a.value) <= a.largest_norm * (1 + 1e-12)


@pytest.mark.parametrize("classes", [2, 4])
def test_a_party_that_turns_every_vote_moves_them_by_the_whole_sensitivity(classes):
    before, after = np.zeros((5, 20), dtype=int), np.zeros((5, 20), dtype=int)
    after[0] = 1
    a, b = (perturb_votes(ensemble(votes, np.ones((20, 1)), classes), 1e-2) for votes in (before, after))
    assert np.linalg.norm(a.value - b.value) == pytest.approx(np.sqrt(2 * 20) / 5, rel=1e-12)
    assert a.sensitivity == pytest.approx(np.sqrt(2 * 20) / 5, rel=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_without_noise_the_model_is_the_erm_of_majority_labels(classes):
    votes, rows = instance(3, classes=classes)
    world = ensemble(votes, rows, classes)
    perturbable = perturb_votes(world, 0.05)
    weights = perturbable.decode(perturbable.value[None], None)[0]
    expected = world.minimiser("majority", 0.05)
    np.testing.assert_allclose(weights, two_rows(expected) if classes == 2 else expected, atol=1e-2)


def test_a_noisy_vote_is_the_noisy_maximum_of_all_classes(rng):
    """Noise in contrast coordinates and in each class's share give equal labels in law: differences are the same."""
    votes, rows = instance(3, parties=20, rows=1, classes=3)
    perturbable = perturb_votes(ensemble(votes, rows, 3), 0.05)
    shares = np.bincount(votes[:, 0], minlength=3) / 20
    noisy = perturbable.value + 0.2 * rng.normal(size=(100_000, 2))
    labels = (noisy @ contrasts(3).T).argmax(axis=1)
    direct = (shares + 0.2 * rng.normal(size=(100_000, 3))).argmax(axis=1)
    for label in range(3):
        gap = (labels == label).mean() - (direct == label).mean()
        assert abs(gap) < 4.5 * np.sqrt(0.5 / 100_000)


def test_equal_labels_share_one_fit_and_draws_are_decoded_in_pieces(rng, monkeypatch):
    votes, rows = instance(5, rows=3, classes=2)
    perturbable = perturb_votes(ensemble(votes, rows, 2), 0.1)
    noisy = perturbable.value + rng.normal(size=(40, 3))
    fits = []

    def counted(*arguments, **options):
        fits.append(1)
        return risk_minimiser(*arguments, **options)

    monkeypatch.setattr(noisy_votes, "risk_minimiser", counted)
    whole = perturbable.decode(noisy, None)
    assert len(fits) <= 2**3
    monkeypatch.setattr(noisy_votes, "_ENTRIES", 12)  # two draws at a time
    pieces = perturb_votes(ensemble(votes, rows, 2), 0.1).decode(noisy, None)
    np.testing.assert_array_equal(whole, pieces)


def test_a_draw_says_nothing_about_another_noisy_votes(rng):
    """Weights to the last bit depend on their own labels alone; anything else would leak a second release."""
    votes, rows = instance(5, rows=12, classes=3)
    perturbable = perturb_votes(ensemble(votes, rows, 3), 0.1)
    noisy = perturbable.value + rng.normal(size=(6, 24))
    together = perturbable.decode(noisy, None)
    for draw in range(6):
        np.testing.assert_array_equal(together[draw], perturbable.decode(noisy[draw : draw + 1], None)[0])
    np.testing.assert_array_equal(together[::-1], perturbable.decode(noisy[::-1], None))


def test_the_noise_is_worth_sigma_times_root_n_per_row():
    """One release of N rows with sensitivity sqrt(2 N)/M: the chance that a unanimous row is relabelled."""
    votes, rows = np.zeros((50, 400), dtype=int), np.ones((400, 1))
    perturbable = perturb_votes(ensemble(votes, rows, 2), 0.1)
    noise = np.random.default_rng(1).normal(scale=perturbable.sensitivity, size=400)
    flipped = (((perturbable.value + noise)[:, None] @ contrasts(2).T).argmax(axis=1) == 1).mean()
    assert flipped == pytest.approx(norm.cdf(-np.sqrt(0.5) / (np.sqrt(800) / 50)), abs=0.07)


def perturbed(votes, rows, classes, shape="whitened"):
    world = ensemble(votes, rows, classes)
    coordinates = world.public.coordinates(shape)
    return perturb_statistic(world, coordinates, decoders.least_squares(coordinates, classes, 0.1))


@settings(derandomize=True, deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), classes=st.integers(2, 4), rank=st.integers(1, 4), shape=st.sampled_from(SHAPES))
def test_one_party_never_moves_the_statistic_further_than_its_sensitivity(seed, classes, rank, shape):
    votes, rows = instance(seed, classes=classes)
    random = np.random.default_rng(seed)
    rows = rows * np.exp(random.normal(size=(len(rows), 1)))  # of any length
    rows[:, rank:] = 0.0  # numerically deficient ranks must not leak outside the basis
    a = perturbed(votes, rows, classes, shape)
    b = perturbed(replaced(votes, random), rows, classes, shape)
    assert len(a.value) == (classes - 1) * rank
    assert np.linalg.norm(a.value - b.value) <= a.sensitivity * (1 + 1e-9)
    assert np.linalg.norm(a.value) <= a.largest_norm


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "rows", [np.full((20, 1), 0.4), np.array([[1.0, 1.0], [1.0, -1.0]]), np.array([[3.0], [0.1], [0.1], [0.1]])]
)
def test_the_statistic_moves_by_its_whole_sensitivity_in_the_worst_case(shape, rows):
    """A party turns all its votes; the last rows are so uneven that the mean of their norms is the smaller bound."""
    before, after = np.zeros((5, len(rows)), dtype=int), np.zeros((5, len(rows)), dtype=int)
    after[0] = 1
    a, b = perturbed(before, rows, 3, shape), perturbed(after, rows, 3, shape)
    assert np.linalg.norm(a.value - b.value) == pytest.approx(a.sensitivity, rel=1e-8)
    whole = {"whitened": np.sqrt(2) / 5, "isotropic": np.sqrt(2) / 5 * np.linalg.norm(rows.mean(axis=0))}
    if len(rows) != 4:
        assert a.sensitivity == pytest.approx(whole[shape], rel=1e-8)
    else:
        assert a.sensitivity < 0.6 * np.sqrt(2) / 5 * {"whitened": 1.0, "isotropic": 3 / 2}[shape]


def test_isotropic_coordinates_are_the_features_turned():
    votes, rows = instance(8)
    world = ensemble(votes, rows, 3)
    coordinates = world.public.coordinates("isotropic")
    turned = coordinates.directions @ coordinates.directions.T
    np.testing.assert_allclose(turned, np.eye(4), atol=1e-12)
    value = perturbed(votes, rows, 3, "isotropic").value.reshape(2, 4)
    mu = world.tally.shares().T @ rows / len(rows)
    np.testing.assert_allclose(value @ coordinates.directions.T, contrasts(3).T @ mu, atol=1e-12)


def test_rows_may_be_long():
    votes, rows = instance(1)
    perturbed(votes, 2 * rows, 3)
