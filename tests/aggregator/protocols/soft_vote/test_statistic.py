import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.voting import ensemble, instance, replaced

from aggregator.protocols.soft_vote import decoders
from aggregator.protocols.soft_vote.decoders import perturb_statistic
from federation.numerics.rows import contrasts

SHAPES = ["whitened", "isotropic"]


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
