import numpy as np
import pytest
from scipy.optimize import minimize
from support.voting import ensemble, instance

from aggregator.ensembles.sessions import two_rows
from aggregator.protocols.soft_vote import decoders
from aggregator.protocols.soft_vote.decoders import perturb_statistic
from federation.mechanisms.noise.additive import calibrate
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
