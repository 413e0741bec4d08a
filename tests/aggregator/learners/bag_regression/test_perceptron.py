"""The network's outputs and gradient: against its definition, finite differences and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neural_network import MLPRegressor

from aggregator.learners.bag_regression.network import Perceptron


def drawn(widths, rows, seed=0):
    rng = np.random.default_rng(seed)
    network = Perceptron(widths)
    return network, rng.normal(size=network.size), rng.normal(size=(rows, widths[0])), rng


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(1, 8), st.integers(0, 2**32))
@settings(max_examples=50, deadline=None)
def test_the_gradient_is_that_of_finite_differences(hidden, rows, seed):
    network, parameters, x, rng = drawn((*hidden, 1), rows, seed)
    slopes = rng.normal(size=rows)
    gradient = np.zeros(network.size)
    network.add_gradient(gradient, parameters, network.activations(parameters, x), slopes)
    direction = rng.normal(size=network.size)
    step = 1e-7  # too short to cross a kink but by rare chance, which the bound below allows for
    ahead, behind = (slopes @ network.outputs(parameters + s * direction, x) for s in (step, -step))
    expected = (ahead - behind) / (2 * step)
    size = np.abs(gradient) @ np.abs(direction)
    assert gradient @ direction == pytest.approx(expected, abs=1e-5 * (1 + size))


def test_gradients_are_added():
    network, parameters, x, rng = drawn((3, 5, 4, 1), 9)
    slopes = rng.normal(size=9)
    whole, parts = np.zeros(network.size), np.zeros(network.size)
    network.add_gradient(whole, parameters, network.activations(parameters, x), slopes)
    for part in (slice(0, 4), slice(4, 9)):
        network.add_gradient(parts, parameters, network.activations(parameters, x[part]), slopes[part])
    np.testing.assert_allclose(parts, whole, rtol=1e-12, atol=1e-12)


def test_outputs_are_those_of_scikit_learn():
    network, parameters, x, rng = drawn((7, 12, 5, 1), 50)
    model = MLPRegressor(hidden_layer_sizes=(12, 5)).partial_fit(x, rng.normal(size=50))
    model.coefs_, model.intercepts_ = (list(part) for part in zip(*network.layers(parameters), strict=True))
    np.testing.assert_allclose(network.outputs(parameters, x), model.predict(x), rtol=1e-12)


def test_layers_are_views_that_fill_the_vector():
    network, parameters, _, _ = drawn((3, 4, 2, 1), 1)
    for matrix, bias in network.layers(parameters):
        matrix[:], bias[:] = 0, 0
    assert not parameters.any()
    assert network.size == 3 * 4 + 4 + 4 * 2 + 2 + 2 + 1


def test_the_published_network_has_its_size():
    assert Perceptron((121, 128, 64, 1)).size == 122 * 128 + 129 * 64 + 65


def test_initial_parameters_keep_the_scale_of_their_inputs():
    network = Perceptron((500, 300, 200, 1))
    parameters = network.initial(np.random.default_rng(0))
    assert parameters.dtype == np.float32
    for (matrix, bias), total in zip(network.layers(parameters), (800, 500, 201), strict=True):
        assert not bias.any()
        assert np.abs(matrix).max() <= np.sqrt(6 / total)
        assert matrix.std() == pytest.approx(np.sqrt(2 / total), rel=0.1)


def test_single_precision_stays_single():
    network, _, x, rng = drawn((3, 4, 1), 6)
    parameters = network.initial(rng)
    activations = network.activations(parameters, x.astype(np.float32))
    gradient = np.zeros_like(parameters)
    network.add_gradient(gradient, parameters, activations, np.ones(6, np.float32))
    assert {values.dtype for values in activations} == {gradient.dtype} == {np.dtype(np.float32)}
