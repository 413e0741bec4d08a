"""The estimator: what it learns, what it takes, what it keeps, and what it refuses."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_limits

from aggregator.learners.bag_regression import network as module
from aggregator.learners.bag_regression.network import BagNetwork
from federation.contract.errors import FederationError, InputError
from federation.contract.randomness import NoiseBits
from federation.numerics.bag_weights import disjoint_bags, gaussian_weights, sign_weights
from parties.responses.labels import label_sums

RANGE = (0.0, 10.0)


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(1):
        yield


def table(rows, seed=0):
    """Rows (n, 4) with an indicator, and labels in the range, not linear in them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 4)) * [1, 100, 0.01, 1] + [0, 5000, 0, 0]
    x[:, 3] = rng.random(rows) < 0.3
    signal = 3 + 3 * np.tanh(x[:, 0]) * (1 - x[:, 3]) + 2 * np.abs(x[:, 1] - 5000) / 100
    return x, np.clip(signal + 0.3 * rng.normal(size=rows), *RANGE)


def released(count=150, size=8, draw=sign_weights, seed=0):
    rows, labels = table(count * size + 50, seed)
    bits = NoiseBits(seed, "bags")
    bags, weights = disjoint_bags(len(rows), count, size, bits), draw(count, size, bits)
    return rows, bags, weights, label_sums(labels, bags, weights)


def quick(**changes):
    return BagNetwork(**{"label_range": RANGE, "hidden": (16, 8), "epochs": 4, **changes})


@pytest.mark.parametrize("draw", [sign_weights, gaussian_weights])
def test_it_learns_labels_that_it_never_sees(draw):
    rows, labels = table(3000, seed=9)
    network = BagNetwork(RANGE, epochs=40, learning_rate=3e-3, patience=10).fit(*released(600, 8, draw))
    error = np.mean((network.predict(rows) - labels) ** 2)
    linear = np.linalg.lstsq(np.column_stack([rows, np.ones(3000)]), labels, rcond=None)[1][0] / 3000
    assert error < 0.4 * linear


def test_labels_of_rows_are_bags_of_one():
    rows, labels = table(400)
    alone = quick().fit_labels(rows, labels)
    bags = quick().fit(rows, np.arange(400)[:, None], np.ones((400, 1)), labels)
    np.testing.assert_array_equal(alone.parameters_, bags.parameters_)
    test_rows, test_labels = table(2000, seed=9)
    network = BagNetwork(RANGE, epochs=60, batch_size=32, patience=10).fit_labels(*table(4000))
    assert np.mean((network.predict(test_rows) - test_labels) ** 2) < 0.25


def test_equal_seeds_give_equal_bits_and_others_do_not():
    data = released()
    np.testing.assert_array_equal(quick().fit(*data).parameters_, quick().fit(*data).parameters_)
    assert (quick(seed=1).fit(*data).parameters_ != quick().fit(*data).parameters_).any()


def test_a_memory_map_gives_the_bits_of_an_array(tmp_path, monkeypatch):
    rows, *others = released()
    rows.tofile(tmp_path / "rows")
    mapped = np.memmap(tmp_path / "rows", np.float64, "r", shape=rows.shape)
    expected = quick().fit(rows, *others)
    np.testing.assert_array_equal(quick().fit(mapped, *others).parameters_, expected.parameters_)
    np.testing.assert_array_equal(expected.predict(mapped), expected.predict(rows))
    monkeypatch.setattr(module, "_TILE", 64)
    np.testing.assert_array_equal(quick().fit(rows, *others).parameters_, expected.parameters_)


def test_rows_in_another_order_are_the_same_rows():
    rows, bags, weights, sums = released()
    order = np.random.default_rng(0).permutation(len(rows))
    moved = np.argsort(order)[bags]
    np.testing.assert_array_equal(
        quick().fit(rows[order], moved, weights, sums).parameters_, quick().fit(rows, bags, weights, sums).parameters_
    )


