import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.trial.trial import FEW, OMITTED, ROWS_PER_DIMENSION, SIZES, Spectrum, affordable, errors
from federation.contract.errors import InputError
from federation.mechanisms.accounting import sensitivity
from federation.mechanisms.noise.additive import calibrate

FLAT = Spectrum(10**6, np.ones(300))
STEEP = Spectrum(1352, np.arange(1, 301) ** -1.5)
WORLDS = st.fixed_dictionaries(
    {
        "classes": st.integers(2, 50),
        "parties": st.integers(1, 10**6),
        "epsilon": st.floats(1e-3, 1e3),
        "delta": st.just(1e-6),
    }
)
NOISES = st.sampled_from(["pure", "gaussian"])
SPECTRA = st.builds(
    lambda rows, rank, decay: Spectrum(rows, np.arange(1, rank + 1) ** -decay),
    st.integers(1, 10**5),
    st.integers(1, 200),
    st.floats(0, 3),
)


@settings(derandomize=True, max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6), rows=st.integers(2, 30), columns=st.integers(1, 30))
def test_the_spectrum_is_that_of_the_singular_values(seed, rows, columns):
    public = np.random.default_rng(seed).normal(size=(rows, columns)) * 3 + 5
    spectrum = Spectrum.of(public)
    rank = min(rows - 1, columns)
    expected = np.linalg.svd(public - public.mean(axis=0), compute_uv=False)[:rank] ** 2 / rows
    assert spectrum.rows == rows
    np.testing.assert_allclose(spectrum.variances, expected, atol=1e-9)
    left = [expected[d:].sum() / expected.sum() for d in range(1, rank + 1)]
    np.testing.assert_allclose(spectrum.omitted(), left, atol=1e-9)


@pytest.mark.parametrize("rows", [np.ones((5, 3)), np.empty((0, 4)), np.ones((1, 2))])
def test_rows_that_do_not_differ_have_no_spectrum(rows):
    with pytest.raises(InputError, match="all equal"):
        Spectrum.of(rows)


def test_faint_directions_are_left_out_unless_they_are_few():
    faint, loud = np.full(100, 0.01), np.ones(40)
    assert Spectrum(10**4, np.append(loud, faint)).usable() == 40
    assert Spectrum(10**4, np.append(loud[:5], faint)).usable() == FEW
    assert Spectrum(10**4, np.append(loud[:5], faint[:9])).usable() == 14
    assert Spectrum(100, np.append(loud, faint)).usable() == 25
    assert Spectrum(3, loud).usable() == 0


@pytest.mark.parametrize("noise", ["pure", "gaussian"])
@pytest.mark.parametrize(
    ("classes", "parties", "epsilon"), [(6, 1000, 1.0), (2, 1000, 0.1), (10, 5000, 3.0), (3, 9, 10)]
)
def test_the_error_by_noise_is_that_of_the_mechanism_itself(noise, classes, parties, epsilon):
    """The calibrated mechanism's own expected norm, squared and spread over the classes, but for the grid's charge."""
    known = {"epsilon": epsilon, "delta": 1e-6}
    by_noise, _ = errors(noise, FLAT, classes=classes, parties=parties, **known)
    for d in (3, 10, 200):
        dimension = (classes - 1) * d
        mechanism = calibrate(noise, sensitivity=sensitivity.statistic(parties), dimension=dimension, **known)
        # The norm of a Gaussian is a little below sigma sqrt(dimension).
        np.testing.assert_allclose(
            mechanism.expected_noise_norm() ** 2 / classes, by_noise[d - 1], rtol=0.6 / dimension + 2e-3
        )


def test_the_error_by_omission_is_the_stated_law():
    _, by_omission = errors("pure", FLAT, classes=2, parties=10, epsilon=1.0, delta=0.0)
    for d in (1, 40, 300):
        assert by_omission[d - 1] == pytest.approx(OMITTED * (1 - d / 300) / d**1.5)


