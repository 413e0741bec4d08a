import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.dimensions import OMITTED, ROWS_PER_DIMENSION, SIZES, affordable, balanced
from federation.errors import InputError
from federation.privacy import sensitivity
from federation.privacy.additive import calibrate

HAR = {"classes": 6, "parties": 1000, "rows": 1352, "delta": 1e-6}
WORLDS = st.fixed_dictionaries(
    {
        "classes": st.integers(2, 50),
        "parties": st.integers(1, 10**6),
        "epsilon": st.floats(1e-3, 1e3),
        "delta": st.just(1e-6),
    }
)
NOISES = st.sampled_from(["pure", "gaussian"])


@pytest.mark.parametrize("noise", ["pure", "gaussian"])
@pytest.mark.parametrize(
    ("classes", "parties", "epsilon"), [(6, 1000, 1.0), (2, 1000, 0.1), (10, 5000, 3.0), (3, 200, 10.0)]
)
def test_balances_the_noise_of_the_mechanism_itself_against_what_is_omitted(noise, classes, parties, epsilon):
    """A search over whole dimensions with the calibrated mechanism's own expected norm finds the closed form."""
    known = {"epsilon": epsilon, "delta": 1e-6}
    sizes = np.arange(1, 250)
    moved = sensitivity.statistic(parties)
    mechanisms = [calibrate(noise, sensitivity=moved, dimension=int((classes - 1) * d), **known) for d in sizes]
    noises = np.array([mechanism.expected_noise_norm() for mechanism in mechanisms])
    best = sizes[np.argmin(noises**2 / classes + (OMITTED / sizes) ** 2)]
    found = balanced(noise, classes=classes, parties=parties, **known)
    assert 2 < best < sizes[-1]
    assert abs(found - best) <= 0.01 * best + 1


def test_the_sizes_of_the_measured_setting():
    epsilons = (0.1, 0.3, 1, 3, 10)
    assert [affordable("pure", epsilon=epsilon, **HAR) for epsilon in epsilons] == [4, 8, 12, 24, 40]
    assert [affordable("gaussian", epsilon=epsilon, **HAR) for epsilon in epsilons] == [6, 12, 24, 56, 96]


@given(noise=NOISES, world=WORLDS, rows=st.integers(1, 10**5), factor=st.floats(1, 100))
def test_more_budget_parties_or_rows_never_mean_fewer_dimensions(noise, world, rows, factor):
    chosen = affordable(noise, rows=rows, **world)
    assert chosen in SIZES
    assert chosen <= max(SIZES[0], rows / ROWS_PER_DIMENSION)
    assert chosen <= max(SIZES[0], balanced(noise, **world))
    assert chosen <= affordable("off", rows=rows, **world)
    richer = {**world, "epsilon": world["epsilon"] * factor}
    larger = {**world, "parties": int(world["parties"] * factor)}
    assert affordable(noise, rows=rows, **richer) >= chosen
    assert affordable(noise, rows=rows, **larger) >= chosen
    assert affordable(noise, rows=int(rows * factor), **world) >= chosen


@given(noise=NOISES, world=WORLDS, rows=st.integers(400, 10**5))
def test_no_larger_size_would_still_be_within_the_balance(noise, world, rows):
    chosen = affordable(noise, rows=rows, **world)
    following = [size for size in SIZES if size > chosen]
    assert not following or following[0] > min(balanced(noise, **world), rows / ROWS_PER_DIMENSION)


def test_pure_dimensions_grow_with_the_square_root_of_parties_times_epsilon():
    few = balanced("pure", classes=4, parties=300, epsilon=0.2, delta=0.0)
    assert balanced("pure", classes=4, parties=1200, epsilon=0.8, delta=0.0) == pytest.approx(4 * few)


def test_without_noise_only_the_rows_limit():
    for rows, expected in ((1, 3), (12, 3), (16, 4), (100, 24), (10**6, SIZES[-1])):
        assert affordable("off", classes=3, parties=1, rows=rows, epsilon=np.inf, delta=0.0) == expected


@pytest.mark.parametrize(
    "changes",
    [
        {"noise": "laplace"},
        {"classes": 1},
        {"parties": 0},
        {"rows": 0},
        {"epsilon": 0.0},
        {"epsilon": np.inf},
        {"noise": "gaussian", "delta": 0.0},
        {"noise": "gaussian", "epsilon": -1.0},
    ],
)
def test_numbers_out_of_range_are_refused(changes):
    with pytest.raises(InputError):
        affordable(**{"noise": "pure", "epsilon": 1.0, **HAR, **changes})
