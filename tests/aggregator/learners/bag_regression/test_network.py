"""The estimator: what it learns, what it takes, what it keeps, and what it refuses.

The network's outputs and gradient: against its definition, finite differences and scikit-learn. Training on bags: the
loss and its gradient, the steps, which bags decide when to stop, and what is kept. Scaling of columns: indicators keep
their values, other columns get one scale.
"""

import json
import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.neural_network import MLPRegressor
from support.examples import examples
from support.refusals import refused
from threadpoolctl import threadpool_limits

from aggregator.learners.bag_regression import network as module
from aggregator.learners.bag_regression.network import (
    Adam,
    BagNetwork,
    Perceptron,
    ReleasedBags,
    averaged,
    bag_loss,
    column_scaling,
    cosine_decay,
    train,
)
from federation.contract.errors import FederationError, InputError
from federation.contract.randomness import NoiseBits
from federation.numerics.bag_weights import disjoint_bags, gaussian_weights, sign_weights
from parties.responses.labels import label_sums

RANGE = (0.0, 10.0)


@pytest.fixture(autouse=True, scope="module")
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


@pytest.mark.slow
@pytest.mark.parametrize("draw", [sign_weights, gaussian_weights])
def test_it_learns_labels_that_it_never_sees(draw):
    rows, labels = table(3000, seed=9)
    network = BagNetwork(RANGE, epochs=40, learning_rate=3e-3, patience=10).fit(*released(600, 8, draw))
    error = np.mean((network.predict(rows) - labels) ** 2)
    linear = np.linalg.lstsq(np.column_stack([rows, np.ones(3000)]), labels, rcond=None)[1][0] / 3000
    assert error < 0.4 * linear


@pytest.mark.slow
def test_labels_of_rows_are_bags_of_one():
    rows, labels = table(400)
    alone = quick().fit_labels(rows, labels)
    bags = quick().fit(rows, np.arange(400)[:, None], np.ones((400, 1)), labels)
    np.testing.assert_array_equal(alone.parameters_, bags.parameters_)
    test_rows, test_labels = table(2000, seed=9)
    network = BagNetwork(RANGE, epochs=60, batch_size=32, patience=10).fit_labels(*table(4000))
    assert np.mean((network.predict(test_rows) - test_labels) ** 2) < 0.25


def test_equal_seeds_and_a_memory_map_give_equal_bits_and_others_do_not(tmp_path, monkeypatch):
    data = released()
    np.testing.assert_array_equal(quick().fit(*data).parameters_, quick().fit(*data).parameters_)
    assert (quick(seed=1).fit(*data).parameters_ != quick().fit(*data).parameters_).any()
    rows, bags, *others = released()
    rows.tofile(tmp_path / "rows")
    mapped = np.memmap(tmp_path / "rows", np.float64, "r", shape=rows.shape)
    expected = quick().fit(rows, bags, *others)
    np.testing.assert_array_equal(quick().fit(mapped, bags, *others).parameters_, expected.parameters_)
    np.testing.assert_array_equal(expected.predict(mapped), expected.predict(rows))
    order = np.random.default_rng(0).permutation(len(rows))
    moved = quick().fit(rows[order], np.argsort(order)[bags], *others)
    np.testing.assert_array_equal(moved.parameters_, expected.parameters_)
    monkeypatch.setattr(module, "_TILE", 64)
    np.testing.assert_array_equal(quick().fit(rows, bags, *others).parameters_, expected.parameters_)


@given(st.floats(-1e3, 1e3), st.floats(0.1, 1e3), st.integers(0, 5))
@settings(max_examples=examples(15))
def test_units_of_labels_change_predictions_by_as_much(shift, factor, seed):
    """Sums of a y + b are a s + b sum w: what single precision leaves of them trains the same network."""
    rows, bags, weights, sums = released(20, 5, seed=seed)
    moved = factor * sums + shift * weights.sum(axis=1)
    span = (shift, shift + factor * RANGE[1])
    first = quick(epochs=1).fit(rows, bags, weights, sums).predict(rows)
    second = quick(epochs=1, label_range=span).fit(rows, bags, weights, moved).predict(rows)
    np.testing.assert_allclose((second - shift) / factor, first, atol=1e-2)


