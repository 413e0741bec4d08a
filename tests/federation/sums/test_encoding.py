"""Integers modulo 2^64: exact, and no sum that is allowed wraps around."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.noise.additive import AdditiveMechanism, calibrate, calibrate_laplace
from federation.mechanisms.sums import shares
from federation.secure_aggregation.masks import MOST_STEPS, decoded, encoded, noise_bound, require_room

KINDS = ("discrete_laplace", "discrete_gaussian", "l2_gamma")


def by_kind(kind: str) -> AdditiveMechanism:
    if kind == "discrete_laplace":
        return calibrate_laplace(l1_sensitivity=2.0, dimension=3, epsilon=0.5)
    noise = "pure" if kind == "l2_gamma" else "gaussian"
    return calibrate(noise, sensitivity=2.0, dimension=3, epsilon=0.5, delta=1e-6)


@given(st.lists(st.integers(-MOST_STEPS, MOST_STEPS), min_size=1, max_size=9))
def test_sums_are_those_of_whole_numbers_while_they_are_below_two_to_the_63(values: list[int]) -> None:
    parts = [encoded(np.array([value])) for value in values]
    total = int(decoded(np.sum(parts, axis=0, dtype=np.uint64))[0])
    assert total == (sum(values) + 2**63) % 2**64 - 2**63
    if abs(sum(values)) < 2**63:
        assert total == sum(values)


@pytest.mark.parametrize("kind", KINDS)
def test_at_the_bound_nothing_wraps_and_beyond_it_is_refused(kind: str) -> None:
    mechanism, contributors, parties = by_kind(kind), 25, 100
    bound = noise_bound(mechanism, contributors, parties, 3)
    largest = (MOST_STEPS - bound) // parties
    require_room(largest * (1 - 1e-9), mechanism, contributors, parties, 3)
    assert parties * int(largest) + int(bound) <= 2**62 + 2**11  # doubles of that size are so far apart
    steps = np.array([float(int(largest) // 2**12 * 2**12)])  # a whole number that is a double
    for sign in (1, -1):
        total = np.sum([encoded(sign * steps)] * parties, axis=0, dtype=np.uint64)
        assert int(decoded(total)[0]) == sign * int(steps[0]) * parties
    with pytest.raises(InputError, match="does not fit into 64 bits"):
        require_room(largest * (1 + 1e-6), mechanism, contributors, parties, 3)
    with pytest.raises(InputError, match="does not fit"):
        require_room(float("nan"), mechanism, contributors, parties, 3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("parties", "contributors"), [(40, 40), (40, 10)])
def test_noise_stays_far_within_its_bound(kind: str, parties: int, contributors: int) -> None:
    mechanism = by_kind(kind)
    drawn = [shares.draw(mechanism, contributors, NoiseBits(3, kind, party), draws=50) for party in range(parties)]
    total = np.sum(drawn, axis=0)
    bound = noise_bound(mechanism, contributors, parties, total.size)
    assert np.abs(total).max() < bound
    assert bound < 200 * np.sqrt(shares.variance(mechanism, contributors) * parties / contributors) / mechanism.step


def test_the_bound_of_laplace_shares_beside_their_exact_tail() -> None:
    # All shares of one whole noise: P[|X| > k] = 2 q^(k+1) / (1 + q), which is above 2^-100 until 100 ln 2 scales.
    mechanism = by_kind("discrete_laplace")
    bound = noise_bound(mechanism, 30, 30, 1)
    exact = mechanism.grid_scale * 100 * np.log(2)
    assert exact < bound < 2.1 * exact
    # At half the inverse scale either part of a share has a generating function of 2^(1/m): 90 more are 2s 3 ln 2.
    more = noise_bound(mechanism, 30, 120, 1) - bound
    assert more == pytest.approx(2 * mechanism.grid_scale * 3 * np.log(2))


def test_the_bound_of_gaussian_shares_beside_its_exact_tail() -> None:
    from scipy.stats import norm

    mechanism = by_kind("discrete_gaussian")
    exact = mechanism.grid_scale * norm.isf(2.0**-101)
    assert exact < noise_bound(mechanism, 30, 30, 1) < 1.1 * exact
    assert noise_bound(mechanism, 30, 120, 1) == pytest.approx(2 * noise_bound(mechanism, 30, 30, 1))


def test_the_bound_of_gamma_shares_is_that_of_their_generating_function() -> None:
    """Chernoff's bound at half the inverse scale, that of the Gaussian part, and half a step for each rounded share."""
    mechanism = by_kind("l2_gamma")
    likely, scale = np.log(4 * 7) + 100 * np.log(2), mechanism.scale / mechanism.step
    mixed = 2 * scale * (likely + 2 * (120 / 30) * np.log(4 / 3))  # of 3 dimensions
    assert noise_bound(mechanism, 30, 120, 7) == pytest.approx(mixed + np.sqrt(32 * 120 * likely) + 60, rel=1e-12)
    for noise in (mixed, np.sqrt(32 * 120 * likely), 60):
        assert noise > 1e-9 * noise_bound(mechanism, 30, 120, 7)  # each is seen above


def test_noise_takes_its_room_beside_the_values() -> None:
    wide = SimpleNamespace(name="discrete_laplace", scale=2.0**53, step=1.0, dimension=3)
    room = MOST_STEPS - noise_bound(wide, 25, 100, 3)
    assert 0 < room < 0.9 * MOST_STEPS
    require_room(room / 100 * (1 - 1e-9), wide, 25, 100, 3)
    with pytest.raises(InputError, match="does not fit into 64 bits"):
        require_room(room / 100 * (1 + 1e-9), wide, 25, 100, 3)


@pytest.mark.parametrize("values", [[0.5], [2.0**62 + 2**10], [-(2.0**63)], [np.nan], [np.inf]])
def test_what_is_not_whole_or_too_large_is_refused(values: list[float]) -> None:
    with pytest.raises(InputError, match="whole numbers of at most 2\\^62 grid steps"):
        encoded(np.array(values))
