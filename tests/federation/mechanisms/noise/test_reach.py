"""How far noise reaches: against scipy, exact enumeration, other formulas and draws of the samplers themselves."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.discrete_laws import gaussian_law, laplace_law
from support.examples import examples

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.noise.additive import calibrate, calibrate_laplace
from federation.mechanisms.noise.reach import (
    additive_reaches,
    entry_reach,
    gaussian_pair_tail,
    gaussian_tail,
    l2_gamma_tail,
    laplace_pair_tail,
    laplace_tail,
    norm_reach,
)

RADII = np.array([0.0, 0.5, 1.0, 3.0, 7.9, 20.0])


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.5])
@pytest.mark.parametrize(("law", "tail"), [(laplace_law, laplace_tail), (gaussian_law, gaussian_tail)])
def test_tails_are_those_of_the_definition(law, tail, scale):
    k, mass = law(scale, 400)
    expected = [mass[np.abs(k) > r].sum() for r in RADII]
    np.testing.assert_allclose(tail(Fraction(scale))(RADII), expected, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("scale", [0.3, 1.0, 2.5, 4.5])
@pytest.mark.parametrize(("law", "tail"), [(laplace_law, laplace_pair_tail), (gaussian_law, gaussian_pair_tail)])
def test_tails_of_two_together_are_those_of_the_convolution(law, tail, scale):
    _, mass = law(scale, 400)
    together, k = np.convolve(mass, mass), np.arange(-800, 801)
    expected = np.array([together[np.abs(k) > r].sum() for r in RADII])
    found = tail(scale)(RADII)
    assert (found >= expected * (1 - 1e-9) - 1e-15).all()
    if law is laplace_law or scale >= 2.5:
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15)


def test_much_gaussian_noise_is_bounded_by_the_normal_law():
    scale, r = 256.0, np.array([0.0, 300.0, 900.0, 1400.0])
    k, mass = gaussian_law(scale)
    exact = np.array([mass[np.abs(k) > one].sum() for one in r])
    found = gaussian_tail(scale)(r)
    assert (found >= exact).all()
    np.testing.assert_allclose(found, exact, rtol=0.05)


@pytest.mark.parametrize("dimension", [1, 2, 7, 400])
def test_an_entry_of_l2_gamma_noise_has_the_law_of_its_radius_and_direction(dimension):
    """P[|b_1| > r] as a mean over the radius: a direction's entry squared is Beta(1/2, (D - 1)/2)."""
    r = np.array([0.0, 0.5, 2.0, 4.0]) * math.sqrt(dimension)
    radii = stats.gamma(dimension).ppf((np.arange(20_000) + 0.5) / 20_000)
    if dimension == 1:
        expected = np.exp(-r)
    else:
        squares = np.minimum(np.square(r[:, None] / radii), 1.0)
        expected = stats.beta(0.5, (dimension - 1) / 2).sf(squares).mean(axis=1)
    np.testing.assert_allclose(l2_gamma_tail(dimension)(r), expected, rtol=2e-2, atol=1e-6)


@pytest.mark.parametrize("entries", [1, 2, 300, pytest.param(2000, marks=pytest.mark.slow)])
def test_norms_of_gaussian_noise_have_the_quantiles_of_chi(entries):
    for beyond in (1e-6, 1e-2):
        expected, found = math.sqrt(stats.chi2(entries).isf(beyond)), norm_reach(gaussian_tail(1e6), entries, beyond)
        assert expected <= found / 1e6 <= expected * 1.002


@pytest.mark.parametrize(("law", "tail"), [(laplace_law, laplace_tail), (gaussian_law, gaussian_tail)])
def test_norms_of_little_noise_are_those_of_all_its_values(law, tail):
    k, mass = law(0.6, 14)
    norms = np.array([math.hypot(*values) for values in itertools.product(k, repeat=3)])
    weights = np.array([math.prod(values) for values in itertools.product(mass, repeat=3)])
    order = np.argsort(norms)[::-1]
    beyond = np.cumsum(weights[order])
    for share in (0.1, 1e-3, 1e-6):
        least = norms[order][np.searchsorted(beyond, share)]  # exceeded with `share` at most
        assert least <= norm_reach(tail(0.6), 3, share) <= least * 1.01 + 1e-9


def test_laplace_norms_are_those_of_draws():
    draws = np.random.default_rng(1).laplace(size=(100_000, 12))
    found = norm_reach(laplace_tail(1e5), 12, 1e-3) / 1e5
    assert found == pytest.approx(np.quantile(np.linalg.norm(draws, axis=1), 1 - 1e-3), rel=0.02)


@given(st.floats(0.2, 1e6), st.floats(1e-9, 0.5), st.sampled_from([laplace_tail, gaussian_tail, laplace_pair_tail]))
def test_an_entry_exceeds_its_reach_no_more_often_than_it_may(scale, beyond, tail):
    found = entry_reach(tail(scale), beyond)
    assert tail(scale)(np.array([found]))[0] <= beyond
    if found > 0:
        assert tail(scale)(np.array([found * (1 - 1e-9) - 1e-9]).clip(0.0))[0] > beyond


@settings(max_examples=examples(3))
@given(st.floats(0.5, 100.0), st.integers(1, 40))
def test_norms_grow_with_the_entries_and_with_what_is_left_out(scale, entries):
    tail = laplace_tail(scale)
    found = norm_reach(tail, entries, 1e-3)
    assert entry_reach(tail, 1e-3) <= found <= norm_reach(tail, entries + 1, 1e-3) * 1.001
    assert found <= norm_reach(tail, entries, 1e-6)


@pytest.mark.parametrize(
    "noise",
    [
        calibrate("gaussian", sensitivity=2.0, dimension=5, epsilon=1.0, delta=1e-6),
        calibrate("pure", sensitivity=2.0, dimension=5, epsilon=1.0),
        calibrate("pure", sensitivity=2.0, dimension=1, epsilon=1.0),
        calibrate_laplace(l1_sensitivity=2.0, dimension=5, epsilon=1.0),
    ],
    ids=lambda noise: f"{noise.name} {noise.dimension}",
)
def test_released_noise_stays_within_its_reaches(noise):
    """With probability .02, half of it each: of 4000 draws about 40 are beyond, and not far from none or from 80."""
    drawn = noise.release(np.zeros(noise.dimension), NoiseBits(3, "tails"), 4000)
    entry, norm = additive_reaches(noise, 0.02)
    out = [(np.abs(drawn) > entry).any(axis=1).sum(), (np.linalg.norm(drawn, axis=1) > norm).sum()]
    assert max(out) <= 70
    assert min(out) >= 10


@pytest.mark.parametrize(
    ("refused", "told"),
    [
        *(
            (lambda entries=entries: norm_reach(laplace_tail(1.0), entries, 1e-6), r"entries.*1")
            for entries in (0, -1, 1.5)
        ),
        *((lambda beyond=beyond: norm_reach(laplace_tail(1.0), 3, beyond), r"0.*1") for beyond in (0.0, 1.5)),
        (lambda: entry_reach(laplace_tail(1.0), 1.0), r"0.*1"),
    ],
)
def test_a_norm_needs_an_entry_and_a_reach_a_probability(refused, told):
    with pytest.raises(InputError, match=told):
        refused()