def test_losses_are_in_squared_units_of_the_label_and_predictions_in_the_declared_range():
    rows, bags, weights, sums = released()
    for validation in (0.1, 0.3):
        network = quick(validation=validation, patience=None).fit(rows, bags, weights, sums)
        predicted = (weights * network.predict(rows)[bags]).sum(axis=1)
        everywhere = np.mean((predicted - sums) ** 2) / bags.shape[1]
        assert everywhere == pytest.approx(network.losses_[-1].mean(), rel=0.5)
        assert network.losses_.shape == (4, 2)
    rows, bags, weights, sums = released()
    network = quick(label_range=(3.0, 3.5), learning_rate=1e-6).fit(rows, bags, weights, sums)
    predicted = network.predict(rows + 50 * (rows - rows.mean(axis=0)))
    assert predicted.min() == 3.0
    assert predicted.max() == 3.5
    assert predicted.dtype == np.float64


@pytest.mark.parametrize(("count", "size", "options", "steps", "held_out"), [
    (150, 8, {"batch_size": 10}, 15, 0), (150, 8, {"batch_size": 80, "batch_unit": "rows"}, 15, 0),
    (150, 8, {"batch_size": 3, "batch_unit": "rows"}, 150, 0), (150, 8, {}, 2, 0), (150, 100, {}, 10, 0),
    (150, 100, {"batch_size": 150}, 1, 0),
    (150, 8, {"validation": 0.1}, 2, 15), (3, 8, {"validation": 0.1}, 1, 1), (1, 8, {}, 1, 0),
])  # fmt: skip
def test_batches_are_counted_in_bags_or_rows_and_a_tenth_of_the_bags_is_held_out(
    count, size, options, steps, held_out, monkeypatch
):
    taken = []

    def watched(network, bags, held_out, batch, options, random):
        taken.append((-(-len(bags.sums) // batch), held_out))
        return train(network, bags, held_out, batch, options, random)

    monkeypatch.setattr(module, "train", watched)
    quick(epochs=1, **{"validation": 0, **options}).fit(*released(count, size))
    assert taken == [(steps, held_out)]


def test_it_is_an_estimator_and_survives_storage(tmp_path):
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
    network = quick(seed=3)
    copy = clone(network)
    assert copy.get_params() == network.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(np.zeros((1, 4)))
    rows, labels = table(500)
    fitted = network.set_params(epochs=20).fit_labels(rows, labels)
    assert fitted is network
    assert 0 < fitted.score(rows, labels) < 1


@pytest.mark.parametrize(("options", "complaint"), [
    ({"label_range": (1.0, 1.0)}, "label_range"), ({"label_range": (2.0, 1.0)}, "label_range"),
    ({"label_range": (0.0, np.nan)}, "label_range"), ({"label_range": (0.0,)}, "label_range"),
    ({"epochs": 0}, r"epochs.*1"), ({"learning_rate": 0.0}, "learning_rate"),
    ({"alpha": np.inf}, "alpha"), ({"hidden": (4, 0)}, "hidden"), ({"hidden": (4.5,)}, "hidden"),
    ({"patience": 0}, "patience"), ({"batch_size": 0}, "batch_size"), ({"batch_unit": "epochs"}, r"bags.*rows"),
    ({"validation": 1.0}, "validation"), ({"validation": -0.1}, "validation"),
    ({"validation": 0.999}, None),
])  # fmt: skip
def test_parameters_that_cannot_be_used_are_refused(options, complaint):
    with pytest.raises(InputError, match=complaint):
        quick(**options).fit(*released(40))


@pytest.mark.parametrize(("change", "complaint"), [
    (lambda x, b, w, s: (x[:, 0], b, w, s), "rows"),
    (lambda x, b, w, s: (x.astype(str), b, w, s), "rows"),
    (lambda x, b, w, s: (np.where(x == x[7, 2], np.nan, x), b, w, s), "7"),
    (lambda x, b, w, s: (x, b.astype(float), w, s), None),
    (lambda x, b, w, s: (x, b[:0], w[:0], s[:0]), None),
    (lambda x, b, w, s: (x, b[:, :0], w[:, :0], s), None),
    (lambda x, b, w, s: (x, b + len(x), w, s), "0"),
    (lambda x, b, w, s: (x, b - 1 - b.min(), w, s), "0"),
    (lambda x, b, w, s: (x, b, w[:, 1:], s), "weights"),
    (lambda x, b, w, s: (x, b, w * np.nan, s), "weights"),
    (lambda x, b, w, s: (x, b, w, s[1:]), None),
    (lambda x, b, w, s: (x, b, w, np.append(s[1:], np.inf)), "sums"),
    (lambda x, b, w, s: (x, b, w, ["a"] * 40), "sums"),
])  # fmt: skip
def test_arrays_that_cannot_be_used_are_refused(change, complaint):
    refused(complaint, quick().fit, *change(*released(40)))


def test_other_bad_calls_are_refused():
    rows, labels = table(30)
    refused(None, quick().fit_labels, rows, labels[:-1])
    refused("labels", quick().fit_labels, rows, labels * np.nan)
    refused(r"1.*1", quick().fit, *released(1))
    with pytest.raises(FederationError):
        quick(learning_rate=1e30, validation=0).fit(*released())
    network = quick().fit(*released(40))
    refused("4", network.predict, rows[:, :3])
    refused("3", network.predict, np.where(np.arange(30)[:, None] == 3, np.inf, rows))
    description, arrays = network.to_arrays()
    description["parameters"]["hidden"] = [16, 9]
    refused(r"16.*9.*4", BagNetwork.from_arrays, description, arrays)


def drawn(widths, rows, seed=0):
    rng = np.random.default_rng(seed)
    network = Perceptron(widths)
    return network, rng.normal(size=network.size), rng.normal(size=(rows, widths[0])), rng


def test_outputs_are_those_of_scikit_learn_and_initial_parameters_keep_the_scale_of_their_inputs():
    network, parameters, x, rng = drawn((7, 12, 5, 1), 50)
    model = MLPRegressor(hidden_layer_sizes=(12, 5)).partial_fit(x, rng.normal(size=50))
    model.coefs_, model.intercepts_ = (list(part) for part in zip(*network.layers(parameters), strict=True))
    np.testing.assert_allclose(network.outputs(parameters, x), model.predict(x), rtol=1e-12)
    network, parameters, _, _ = drawn((3, 4, 2, 1), 1)
    for matrix, bias in network.layers(parameters):
        matrix[:], bias[:] = 0, 0
    assert not parameters.any()
    assert network.size == 3 * 4 + 4 + 4 * 2 + 2 + 2 + 1
    assert Perceptron((121, 128, 64, 1)).size == 122 * 128 + 129 * 64 + 65  # as published
    network = Perceptron((500, 300, 200, 1))
    parameters = network.initial(np.random.default_rng(0))
    for (matrix, bias), total in zip(network.layers(parameters), (800, 500, 201), strict=True):
        assert not bias.any()
        assert np.abs(matrix).max() <= np.sqrt(6 / total)
        assert matrix.std() == pytest.approx(np.sqrt(2 / total), rel=0.1)
    network, _, x, rng = drawn((3, 4, 1), 6)
    parameters = network.initial(rng)
    activations = network.activations(parameters, x.astype(np.float32))
    gradient = np.zeros_like(parameters)
    network.add_gradient(gradient, parameters, activations, np.ones(6, np.float32))
    assert {values.dtype for values in activations} == {gradient.dtype, parameters.dtype} == {np.dtype(np.float32)}


OPTIONS = {"epochs": 30, "learning_rate": 3e-3, "patience": None, "average": False}
NETWORK = Perceptron((3, 8, 1))


def training_released(count=60, size=4, seed=0):
    rng = np.random.default_rng(seed)
    rows, weights = rng.normal(size=(count, size, 3)).astype(np.float32), rng.normal(size=(count, size))
    labels = np.tanh(rows[..., 0]) + 0.3 * rng.normal(size=(count, size))
    return ReleasedBags(rows, weights.astype(np.float32), (weights * labels).sum(axis=1).astype(np.float32))


def trained(bags, validation=12, seed=1, batch=4, **changes):
    options = BagNetwork((-1, 1), **{**OPTIONS, **changes})
    return train(NETWORK, bags, validation, batch, options, np.random.default_rng(seed))


def held_out(count, validation, seed=1):
    """The bags that are held out: the first ones of the permutation drawn after the initial parameters."""
    rng = np.random.default_rng(seed)
    NETWORK.initial(rng)
    return rng.permutation(count)[:validation]


@pytest.mark.slow
def test_validation_bags_decide_when_to_stop_and_the_best_parameters_are_kept():
    bags = training_released()
    found, chosen = trained(bags), held_out(60, 12)
    assert bag_loss(NETWORK, found.parameters, bags, chosen) == found.losses[:, 1].min()
    assert found.losses.shape == (30, 2)
    assert found.losses[-1, 0] < 0.5 * found.losses[0, 0]
    last = trained(bags, restore_best=False)
    assert bag_loss(NETWORK, last.parameters, bags, chosen) == last.losses[-1, 1]
    np.testing.assert_array_equal(last.losses, found.losses)
    # Other sums of held out bags change their losses, and so where training stops, but no training loss before.
    bags, chosen = training_released(), held_out(60, 12)
    sums = bags.sums.copy()
    sums[chosen] = sums[chosen][::-1] * 30
    other = replace(bags, sums=sums)
    first, second = trained(bags), trained(other)
    np.testing.assert_array_equal(first.losses[:, 0], second.losses[:, 0])
    assert (first.losses[:, 1] != second.losses[:, 1]).all()
    assert len(trained(bags, patience=3).losses) != len(trained(other, patience=3).losses)
    found = trained(training_released(), validation=0, patience=1)
    assert len(found.losses) == 30
    assert np.isnan(found.losses[:, 1]).all()
    assert (trained(training_released(), validation=0, restore_best=False).parameters == found.parameters).all()


@pytest.mark.parametrize("patience", [1, 2, 5])
def test_training_stops_when_patience_ends(patience):
    without = trained(training_released(), epochs=100, learning_rate=0.03).losses[:, 1]
    losses = trained(training_released(), epochs=100, learning_rate=0.03, patience=patience).losses[:, 1]
    np.testing.assert_array_equal(losses, without[: len(losses)])
    lower = np.minimum.accumulate(np.append(np.inf, losses))
    waited = [0]
    for loss, least in zip(losses, lower, strict=False):
        waited.append(0 if loss < least else waited[-1] + 1)
    assert max(waited) == waited[-1] == patience


def test_every_training_bag_is_learned_from_once_an_epoch_and_held_out_bags_are_only_judged(monkeypatch):
    chosen, learned, judged = held_out(60, 12).tolist(), [], []

    def watched(network, parameters, bags, part, gradient=None):
        (judged if gradient is None else learned).extend(part.tolist())
        return bag_loss(network, parameters, bags, part, gradient)

    monkeypatch.setattr(module, "bag_loss", watched)
    trained(training_released(), epochs=2, batch=7)
    first, second = learned[:48], learned[48:]
    assert sorted(first) == sorted(second) == sorted(set(range(60)) - set(chosen))
    assert first != second
    assert sorted(judged) == sorted(2 * chosen)


def test_averages_weigh_steps_by_rising_factorials():
    values = np.random.default_rng(0).normal(size=(20, 3))
    average = np.full(3, 99.0)
    for step, value in enumerate(values, start=1):
        averaged(average, value, step)
        weights = np.array([math.prod(range(s, s + 8)) for s in range(1, step + 1)], dtype=float)
        np.testing.assert_allclose(average, weights @ values[:step] / weights.sum(), rtol=1e-12)


def test_averages_are_judged_and_kept_and_do_not_change_the_path(monkeypatch):
    seen = []

    def watched(average, parameters, step):
        seen.append((step, parameters.copy()))
        averaged(average, parameters, step)

    monkeypatch.setattr(module, "averaged", watched)
    bags = training_released()
    plain, found = trained(bags, restore_best=False), trained(bags, restore_best=False, average=True)
    np.testing.assert_array_equal(found.losses[:, 0], plain.losses[:, 0])
    np.testing.assert_array_equal(seen[-1][1], plain.parameters)
    assert [step for step, _ in seen] == list(range(1, 30 * 12 + 1))
    expected = np.zeros(NETWORK.size, np.float32)
    for step, parameters in seen:
        averaged(expected, parameters, step)
    np.testing.assert_allclose(found.parameters, expected, rtol=1e-5, atol=1e-6)
    assert bag_loss(NETWORK, found.parameters, bags, held_out(60, 12)) == found.losses[-1, 1]


def test_steps_are_the_weighted_means_of_the_algorithm_and_the_rate_decays():
    """The moments as explicit sums: m_t = sum (1 - b1) b1^(t-s) g_s, corrected by 1 - b1^t; likewise v_t."""
    rng = np.random.default_rng(0)
    start, gradients = rng.normal(size=5), rng.normal(size=(30, 5))
    parameters = start.copy()
    adam, expected = Adam(parameters), start.copy()
    for t, gradient in enumerate(gradients, start=1):
        adam.step(gradient, 1e-2)
        ages = np.arange(t - 1, -1, -1.0)
        first, second = 0.1 * 0.9**ages, 0.001 * 0.999**ages
        mean, square = first @ gradients[:t] / first.sum(), second @ gradients[:t] ** 2 / second.sum()
        expected -= 1e-2 * mean / (np.sqrt(square) + 1e-7)
        np.testing.assert_allclose(parameters, expected, rtol=1e-10)
    rates = [cosine_decay(step, 100, 1e-3, 1e-3) for step in range(101)]
    assert rates[0] == 1e-3
    assert rates[-1] == pytest.approx(1e-6)
    assert rates[50] == pytest.approx(1e-3 * (1 + 1e-3) / 2)
    assert all(later < earlier for earlier, later in pairwise(rates))
    assert rates[25] == pytest.approx(1e-6 + (1e-3 - 1e-6) * (1 + math.sqrt(0.5)) / 2)


def problem(count, size, columns=3, hidden=(4, 3), seed=0):
    rng = np.random.default_rng(seed)
    network = Perceptron((columns, *hidden, 1))
    bags = ReleasedBags(rng.normal(size=(count, size, columns)), rng.normal(size=(count, size)), rng.normal(size=count))
    return network, rng.normal(size=network.size), bags, rng


def by_definition(network, parameters, bags, chosen):
    size = bags.weights.shape[1]
    predicted = [bags.weights[j] @ network.outputs(parameters, bags.rows[j]) for j in chosen]
    return sum((p - bags.sums[j]) ** 2 for p, j in zip(predicted, chosen, strict=True)) / (len(chosen) * size)


@given(st.integers(1, 8), st.integers(1, 8), st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(0, 2**32))
def test_the_loss_is_its_definition_and_the_gradient_that_of_finite_differences(count, size, hidden, seed):
    network, parameters, bags, rng = problem(count, size, hidden=hidden, seed=seed)
    chosen, gradient = rng.permutation(count)[: rng.integers(1, count + 1)], np.full(network.size, np.nan)
    expected = by_definition(network, parameters, bags, chosen)
    assert bag_loss(network, parameters, bags, chosen) == pytest.approx(expected, rel=1e-10)
    bag_loss(network, parameters, bags, chosen, gradient)
    direction = rng.normal(size=network.size)
    step = 1e-7  # too short to cross a kink but by rare chance, which the bound below allows for
    ahead, behind = (by_definition(network, parameters + s * direction, bags, chosen) for s in (step, -step))
    expected, length = (ahead - behind) / (2 * step), np.abs(gradient) @ np.abs(direction)
    assert gradient @ direction == pytest.approx(expected, abs=1e-5 * (1 + length))


@pytest.mark.parametrize("size", [1, 3, 50])
def test_tiles_change_nothing_but_rounding(size, monkeypatch):
    network, parameters, bags, _ = problem(40, size)
    whole, parts = np.empty(network.size), np.empty(network.size)
    first = bag_loss(network, parameters, bags, np.arange(40), whole)
    monkeypatch.setattr(module, "_TRAINING_TILE", 7)
    assert bag_loss(network, parameters, bags, np.arange(40), parts) == pytest.approx(first, rel=1e-12)
    np.testing.assert_allclose(parts, whole, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("draw", [gaussian_weights, sign_weights])
def test_the_loss_of_bags_estimates_that_of_rows_without_bias(draw):
    """E_w of the bag loss is the mean of (f(x) - y)^2; noise of variance v on sums adds v / k."""
    size, runs, noise = 5, 40_000, 1.5
    network, parameters, fixed, rng = problem(1, size)
    labels = rng.normal(size=size)
    weights = draw(runs, size, NoiseBits(0, "weights"))
    sums = weights @ labels + noise * rng.normal(size=runs)
    rows = np.broadcast_to(fixed.rows, (runs, size, 3))
    expected = np.mean((network.outputs(parameters, fixed.rows[0]) - labels) ** 2) + noise**2 / size
    misses = weights @ network.outputs(parameters, fixed.rows[0]) - sums
    error = np.std(misses**2 / size) / np.sqrt(runs)
    found = bag_loss(network, parameters, ReleasedBags(rows, weights, sums), np.arange(runs))
    assert found == pytest.approx(expected, abs=4 * error)
    assert error < 0.02 * expected


@pytest.mark.parametrize("share", [0.001, 0.3, 0.7, 0.999])
@pytest.mark.parametrize("values", [(0.0, 1.0), (-3.0, 40.0)])
def test_a_column_of_two_values_becomes_an_indicator_of_the_rarer(share, values):
    column = np.random.default_rng(0).random(5000) < share
    rows = np.where(column, values[1], values[0])[:, None]
    centre, scale = column_scaling(rows)
    assert set(np.abs((rows - centre) / scale).ravel()) == {0.0, 1.0}
    assert ((rows != centre).mean()) <= 0.5


def test_other_columns_get_unit_mean_square_about_the_median_unless_they_do_not_vary():
    rows = np.random.default_rng(0).normal([[5.0, -300.0]], [[1e-3, 40.0]], size=(4001, 2))
    centre, scale = column_scaling(rows)
    np.testing.assert_array_equal(centre, np.median(rows, axis=0))
    np.testing.assert_allclose(np.mean(((rows - centre) / scale) ** 2, axis=0), 1, rtol=1e-3)
    centre, scale = column_scaling(np.linspace(0, 1, 100_000)[:, None])  # of which a sample is taken
    assert centre[0] == pytest.approx(0.5, abs=1e-3)
    assert scale[0] == pytest.approx(np.sqrt(1 / 12), rel=1e-3)
    centre, scale = column_scaling(np.full((10, 2), [7.0, 0.0]))
    assert (centre.tolist(), scale.tolist()) == ([7.0, 0.0], [1.0, 1.0])


@given(st.integers(1, 50), st.integers(-3, 3), st.floats(-100, 100), st.integers(0, 2**32))
def test_units_change_nothing(rows, power, shift, seed):
    values = np.random.default_rng(seed).normal(size=(rows, 2))
    moved = values * 8.0**power + shift
    (centre, scale), (other, others) = column_scaling(values), column_scaling(moved)
    assert (scale > 0).all()
    np.testing.assert_allclose((moved - other) / others, (values - centre) / scale, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_extreme_units_do_not_overflow(size):
    rows = np.random.default_rng(0).normal(size=(100, 1)) * size
    centre, scale = column_scaling(rows)
    assert np.mean(((rows - centre) / scale) ** 2) == pytest.approx(1, rel=0.02)
