"""Decoders of noisy statistics and votes against independent fits, and sensitivities against neighbours."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from support.voting import ensemble, instance, replaced

from aggregator.ensembles.sessions import two_rows
from aggregator.protocols.soft_vote import decoders
from aggregator.protocols.soft_vote.decoders import perturb_statistic, perturb_votes
from federation.mechanisms.noise.additive import calibrate
from federation.numerics.erm import risk_minimiser
from federation.numerics.rows import contrasts

SHAPES = ["whitened", "isotropic"]


def world_and(decoder, shape="whitened", seed=1, classes=3, **options):
    votes, rows = instance(seed, classes=classes)
    world = ensemble(votes, rows, classes)
    coordinates = world.public.coordinates(shape)
    return world, perturb_statistic(world, coordinates, decoder(coordinates, classes, **options))


def mechanism_for(perturbable):
    known = {"sensitivity": perturbable.sensitivity, "dimension": len(perturbable.value)}
    return calibrate("pure", **known, epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_least_squares_is_ridge_regression_on_centred_shares(shape):
    world, perturbable = world_and(decoders.least_squares, shape)
    rows = world.public.rows
    weights = perturbable.decode(perturbable.value[None], None)[0]
    second = rows.T @ rows / len(rows)
    ridge = 0.1 * np.trace(second) / 4
    targets = world.tally.shares() - 1 / 3
    expected = np.linalg.solve(second + ridge * np.eye(4), rows.T @ targets / len(rows)).T
    np.testing.assert_allclose(weights, expected, atol=1e-12)
    np.testing.assert_allclose(perturbable.scores.of(perturbable.value), rows @ weights.T, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("classes", [2, 3])
def test_without_noise_the_erm_decoder_is_the_weighted_erm(shape, classes):
    world, perturbable = world_and(decoders.erm, shape, seed=2, classes=classes, regularisation=0.05)
    weights = perturbable.decode(perturbable.value[None], None)[0]
    # Softmax of two classes with lam is the binary loss with lam/2.
    expected = two_rows(world.minimiser("soft", 0.025)) if classes == 2 else world.minimiser("soft", 0.05)
    np.testing.assert_allclose(weights, expected, atol=1e-4)


def test_the_erm_decoder_is_regularised_by_public_numbers_and_the_noise_is_worth_sigma_root_n_per_row():
    _, perturbable = world_and(decoders.erm, seed=2, regularisation=None)
    weights = perturbable.decode(np.zeros((1, 8)), mechanism_for(perturbable))
    assert np.linalg.norm(weights) < 1e-3  # no votes: nothing but the uniform class
    # One release of N rows with sensitivity sqrt(2 N)/M: the chance that a unanimous row is relabelled.
    votes, rows = np.zeros((50, 400), dtype=int), np.ones((400, 1))
    perturbable = perturb_votes(ensemble(votes, rows, 2), 0.1)
    noise = np.random.default_rng(1).normal(scale=perturbable.sensitivity, size=400)
    flipped = (((perturbable.value + noise)[:, None] @ contrasts(2).T).argmax(axis=1) == 1).mean()
    assert flipped == pytest.approx(norm.cdf(-np.sqrt(0.5) / (np.sqrt(800) / 50)), abs=0.07)


@pytest.mark.parametrize("what", ["statistic", "votes"])
def test_a_draw_says_nothing_about_another(what, rng):
    """Weights to the last bit depend on their own draw or labels alone; anything else would leak a second release."""
    if what == "statistic":
        _, perturbable = world_and(decoders.erm, regularisation=0.1)
        deviation, mechanism = 0.05, mechanism_for(perturbable)
    else:
        votes, rows = instance(5, rows=12, classes=3)
        perturbable, deviation, mechanism = perturb_votes(ensemble(votes, rows, 3), 0.1), 1.0, None
    noisy = perturbable.value + deviation * rng.normal(size=(6, len(perturbable.value)))
    together = perturbable.decode(noisy, mechanism)
    for draw in range(6):
        np.testing.assert_array_equal(together[draw], perturbable.decode(noisy[draw : draw + 1], mechanism)[0])
    np.testing.assert_array_equal(together[::-1], perturbable.decode(noisy[::-1], mechanism))


@settings(derandomize=True)
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

    monkeypatch.setattr(decoders, "risk_minimiser", counted)
    whole = perturbable.decode(noisy, None)
    assert len(fits) <= 2**3
    monkeypatch.setattr(decoders, "_ENTRIES", 12)  # two draws at a time
    pieces = perturb_votes(ensemble(votes, rows, 2), 0.1).decode(noisy, None)
    np.testing.assert_array_equal(whole, pieces)


def perturbed(votes, rows, classes, shape="whitened"):
    world = ensemble(votes, rows, classes)
    coordinates = world.public.coordinates(shape)
    return perturb_statistic(world, coordinates, decoders.least_squares(coordinates, classes))


@settings(derandomize=True)
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
