"""Dirichlet shares against their law, down to shapes at which ordinary gamma variables vanish, and on their grid."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts.dirichlet import GRID_BITS, log_gamma, sample


@pytest.mark.parametrize("shape", [0.3, 1.0, 2.5, 40.0, 5e4])
def test_gamma_variables_follow_their_law(shape: float) -> None:
    values = np.exp(log_gamma(NoiseBits(1, "gamma"), np.array([shape]), 100_000)).ravel()
    assert stats.kstest(values, stats.gamma(shape).cdf).pvalue > 1e-3
    assert stats.kstest(values, stats.gamma(shape * 1.02 + 0.02).cdf).pvalue < 1e-3


@pytest.mark.parametrize("shape", [1e-2, 1e-5, 1e-300])
def test_logarithms_of_the_smallest_shapes_are_finite_and_nearly_exponential(shape: float) -> None:
    """-shape ln G tends to a standard exponential as the shape vanishes; G itself is 0 in double precision."""
    log = log_gamma(NoiseBits(2, "gamma"), np.array([shape]), 50_000).ravel()
    assert np.isfinite(log).all()
    if shape < 1e-2:
        assert stats.kstest(-shape * log, stats.expon.cdf).pvalue > 1e-3
    else:
        assert stats.kstest(np.exp(log[log > -700]), lambda x: _conditional(x, shape)).pvalue > 1e-3


def _conditional(x: np.ndarray, shape: float) -> np.ndarray:
    """The law of Gamma(shape) given that its logarithm exceeds -700."""
    law = stats.gamma(shape)
    return (law.cdf(x) - law.cdf(np.exp(-700))) / law.sf(np.exp(-700))


@pytest.mark.parametrize("shape", [(2.0, 5.0), (0.5, 0.7, 3.0), (0.001, 0.002, 0.003), (300.0, 40.0, 2.0, 0.5)])
def test_shares_have_the_moments_and_margins_of_the_dirichlet_law(shape: tuple[float, ...]) -> None:
    parameters = np.array(shape)
    shares = sample(NoiseBits(3, "shares"), parameters, 100_000)
    law = stats.dirichlet(parameters)
    np.testing.assert_allclose(shares.mean(axis=0), law.mean(), atol=5 * np.sqrt(law.var() / 1e5).max())
    np.testing.assert_allclose(np.cov(shares.T), law.cov(), atol=0.02 * law.var().max())
    if parameters.min() > 0.1:
        for k, p in enumerate(parameters):
            margin = stats.beta(p, parameters.sum() - p)
            assert stats.kstest(shares[:, k], margin.cdf).statistic < 0.008


def test_tiny_shapes_choose_one_class_with_the_right_probability() -> None:
    shares = sample(NoiseBits(4, "vertex"), 1e-9 * np.array([1.0, 2.0, 5.0]), 40_000)
    assert (shares.max(axis=1) == 1).all()
    np.testing.assert_allclose(shares.mean(axis=0), [1 / 8, 2 / 8, 5 / 8], atol=0.012)


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=8).filter(lambda shape: max(shape) > 1e-300), st.integers(0, 9))
def test_shares_lie_on_the_grid_and_sum_to_exactly_one(shape: list[float], seed: int) -> None:
    shares = sample(NoiseBits(seed, "grid"), np.array(shape), 3)
    assert (shares >= 0).all()
    np.testing.assert_array_equal(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(shares * 2.0**GRID_BITS, np.rint(shares * 2.0**GRID_BITS))
    assert (shares[:, np.array(shape) == 0] == 0).all()


def test_how_many_bits_are_used_does_not_depend_on_the_shapes() -> None:
    after = []
    for shape in ([0.001, 5.0], [3.0, 900.0]):
        bits = NoiseBits(5, "bits")
        sample(bits, np.array(shape), 10)
        after.append(bits.words(4).tolist())
    assert after[0] == after[1]


@pytest.mark.parametrize("shape", [[-1.0, 2.0], [0.0, 1e-310], [np.nan, 1.0], [np.inf, 1.0], [[1.0, 2.0]]])
def test_other_parameters_are_refused(shape: list[float]) -> None:
    with pytest.raises(InputError, match="Dirichlet parameters must be finite"):
        sample(NoiseBits(1, "refused"), np.array(shape), 1)