@settings(derandomize=True, max_examples=200, deadline=None)
@given(noise=NOISES, world=WORLDS, spectrum=SPECTRA, factor=st.floats(1, 100))
def test_more_budget_parties_or_rows_never_mean_fewer_dimensions(noise, world, spectrum, factor):
    chosen = affordable(noise, spectrum, **world)
    assert chosen in (*SIZES, len(spectrum.variances))
    assert chosen <= max(SIZES[0], spectrum.usable())
    assert chosen <= affordable("off", spectrum, **world)
    assert affordable(noise, spectrum, **{**world, "epsilon": world["epsilon"] * factor}) >= chosen
    assert affordable(noise, spectrum, **{**world, "parties": int(world["parties"] * factor)}) >= chosen
    assert affordable(noise, Spectrum(int(spectrum.rows * factor), spectrum.variances), **world) >= chosen


@settings(derandomize=True, max_examples=200, deadline=None)
@given(noise=NOISES, world=WORLDS, spectrum=SPECTRA)
def test_the_size_next_above_is_beyond_the_least_error_or_what_is_usable(noise, world, spectrum):
    chosen = affordable(noise, spectrum, **world)
    best = 1 + int(np.argmin(sum(errors(noise, spectrum, **world))))
    following = [size for size in SIZES if size > chosen]
    assert chosen <= max(SIZES[0], best)
    assert not following or following[0] > min(best, spectrum.usable())


def test_all_directions_are_taken_where_noise_is_no_matter_though_they_are_between_sizes():
    world = {"classes": 2, "parties": 10**6, "epsilon": 10.0, "delta": 1e-6}
    assert affordable("pure", Spectrum(1000, np.ones(7)), **world) == 7
    assert affordable("pure", Spectrum(1000, np.ones(2)), **world) == 2
    assert affordable("pure", Spectrum(7 * ROWS_PER_DIMENSION - 1, np.ones(7)), **world) == 6


def test_a_steeper_spectrum_affords_fewer_dimensions():
    world = {"classes": 10, "parties": 1000, "epsilon": 1.0, "delta": 1e-6}
    sizes = [
        affordable("pure", Spectrum(10**6, np.arange(1, 301) ** -decay), **world) for decay in (0.0, 1.0, 2.0, 4.0)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1]


def test_the_sizes_of_a_common_setting():
    world = {"classes": 6, "parties": 1000, "delta": 1e-6}
    epsilons = (0.1, 0.3, 1, 3, 10)
    assert [affordable("pure", STEEP, epsilon=epsilon, **world) for epsilon in epsilons] == [4, 8, 10, 24, 40]
    assert [affordable("gaussian", STEEP, epsilon=epsilon, **world) for epsilon in epsilons] == [8, 10, 24, 56, 56]


def test_without_noise_only_what_is_usable_limits():
    for rows, expected in ((1, 3), (12, 3), (16, 4), (100, 24), (10**6, SIZES[-1])):
        spectrum = Spectrum(rows, np.ones(200))
        assert affordable("off", spectrum, classes=3, parties=1, epsilon=np.inf, delta=0.0) == expected


@pytest.mark.parametrize(
    "changes",
    [
        {"noise": "laplace"},
        {"classes": 1},
        {"parties": 0},
        {"epsilon": 0.0},
        {"epsilon": np.inf},
        {"noise": "gaussian", "delta": 0.0},
        {"noise": "gaussian", "epsilon": -1.0},
    ],
)
def test_numbers_out_of_range_are_refused(changes):
    world = {"noise": "pure", "classes": 6, "parties": 1000, "epsilon": 1.0, "delta": 1e-6, **changes}
    with pytest.raises(InputError):
        affordable(spectrum=FLAT, **world)


def test_a_minimiser_affords_fewer_dimensions_and_no_fewer_for_a_larger_epsilon():
    world = {"classes": 6, "parties": 1000, "delta": 1e-6}
    for noise in ("pure", "gaussian"):
        sizes = [
            [affordable(noise, STEEP, epsilon=epsilon, minimiser=minimiser, **world) for epsilon in (0.1, 1.0, 10.0)]
            for minimiser in (False, True)
        ]
        assert sizes[1] == sorted(sizes[1])
        assert all(few < many for many, few in zip(*sizes, strict=True) if many > SIZES[0])
