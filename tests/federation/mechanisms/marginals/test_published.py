"""Rates as published: what they release, for whom, and their exact loss about a row against the densities."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.exact_losses import published_loss
from support.refusals import refused

from federation.contract.guarantee import Adjacency, Unit
from federation.contract.randomness import NoiseBits
from federation.mechanisms.marginals.noise import calibrate
from federation.mechanisms.marginals.published import PublishedRates

RATES = PublishedRates(features=22, queries=2, epsilon=1.0)


def law(rows: int, errors: int, scale: float, at: np.ndarray) -> np.ndarray:
    """Logs of the atoms at 0 and 1, and of the density at points between, of clip((U + Laplace)/n, 0, 1)."""
    atoms = [-errors / scale, -(rows - errors) / scale]
    return np.array(
        [*(math.log(0.5) + atom for atom in atoms), *(np.log(rows / (2 * scale)) - abs(rows * at - errors) / scale)]
    )


def measured_loss(rows: int, errors: int, scale: float, kind: str) -> float:
    """The largest log ratio over a fine grid that holds every kink, both ways."""
    added = errors + (kind == "error")
    kinks = [errors / rows, added / (rows + 1)]
    at = np.unique(np.clip([*np.linspace(1e-9, 1 - 1e-9, 2001), *kinks], 1e-12, 1 - 1e-12))
    return float(np.abs(law(rows, errors, scale, at) - law(rows + 1, added, scale, at)).max())


@settings(derandomize=True)
@given(st.integers(1, 200), st.floats(0, 1), st.floats(0.3, 300), st.sampled_from(["correct", "error"]))
def test_the_loss_is_the_largest_log_ratio(rows: int, share: float, scale: float, kind: str) -> None:
    known = (rows, round(share * rows), scale, kind)
    assert published_loss(*known) == pytest.approx(measured_loss(*known), rel=1e-6)


@pytest.mark.parametrize(("rows", "errors", "loss"), [(1, 1, 0.705), (20, 10, 0.060), (100, 50, 0.0227)])
def test_worked_values(rows: int, errors: int, loss: float) -> None:
    """The claim is 1/44 = .0227; n = 1 loses most about a correct row beside an error, or the other way round."""
    assert published_loss(rows, errors, 44.0, "correct") == pytest.approx(loss, abs=5e-4)
    assert published_loss(rows, rows - errors, 44.0, "error") == published_loss(rows, errors, 44.0, "correct")
    # An empty bin:
    assert published_loss(0, 0, 44.0, "error") == math.inf
    assert published_loss(0, 0, 44.0, "error", empty="floored") == pytest.approx(1 / 44)
    assert published_loss(0, 0, 44.0, "correct", empty="floored") == 0.0


def test_the_noise_is_that_of_noisy_errors_for_one_label() -> None:
    noise = calibrate(
        "pure", features=22, queries=2, epsilon=1.0, delta=0.0, unit=Unit.LABEL, adjacency=Adjacency.REPLACE
    )
    assert (RATES.scale, RATES.deviation) == (44.0, noise.deviation)
    errors, counts = np.array([3, 0, 40]), np.array([5, 0, 40])
    released = RATES.release(errors, counts, NoiseBits(5, "rates"))
    noisy = noise.release(errors, NoiseBits(5, "rates"))
    np.testing.assert_array_equal(released, np.where(counts > 0, np.clip(noisy / np.maximum(counts, 1), 0, 1), 0.5))
    assert RATES.additive.delta_at(1.0) == 0.0
    assert RATES.additive.delta_at(0.1) == noise.delta_at(0.1) > 0


def test_an_empty_bin_always_has_the_same_rate() -> None:
    many = RATES.release(np.zeros((500, 2), int), np.array([0, 7]), NoiseBits(1, "empty"))
    assert np.unique(many[:, 0]).tolist() == [0.5]
    assert len(np.unique(many[:, 1])) > 3
    assert (many.min(), many.max()) == (0.0, 1.0)


@pytest.mark.parametrize("numbers", [(0, 1, 1.0), (2, 0, 1.0), (2, 1, 0.0)])
def test_bad_public_numbers_and_errors_that_do_not_fit_their_bins_are_refused(numbers: tuple) -> None:
    refused(None, PublishedRates, *numbers)
    for errors, counts in (([2, 1], [1, 1]), ([1, 1], [1]), ([1], [1.0]), ([[1]], [[1]])):
        refused("counts", RATES.release, np.array(errors), np.array(counts), NoiseBits(1, "bad"))


def test_it_is_typed_as_one_changed_label() -> None:
    made = RATES.guarantee()
    assert (made.unit, made.adjacency, made.epsilon, made.delta) == (Unit.LABEL, Adjacency.REPLACE, 1.0, 0.0)
    assert made.mechanism == "published_rates"
    assert RATES.per_query().epsilon == 0.5
    for unit, adjacency in ((Unit.ROW, Adjacency.ADD_REMOVE), (Unit.ROW, Adjacency.REPLACE)):
        refused("1", RATES.guarantee, unit=unit, adjacency=adjacency)
