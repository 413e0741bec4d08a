"""Shares of the noise on a sum of vectors: what one party moves, what is charged, and what does not fit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from federation.contract.errors import InputError
from federation.contract.guarantee import Unit
from federation.contract.randomness import NoiseBits
from federation.features.feature_map import Ball
from federation.mechanisms.sums import shares
from federation.mechanisms.sums.shared_sums import calibrate_vector_sums as calibrate

DIMENSION = 5
NOISES = {
    (kind, ball): calibrate(kind, ball=ball, dimension=DIMENSION, epsilon=1.0, delta=1e-6, contributors=3)
    for kind in ("pure", "gaussian")
    for ball in (Ball(1.0, scaled=True), Ball(0.02))
}
VECTORS = arrays.arrays(np.float64, (DIMENSION,), elements=st.floats(allow_nan=False, allow_infinity=False, width=64))


@pytest.fixture
def silent(monkeypatch):
    """Shares without noise: what they were added to is left."""
    monkeypatch.setattr(shares, "draw", lambda whole, contributors, bits, draws: np.zeros((draws, whole.dimension)))


@pytest.mark.parametrize("known", NOISES)
@settings(max_examples=60, deadline=None)
@given(first=VECTORS, second=VECTORS)
def test_whatever_one_party_has_moves_the_sum_within_what_is_charged(known, first, second):
    noise = NOISES[known]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shares, "draw", lambda whole, contributors, bits, draws: np.zeros((draws, whole.dimension)))
        here, there = (noise.release(vector, NoiseBits(1, "a", 0))[0] for vector in (first, second))
    assert np.linalg.norm(here - there) <= noise.additive.charged
    steps = here / noise.additive.step
    assert (steps == np.rint(steps)).all()


@pytest.mark.parametrize("known", NOISES)
def test_opposite_ends_of_the_ball_are_as_far_apart_as_is_charged(known, silent):
    noise = NOISES[known]
    far = np.full(DIMENSION, 1e9)
    apart = np.linalg.norm(np.subtract(*(noise.release(way * far, NoiseBits(1, "a", 0))[0] for way in (1, -1))))
    assert 0.999 * noise.additive.charged < apart <= noise.additive.charged
    assert noise.additive.sensitivity == pytest.approx(2 * noise.ball.norm, rel=1e-12)


@pytest.mark.parametrize("kind", ["pure", "gaussian"])
def test_contributors_shares_are_the_whole_noise_and_more_make_the_mean_as_loud_as_it_says(kind):
    noise, runs, parties = NOISES[kind, Ball(1.0, scaled=True)], 20_000, 5
    total = sum(noise.release(np.zeros(DIMENSION), NoiseBits(1, "sum", party), runs) for party in range(parties))
    mean = shares.in_mean(noise.additive, noise.contributors, parties)
    assert np.var(total / parties) == pytest.approx(mean.variance(), rel=0.05)
    assert mean.variance() * parties**2 == pytest.approx(noise.additive.variance() * parties / 3, rel=1e-3)
    assert (mean.name, mean.dimension) == (noise.additive.name, DIMENSION)
    assert mean.sensitivity == noise.additive.sensitivity / parties


def test_it_guarantees_for_one_party_and_names_what_it_rests_on():
    guarantee = NOISES["pure", Ball(1.0, scaled=True)].guarantee(Unit.PARTY)
    assert (guarantee.epsilon, guarantee.delta, guarantee.mechanism) == (1.0, 0.0, "vector_sum_l2_gamma")
    assert guarantee.parameters["contributors"] == 3
    assert guarantee.parameters["norm"] == 1.0
    texts = [assumption.text for assumption in guarantee.assumptions]
    assert "at least 3 parties add their shares of the noise as drawn, and tell nobody" in texts
    with pytest.raises(InputError, match="unit must be party"):
        NOISES["pure", Ball(1.0, scaled=True)].guarantee(Unit.ROW)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"contributors": 0}, "contributors must be"),
        ({"contributors": 2**31}, "sum in groups"),
        ({"dimension": 0}, "dimension must be"),
        ({"epsilon": 1e6, "contributors": 2**30}, "does not fit the grid"),
        ({"noise": "gaussian", "delta": 0.0}, "delta"),
        ({"noise": "laplace"}, "noise must be"),
    ],
)
def test_what_no_noise_fits_is_refused(changes, said):
    known = {"noise": "pure", "ball": Ball(1.0), "dimension": 3, "epsilon": 1.0, "contributors": 3, **changes}
    with pytest.raises(InputError, match=said):
        calibrate(known.pop("noise"), **known)