def test_the_order_of_bags_is_drawn_anyway():
    """Bags given in another order, and drawn back into the first one, make the same network."""
    rows, bags, weights, sums = released()

    class Reversed(np.random.Generator):
        def permutation(self, count):
            return count - 1 - super().permutation(count)

    def generator(kind):
        return lambda seed, purpose: kind(np.random.PCG64(seed))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "generator", generator(np.random.Generator))
        first = quick().fit(rows, bags, weights, sums)
        patch.setattr(module, "generator", generator(Reversed))
        second = quick().fit(rows, bags[::-1], weights[::-1], sums[::-1])
    np.testing.assert_array_equal(first.parameters_, second.parameters_)


@given(st.floats(-1e3, 1e3), st.floats(0.1, 1e3), st.integers(0, 5))
@settings(max_examples=15, deadline=None)
def test_units_of_labels_change_predictions_by_as_much(shift, factor, seed):
    """Sums of a y + b are a s + b sum w: what single precision leaves of them trains the same network."""
    rows, bags, weights, sums = released(20, 5, seed=seed)
    moved = factor * sums + shift * weights.sum(axis=1)
    span = (shift, shift + factor * RANGE[1])
    first = quick(epochs=1).fit(rows, bags, weights, sums).predict(rows)
    second = quick(epochs=1, label_range=span).fit(rows, bags, weights, moved).predict(rows)
    np.testing.assert_allclose((second - shift) / factor, first, atol=1e-2)


def test_losses_are_in_squared_units_of_the_label():
    rows, bags, weights, sums = released()
    for validation in (0.1, 0.3):
        network = quick(validation=validation, patience=None).fit(rows, bags, weights, sums)
        predicted = (weights * network.predict(rows)[bags]).sum(axis=1)
        everywhere = np.mean((predicted - sums) ** 2) / bags.shape[1]
        assert everywhere == pytest.approx(network.losses_[-1].mean(), rel=0.5)
        assert network.losses_.shape == (4, 2)


def test_predictions_lie_in_the_declared_range():
    rows, bags, weights, sums = released()
    network = quick(label_range=(3.0, 3.5), learning_rate=1e-6).fit(rows, bags, weights, sums)
    predicted = network.predict(rows + 50 * (rows - rows.mean(axis=0)))
    assert predicted.min() == 3.0
    assert predicted.max() == 3.5
    assert predicted.dtype == np.float64


