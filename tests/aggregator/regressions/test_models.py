"""Regressions from what all parties answered: against least squares, whatever it is learned from."""

from __future__ import annotations

import numpy as np
import pytest
from support.label_answers import collected
from support.linear_labels import RANGE, draw

from aggregator.learners.shrinkage import shrink
from aggregator.protocols.bag_regression import NoisyWeightedLLP
from aggregator.regressions.models import by_steps, formed_bags, from_bags, from_labels, from_moments, from_sums
from aggregator.releases.estimator_models import BagNetwork
from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.labels.calibration import calibrate

ROWS, LABELS = draw(3, 200)
EXPECTED = np.linalg.lstsq(ROWS, LABELS)[0]


def weights_of(described):
    description, arrays = described
    assert description == {"learner": "linear", "range": list(RANGE)}
    return arrays["weights"]


def test_all_sources_give_least_squares():
    np.testing.assert_allclose(weights_of(from_labels("linear", ROWS, LABELS, RANGE, 0)), EXPECTED, atol=1e-9)
    np.testing.assert_allclose(weights_of(from_moments(ROWS.T @ ROWS, ROWS.T @ LABELS, RANGE)), EXPECTED, atol=1e-9)
    alone = ROWS[:, None, :], np.ones((200, 1))
    np.testing.assert_allclose(weights_of(from_bags("linear", *alone, LABELS, RANGE, 0)), EXPECTED, atol=1e-9)


def test_bags_give_least_squares_on_their_weighted_sums(rng):
    weights = rng.choice([-1.0, 1.0], size=(50, 4))
    rows, sums = ROWS.reshape(50, 4, 3), (weights * LABELS.reshape(50, 4)).sum(axis=1)
    row_sums = (weights[..., None] * rows).sum(axis=1)
    found = weights_of(from_bags("linear", rows, weights, sums, RANGE, 0))
    np.testing.assert_allclose(found, np.linalg.lstsq(row_sums, sums)[0], atol=1e-9)
    np.testing.assert_array_equal(found, weights_of(from_sums(row_sums, sums, RANGE)))


@pytest.mark.parametrize(("count", "few"), [(200, False), (10, True), (3, True), (2, True)])
def test_private_labels_are_shrunk_by_how_they_vary_or_where_they_are_few_by_their_mechanism(count, few):
    noise = calibrate("one_bit", epsilon=2.0, delta=0.0, label_range=RANGE)
    rows, labels = ROWS[:count], noise.release(LABELS[:count], NoiseBits(0, "few"))
    if few:
        variance = np.mean(noise.variance(np.linspace(*RANGE, 101)))
    else:
        residuals = labels - rows @ np.linalg.lstsq(rows, labels)[0]
        variance = residuals @ residuals / (count - 3)
    gram, known = rows.T @ rows, {"ones": rows.sum(axis=0), "rows": count, "label_range": RANGE}
    expected = shrink(gram, rows.T @ labels, variance * gram, **known)
    found = weights_of(from_labels("linear", rows, labels, RANGE, 0, noise))
    np.testing.assert_allclose(found, expected.weights, rtol=1e-6, atol=1e-9)


def test_noise_without_a_bound_leaves_the_middle_of_the_range():
    noise = calibrate("estimated_bins", epsilon=2.0, delta=0.0, label_range=(0.0, 4.0), debiased=True)
    rows = np.column_stack([ROWS[:5], np.ones(5)])
    description, arrays = from_labels("linear", rows, LABELS[:5], (0.0, 4.0), 0, noise)
    assert description["range"] == [0.0, 4.0]
    np.testing.assert_allclose(rows @ arrays["weights"], 2.0, atol=1e-3)


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_sums_are_no_regression(count):
    with pytest.raises(InputError, match=f"two sums or more, got {count}; use more or smaller bags"):
        from_sums(ROWS[:count], LABELS[:count], RANGE)
    with pytest.raises(InputError, match="two sums or more"):
        by_steps(ROWS[:count], LABELS[:count], RANGE, 1, 0)


def test_dependent_empty_and_far_columns_have_a_solution_of_least_norm():
    rows = np.column_stack([ROWS, ROWS[:, 0], np.zeros(200), 1e9 * ROWS[:, 1]])
    found = weights_of(from_moments(rows.T @ rows, rows.T @ LABELS, RANGE))
    np.testing.assert_allclose(rows @ found, ROWS @ EXPECTED, atol=1e-6)
    assert found[4] == 0
    assert found[0] == pytest.approx(found[3])  # in units of each column's norm the two share one weight
    assert found[1] == pytest.approx(1e9 * found[5])


def test_bags_that_a_party_could_not_form_are_told_apart():
    answers = collected(NoisyWeightedLLP(size=4, noise="off"), broken=(2,))
    formed = formed_bags(answers)
    assert formed.shape == (5, 87 // 4)
    assert formed.sum(axis=1).tolist() == [n // 4 for n in (80, 87, 87, 80, 87)]
    assert not (~formed[:, :-1] & formed[:, 1:]).any()  # those that there are come first


@pytest.mark.parametrize("source", ["bags", "labels"])
def test_networks_are_described_with_their_seed_and_range(source, monkeypatch):
    asked = []

    class Fitted:
        def __init__(self, label_range, seed):
            asked.append((label_range, seed))

        def fit(self, rows, bags, weights, sums):
            assert (rows.shape, bags.shape) == ((200, 3), (50, 4))
            np.testing.assert_array_equal(rows[bags], ROWS.reshape(50, 4, 3))
            return self

        def fit_labels(self, rows, labels):
            return self

        def to_arrays(self):
            return {"layers": 1}, {"weights": np.ones(1)}

    monkeypatch.setattr("aggregator.regressions.models.BagNetwork", Fitted)
    if source == "bags":
        rows, weights = ROWS.reshape(50, 4, 3), np.ones((50, 4))
        description, arrays = from_bags("network", rows, weights, np.ones(50), RANGE, 7)
    else:
        description, arrays = from_labels("network", ROWS, LABELS, RANGE, 7)
    assert asked == [(RANGE, 7)]
    assert description == {"layers": 1, "learner": BagNetwork.name}
    assert list(arrays) == ["weights"]
