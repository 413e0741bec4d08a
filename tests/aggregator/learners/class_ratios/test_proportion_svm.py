"""The proportion SVM: its label step against enumeration, separable classes, its bias, and the guess that fails."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.mixtures import Mixtures, l1, skewed

from aggregator.learners.class_ratios.bag_classifier import BagClassifier
from aggregator.learners.class_ratios.proportion_svm import ProportionSVM, guessed, objective
from federation.contract.errors import InputError


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=2), st.floats(0, 10), st.floats(0.01, 10), st.integers(0, 2**32)
)
def test_guessed_labels_are_the_best_of_all(sizes, cost, proportion_cost, seed):
    rng = np.random.default_rng(seed)
    scores, shares, edges = 2 * rng.normal(size=sum(sizes)), rng.uniform(size=len(sizes)), np.cumsum(sizes)[:-1]

    def value(labels):
        return objective(np.zeros(1), scores, np.asarray(labels), edges, shares, cost, proportion_cost)

    least = min(map(value, itertools.product([-1.0, 1.0], repeat=sum(sizes))))
    found = guessed(scores, edges, shares, cost, proportion_cost)
    assert set(found) <= {-1.0, 1.0}
    assert value(found) == pytest.approx(least)


@pytest.mark.parametrize("classes", [2, 3, pytest.param(5, marks=pytest.mark.slow)])
def test_separable_classes_are_counted(classes):
    world, rng = Mixtures(classes, distance=8.0, columns=8), np.random.default_rng(classes)
    shares = np.concatenate([skewed(classes, 0.4 / classes)] * 2)
    model = ProportionSVM().fit(world.bags(shares, 100, rng), shares)
    assert model.coefficients_.shape == (1 if classes == 2 else classes, 9)
    for ratios in (np.eye(classes)[0], np.full(classes, 1 / classes)):
        rows = world.rows(ratios, 300, rng)
        assert l1(model.predict(rows), ratios) < 0.03
        assert model.estimate(model.embed(rows)) == pytest.approx(model.predict(rows))


@pytest.mark.slow
def test_overlapping_classes_bias_it_towards_the_bags_where_matching_is_not():
    world, rng = Mixtures(2, distance=1.0), np.random.default_rng(0)
    shares = np.array([[0.1, 0.9], [0.9, 0.1]])
    bags = world.bags(shares, 1500, rng)
    ratios = np.array([0.95, 0.05])
    rows = world.rows(ratios, 3000, rng)
    counted, matched = (kind().fit(bags, shares).predict(rows) for kind in (ProportionSVM, BagClassifier))
    assert counted[0] < 0.9
    assert l1(counted, ratios) > 2 * l1(matched, ratios)


@pytest.mark.slow
def test_a_kernel_counts_what_no_line_separates_and_held_out_bags_choose_its_bandwidth(monkeypatch):
    """A disc within a ring; the selection sees bags and the proportions that it is given, no label of a row."""
    monkeypatch.setattr("aggregator.learners.class_ratios.kernel_means.CANDIDATES", (64.0, 1.0))
    rng, shares = np.random.default_rng(0), np.array([[0.1, 0.9], [0.9, 0.1]] * 2)

    def draw(share, size):
        radius = np.where(np.arange(size) < share * size, 1.0, 4.0) + 0.2 * rng.normal(size=size)
        angle = rng.uniform(0, 2 * np.pi, size)
        return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])

    bags, rows = [draw(share, 30) for share in shares[:, 1]], draw(0.2, 300)
    lines, kernel, chosen = (
        ProportionSVM(features=features, bandwidth=bandwidth, restarts=2).fit(bags, shares)
        for features, bandwidth in ((None, 1.0), (16, 1.0), (16, "auto"))
    )
    assert l1(lines.predict(rows), [0.8, 0.2]) > 0.2
    assert l1(chosen.predict(rows), [0.8, 0.2]) < 0.05
    assert np.array_equal(chosen.coefficients_, kernel.coefficients_)
    assert chosen.get_params()["bandwidth"] == "auto"


@pytest.mark.parametrize(("changes", "message"), [
    ({"cost": 0.0}, "cost"), ({"proportion_cost": np.inf}, "proportion_cost"), ({"restarts": 1}, r"restarts.*2"),
    ({"features": 3}, "features"), ({"features": 16, "bandwidth": 0.0}, None),
    ({"bandwidth": "auto"}, r"bandwidth.*auto"),
])  # fmt: skip
def test_parameters_that_cannot_be_used_are_refused(changes, message):
    world, rng = Mixtures(2), np.random.default_rng(0)
    with pytest.raises(InputError, match=message):
        ProportionSVM(**changes).fit(world.bags(skewed(2, 0.1), 20, rng), skewed(2, 0.1))


def test_the_objective_is_the_published_one_and_equal_guesses_are_refused():
    """Bags of two rows of which a twentieth is in class 1: the nearest number of rows is none."""
    world, rng = Mixtures(2), np.random.default_rng(0)
    shares = np.array([[0.95, 0.05], [0.99, 0.01]])
    with pytest.raises(InputError):
        ProportionSVM().fit(world.bags(shares, 2, rng), shares)
    bags, shares = [rng.normal(size=(200, 2)) for _ in range(2)], np.array([[0.9, 0.1], [0.95, 0.05]])
    with pytest.raises(InputError, match="proportion_cost"):
        ProportionSVM(cost=10.0, proportion_cost=1e-3).fit(bags, shares)
    scores, labels = np.array([0.5, -2.0, 3.0]), np.array([1.0, 1.0, -1.0])
    found = objective(np.array([3.0, 4.0]), scores, labels, np.array([2]), np.array([0.5, 0.5]), 0.1, 10.0)
    assert found == pytest.approx(25 / 2 + 0.1 * (0.25 + 9 + 16) + 10 * (0.5 + 0.5))
    bags = Mixtures(2, distance=6.0).bags(np.eye(2), 50, np.random.default_rng(1))
    noise = np.tile(0.01 * (np.eye(2) - 0.5), (2, 1, 1))
    noisy = ProportionSVM().fit(bags, np.array([[1.1, -0.1], [-0.2, 1.2]]), noise)
    assert np.array_equal(noisy.coefficients_, ProportionSVM().fit(bags, np.eye(2)).coefficients_)


@pytest.mark.slow
def test_restarts_keep_the_smallest_objective():
    world, rng = Mixtures(2, distance=1.0), np.random.default_rng(2)
    shares = skewed(2, 0.2)
    bags = world.bags(shares, 60, rng)
    rows, edges = np.concatenate(bags), np.array([60])

    def value(restarts):
        model = ProportionSVM(restarts=restarts).fit(bags, shares)
        weights = model.coefficients_[0]
        scores = (rows - model.centre_) / model.scale_ @ weights[:-1] + weights[-1]
        labels = guessed(scores, edges, shares[:, 1], 0.01, 100.0)
        return objective(weights, scores, labels, edges, shares[:, 1], 0.01, 100.0)

    values = [value(restarts) for restarts in (2, 4, 6)]
    assert values == sorted(values, reverse=True)