@pytest.mark.parametrize(("size", "options", "steps"), [
    (8, {"batch_size": 10}, 15), (8, {"batch_size": 80, "batch_unit": "rows"}, 15),
    (8, {"batch_size": 3, "batch_unit": "rows"}, 150), (8, {}, 2), (100, {}, 10), (100, {"batch_size": 150}, 1),
])  # fmt: skip
def test_batches_are_counted_in_bags_or_rows(size, options, steps, monkeypatch):
    taken = []

    def watched(network, bags, held_out, batch, options, random):
        taken.append(-(-len(bags.sums) // batch))
        return train(network, bags, held_out, batch, options, random)

    train = module.train
    monkeypatch.setattr(module, "train", watched)
    quick(epochs=1, validation=0, **options).fit(*released(150, size))
    assert taken == [steps]


def test_a_tenth_of_the_bags_is_held_out_and_at_least_one(monkeypatch):
    taken = []

    def watched(network, bags, held_out, batch, options, random):
        taken.append(held_out)
        return train(network, bags, held_out, batch, options, random)

    train = module.train
    monkeypatch.setattr(module, "train", watched)
    for count in (150, 3):
        quick(epochs=1).fit(*released(count))
    quick(epochs=1, validation=0).fit(*released(1))
    assert taken == [15, 1, 0]


def test_it_survives_storage(tmp_path):
    rows, *others = released()
    network = quick(validation=0.2, patience=None, hidden=(5,)).fit(rows, *others)
    description, arrays = network.to_arrays()
    np.savez(tmp_path / "network.npz", description=json.dumps(description), **arrays)
    with np.load(tmp_path / "network.npz", allow_pickle=False) as stored:
        loaded = BagNetwork.from_arrays(json.loads(str(stored["description"])), stored)
    np.testing.assert_array_equal(loaded.predict(rows), network.predict(rows))
    np.testing.assert_array_equal(loaded.losses_, network.losses_)
    assert loaded.n_features_in_ == 4
    np.testing.assert_array_equal(loaded.fit(rows, *others).parameters_, network.parameters_)


def test_arrays_of_another_network_are_refused():
    description, arrays = quick().fit(*released()).to_arrays()
    description["parameters"]["hidden"] = [16, 9]
    with pytest.raises(InputError, match=r"hidden layers \[16, 9\] on 4 columns"):
        BagNetwork.from_arrays(description, arrays)


def test_it_is_an_estimator():
    network = quick(seed=3)
    copy = clone(network)
    assert copy.get_params() == network.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(np.zeros((1, 4)))
    rows, labels = table(500)
    fitted = network.set_params(epochs=20).fit_labels(rows, labels)
    assert fitted is network
    assert 0 < fitted.score(rows, labels) < 1


def test_training_that_diverges_is_refused():
    rows, bags, weights, sums = released()
    with pytest.raises(FederationError, match="lower it"):
        quick(learning_rate=1e30, validation=0).fit(rows, bags, weights, sums)


@pytest.mark.parametrize(("options", "complaint"), [
    ({"label_range": (1.0, 1.0)}, "label_range"), ({"label_range": (2.0, 1.0)}, "label_range"),
    ({"label_range": (0.0, np.nan)}, "label_range"), ({"label_range": (0.0,)}, "label_range"),
    ({"epochs": 0}, "epochs must be an integer from 1"), ({"learning_rate": 0.0}, "learning_rate"),
    ({"alpha": np.inf}, "alpha"), ({"hidden": (4, 0)}, "hidden"), ({"hidden": (4.5,)}, "hidden"),
    ({"patience": 0}, "patience"), ({"batch_size": 0}, "batch_size"), ({"batch_unit": "epochs"}, "'bags' or 'rows'"),
    ({"validation": 1.0}, "validation"), ({"validation": -0.1}, "validation"),
    ({"validation": 0.999}, "leaves none to learn from"),
])  # fmt: skip
def test_parameters_that_cannot_be_used_are_refused(options, complaint):
    with pytest.raises(InputError, match=complaint):
        quick(**options).fit(*released(40))


@pytest.mark.parametrize(("change", "complaint"), [
    (lambda x, b, w, s: (x[:, 0], b, w, s), "rows must be numbers of shape"),
    (lambda x, b, w, s: (x.astype(str), b, w, s), "rows must be numbers"),
    (lambda x, b, w, s: (np.where(x == x[7, 2], np.nan, x), b, w, s), "row 7 "),
    (lambda x, b, w, s: (x, b.astype(float), w, s), "row numbers"),
    (lambda x, b, w, s: (x, b[:0], w[:0], s[:0]), "row numbers"),
    (lambda x, b, w, s: (x, b[:, :0], w[:, :0], s), "row numbers"),
    (lambda x, b, w, s: (x, b + len(x), w, s), "from 0 to"),
    (lambda x, b, w, s: (x, b - 1 - b.min(), w, s), "from 0 to"),
    (lambda x, b, w, s: (x, b, w[:, 1:], s), "weights must have shape"),
    (lambda x, b, w, s: (x, b, w * np.nan, s), "weights must be finite"),
    (lambda x, b, w, s: (x, b, w, s[1:]), "one number for each bag"),
    (lambda x, b, w, s: (x, b, w, np.append(s[1:], np.inf)), "sums must be finite"),
    (lambda x, b, w, s: (x, b, w, ["a"] * 40), "sums must be an array of numbers"),
])  # fmt: skip
def test_arrays_that_cannot_be_used_are_refused(change, complaint):
    with pytest.raises(InputError, match=complaint):
        quick().fit(*change(*released(40)))


def test_other_bad_calls_are_refused():
    rows, labels = table(30)
    with pytest.raises(InputError, match="one number for each row"):
        quick().fit_labels(rows, labels[:-1])
    with pytest.raises(InputError, match="labels must be finite"):
        quick().fit_labels(rows, labels * np.nan)
    with pytest.raises(InputError, match="holding out 1 of 1 bags"):
        quick().fit(*released(1))
    network = quick().fit(*released(40))
    with pytest.raises(InputError, match="4 columns"):
        network.predict(rows[:, :3])
    with pytest.raises(InputError, match="row 3 "):
        network.predict(np.where(np.arange(30)[:, None] == 3, np.inf, rows))
