"""Bins from a private histogram: both releases are charged, and delta is that of their joint law."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts import exact_laws as lattice_laplace
from federation.mechanisms.labels import randomised_response as response
from federation.mechanisms.labels.mechanism import LabelRange
from federation.mechanisms.labels.randomised_response import EstimatedBins

RANGE = LabelRange(0.0, 1.0)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.7])
def test_both_parts_of_epsilon_make_the_claim(share):
    mechanism = EstimatedBins(RANGE, 1.0, 16, share)
    histogram = 2 / mechanism.parameters["histogram_scale"]
    assert histogram + mechanism.answers(np.full(16, 1 / 16)).epsilon == pytest.approx(1.0, abs=1e-12)
    assert histogram + mechanism.answers(np.full(16, 1 / 16)).epsilon <= 1.0
    assert histogram == pytest.approx(share, rel=1e-5)


@pytest.mark.parametrize("at", [0.0, 0.4, 0.9, 1.0])
def test_delta_equals_enumeration_of_the_pair(at):
    """Three points, so three counts: the histogram's joint law, cut where nothing is left, times two answers."""
    mechanism = EstimatedBins(RANGE, 1.0, 3, 0.5)
    scale = mechanism.parameters["histogram_scale"]
    reach = range(-60, 61)
    grid = np.array([(a, b, -a - b) for a, b in itertools.product(reach, reach)])
    mass = np.exp(-np.abs(grid).sum(axis=1) / scale)
    other = np.exp(-np.abs(grid - [1, -1, 0]).sum(axis=1) / scale)
    mass, other = mass / mass.sum(), other / mass.sum()
    true, false = response.probabilities(2, response.calibrate_redraw(2, mechanism.parameters["answer_epsilon"]))
    p, q = np.outer(mass, [true, false]), np.outer(other, [false, true])
    expected = np.maximum(p - math.exp(at) * q, 0)[p > 1e-16].sum()
    assert mechanism.delta_at(at) == pytest.approx(expected, abs=1e-9)


def test_the_prior_is_the_histogram_and_has_no_zeros():
    mechanism = EstimatedBins(RANGE, 1.0, 5)
    labels = np.repeat([0.0, 0.3, 1.0], [2000, 5000, 3000])
    prior = mechanism.prior(labels, NoiseBits(1, "prior"))
    np.testing.assert_allclose(prior, [0.2, 0.5, 0.0, 0.0, 0.3], atol=0.02)
    assert prior.min() > 0
    assert prior.sum() == pytest.approx(1)


@pytest.mark.parametrize("debiased", [False, True])
def test_a_release_takes_values_of_the_bins_it_found(debiased):
    mechanism = EstimatedBins(RANGE, 2.0, 8, 0.3, debiased)
    labels = np.random.default_rng(1).beta(2, 5, 4000)
    bits = NoiseBits(7, "joint")
    released = mechanism.release(labels, bits)
    known = mechanism.answers(mechanism.prior(labels, NoiseBits(7, "joint")))
    assert set(np.unique(released)) <= set(known.values)
    if debiased:
        assert released.mean() == pytest.approx(labels.mean(), abs=0.1)
        assert mechanism.variance() == math.inf
    else:
        assert released.var() <= mechanism.variance()
        assert np.abs(known.bias(labels)).max() <= np.max(mechanism.bias(labels))


@pytest.mark.parametrize("width", [0.5, 3.0])
def test_answers_in_the_range_vary_no_more_than_two_ends_do(width):
    """And as much where half are at either end, and epsilon is large enough to tell so."""
    ends = LabelRange(-width / 2, width / 2)
    mechanism = EstimatedBins(ends, 30.0, 2)
    released = mechanism.release(np.repeat([ends.low, ends.high], 10_000), NoiseBits(3, "variance"))
    assert 0.9 * mechanism.variance() < released.var() <= mechanism.variance() * (1 + 1e-9)
    assert mechanism.variance(np.array([0.0, 0.1])).tolist() == [mechanism.variance()] * 2


def test_labels_that_are_all_alike_are_released_too():
    mechanism = EstimatedBins(RANGE, 1.0, 8, 0.3, debiased=True)
    released = mechanism.release(np.full(50, 0.5), NoiseBits(1, "alike"))
    assert np.isfinite(released).all()


@pytest.mark.parametrize(("points", "share", "message"), [(1, 0.2, "points"), (600, 0.2, "points"), (8, 1.0, "share")])
def test_bad_parameters_are_refused(points, share, message):
    with pytest.raises(InputError, match=message):
        EstimatedBins(RANGE, 1.0, points, share)


def test_the_guarantee_names_both_releases():
    promised = EstimatedBins(RANGE, 1.0).guarantee()
    assert (promised.epsilon, promised.delta) == (1.0, 0.0)
    assert any("both are charged" in assumption.text for assumption in promised.assumptions)
    assert (
        lattice_laplace.lattice_laplace_delta(
            promised.parameters["histogram_epsilon"], 32, promised.parameters["histogram_scale"]
        )
        == 0
    )
