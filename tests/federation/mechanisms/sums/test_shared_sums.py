"""Shares of one noise on numbers of bags: exact sums, the law of the whole, and what one unit can move.

Shares of the noise on a sum of vectors: what one party moves, what is charged, and what does not fit.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.fft import irfft, next_fast_len, rfft
from support.refusals import refused

from federation.contract.errors import InputError
from federation.contract.guarantee import Unit
from federation.contract.randomness import NoiseBits
from federation.features.feature_map import Ball
from federation.mechanisms.noise import gaussian
from federation.mechanisms.sums import shares
from federation.mechanisms.sums.shared_sums import calibrate_bag_totals as calibrate
from federation.mechanisms.sums.shared_sums import calibrate_rows, calibrate_vector_sums

KINDS = ("pure", "gaussian")


def shared(kind, contributors=4, epsilon=1.0, delta=1e-5, rows_per_person=1):
    known = {"epsilon": epsilon, "delta": delta, "rows_per_person": rows_per_person}
    return calibrate(kind, contributors=contributors, **known)


@given(
    kind=st.sampled_from(KINDS),
    contributors=st.integers(1, 50),
    counts=st.lists(st.lists(st.integers(0, 10**6), min_size=6, max_size=6), min_size=1, max_size=20),
    seed=st.integers(0, 2**20),
)
def test_the_sum_is_that_of_counts_and_of_shares_exactly(kind, contributors, counts, seed):
    noise = shared(kind, contributors)

    def steps(held):
        sent = [noise.release(one, NoiseBits(seed, "sum", party), 2) for party, one in enumerate(held)]
        found = [(one / noise.step).astype(np.int64) for one in sent]
        assert all(np.array_equal(word * noise.step, one) for word, one in zip(found, sent, strict=True))
        return sum(found)

    held = np.array(counts)
    alone = steps(np.zeros_like(held))
    np.testing.assert_array_equal(steps(held) - alone, np.tile(held.sum(axis=0) * int(1 / noise.step), (2, 1)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("persons", [1, 3])
def test_the_whole_is_calibrated_to_the_change_of_one_unit(kind, persons):
    """r rows in r bags move 2 r counts by one each: by the closed forms of both laws, but for rounding."""
    noise = shared(kind, rows_per_person=persons)
    assert noise.additive.sensitivity == pytest.approx(2 * persons if kind == "pure" else math.sqrt(2 * persons))
    exact = 2 * (2.0 * persons) ** 2 if kind == "pure" else 2 * persons / gaussian.mu(1.0, 1e-5) ** 2
    assert noise.variance() == pytest.approx(exact, rel=2e-3)
    promised = noise.guarantee(Unit.PERSON if persons > 1 else Unit.LABEL)
    assert (promised.epsilon, promised.delta) == (1.0, 0.0 if kind == "pure" else 1e-5)


@pytest.mark.parametrize("persons", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_exact_loss_of_laplace_shares_is_the_claim_from_so_many_parties_on(persons):
    """Half of 2 r independent counts move by +1 and half by -1: losses add up to the largest in each of them."""
    noise = shared("pure", rows_per_person=persons)
    scale, moved = noise.additive.grid_scale, int(1 / noise.step)
    counts = np.arange(1, 12 * scale)
    for answering, stands in ((4, True), (5, True), (3, False)):
        growth = np.log1p((answering / noise.contributors - 1) / counts) - 1 / scale
        side = np.exp(np.append(0.0, np.cumsum(growth)))  # a negative binomial law, but for a factor
        size = next_fast_len(2 * len(side), real=True)
        law = irfft(np.abs(rfft(side, size)) ** 2)  # of the difference of two, from 0 on
        reach = slice(0, 3 * scale)
        steepest = np.abs(np.log(law[reach]) - np.log(np.roll(law, moved)[reach])).max()
        assert bool(2 * persons * steepest <= 1.0 + 1e-6) is stands


@pytest.mark.parametrize("persons", [1, 2])
def test_the_delta_of_gaussian_shares_is_the_claim(persons):
    noise = shared("gaussian", rows_per_person=persons)
    moved = np.sqrt(2 * persons)
    assert gaussian.delta(1.0, moved / math.sqrt(noise.variance())) <= noise.delta_at(1.0) <= 1e-5
    assert gaussian.delta(1.0, moved / math.sqrt(0.75 * noise.variance())) > 1e-5  # three of four shares


def test_auto_is_the_kind_of_less_noise():
    assert shared("auto").name == "bag_shares_discrete_laplace"
    assert shared("auto", delta=0.0, rows_per_person=20).name == "bag_shares_discrete_laplace"
    for persons in (5, 20):  # a fifth less, and much less
        assert shared("auto", rows_per_person=persons).name == "bag_shares_discrete_gaussian"


@pytest.mark.parametrize("kind", KINDS)
def test_bags_have_noise_of_their_own_with_the_variance_that_is_said(kind):
    noise, size = shared(kind, contributors=3), 20_000
    drawn = sum(noise.release(np.zeros(4), NoiseBits(3, "law", party), size) for party in range(5))
    kurtosis = 2.0 if kind == "gaussian" else 5.0
    ratio = np.square(drawn).mean(axis=0) / noise.variance()
    np.testing.assert_allclose(ratio, 5 / 3, rtol=5 * math.sqrt(kurtosis / size))
    correlations = np.corrcoef(drawn.T)[np.triu_indices(4, 1)]
    assert np.abs(correlations).max() < 5 / math.sqrt(size)


@given(
    bags=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    classes=st.tuples(st.integers(0, 1), st.integers(0, 1)),
    rows=st.lists(st.floats(-1, 1), min_size=6, max_size=6),
    weight=st.floats(1e-3, 1e3),
)
def test_no_replaced_row_moves_all_bags_further_than_the_noise_is_for(bags, classes, rows, weight):
    """Counts times the weight beside sums of rows of norm at most 1; a row may come to lie in another bag."""
    changed = np.zeros((3, 2 + 3))
    for bag, label, row, sign in zip(bags, classes, np.reshape(rows, (2, 3)), (-1, 1), strict=True):
        changed[bag, label] += sign * weight
        changed[bag, 2:] += sign * row / max(1.0, np.linalg.norm(row))
    noise = calibrate_rows(label_weight=weight, numbers=5, epsilon=1.0, delta=1e-5, contributors=3)
    assert np.linalg.norm(changed) <= noise.additive.sensitivity
    assert np.count_nonzero(changed) <= noise.additive.dimension  # which are rounded


@pytest.mark.parametrize("weight", [0.5, 2.0])
def test_the_sensitivity_of_rows_is_attained_in_one_bag_and_no_larger(weight):
    noise = calibrate_rows(label_weight=weight, numbers=5, epsilon=1.0, delta=1e-5, contributors=3)
    assert noise.additive.sensitivity == pytest.approx(math.hypot(math.sqrt(2) * weight, 2), rel=2e-6)


BAGS = {"noise": "auto", "epsilon": 1.0, "delta": 1e-5, "contributors": 4, "rows_per_person": 1}
ROWS = {"label_weight": 1.0, "numbers": 5, "epsilon": 1.0, "delta": 1e-5, "contributors": 3}
SUMS = {"noise": "pure", "ball": Ball(1.0), "dimension": 3, "epsilon": 1.0, "contributors": 3}


@pytest.mark.parametrize(
    ("made", "known", "change", "told"),
    [
        (calibrate, BAGS, {"noise": "laplace"}, None),
        (calibrate, BAGS, {"noise": "gaussian", "delta": 0.0}, "delta"),
        (calibrate, BAGS, {"epsilon": -1.0}, "epsilon"),
        (calibrate, BAGS, {"contributors": 0}, "contributors"),
        (calibrate, BAGS, {"noise": "gaussian", "contributors": 2**40}, "contributors"),  # coarse for each share
        (calibrate, BAGS, {"rows_per_person": 0}, "rows_per_person"),
        (calibrate, BAGS, {"epsilon": 1e9, "noise": "pure"}, "epsilon"),
        (calibrate, BAGS, {"epsilon": 200.0, "noise": "pure"}, None),
        *((calibrate_rows, ROWS, {"label_weight": weight}, "label_weight") for weight in (0.0, -1.0, math.inf)),
        (calibrate_rows, ROWS, {"numbers": 0}, "numbers"),
        (calibrate_vector_sums, SUMS, {"contributors": 0}, "contributors"),
        (calibrate_vector_sums, SUMS, {"contributors": 2**31}, None),
        (calibrate_vector_sums, SUMS, {"dimension": 0}, "dimension"),
        (calibrate_vector_sums, SUMS, {"epsilon": 1e6, "contributors": 2**30}, None),
        (calibrate_vector_sums, SUMS, {"noise": "gaussian", "delta": 0.0}, "delta"),
        (calibrate_vector_sums, SUMS, {"noise": "laplace"}, "noise"),
    ],
)
def test_numbers_that_no_noise_works_with_are_refused(made, known, change, told):
    with pytest.raises(InputError, match=told):
        made(**known | change)


def test_the_finest_grid_is_that_on_which_a_billion_rows_are_2_to_the_52_steps():
    assert shared("pure", epsilon=120.0).step == 2.0**-22
    refused("finite", shared("pure").release, np.array([math.nan, 1.0]), NoiseBits(1, "one"))
    noise = shared("gaussian")
    refused("contributors", shared, "gaussian", contributors=2 * (noise.additive.grid_scale**2 // 16))
    assert replace(noise, contributors=8).variance() == pytest.approx(noise.variance())


DIMENSION = 5
NOISES = {
    (kind, ball): calibrate_vector_sums(kind, ball=ball, dimension=DIMENSION, epsilon=1.0, delta=1e-6, contributors=3)
    for kind in ("pure", "gaussian")
    for ball in (Ball(1.0, scaled=True), Ball(0.02))
}
VECTORS = arrays.arrays(np.float64, (DIMENSION,), elements=st.floats(allow_nan=False, allow_infinity=False, width=64))


def silence(patch):
    """Make shares without noise: what they were added to is left."""
    patch.setattr(shares, "draw", lambda whole, contributors, bits, draws: np.zeros((draws, whole.dimension)))


@pytest.mark.parametrize("known", NOISES)
@given(first=VECTORS, second=VECTORS)
def test_whatever_one_party_has_moves_the_sum_within_what_is_charged(known, first, second):
    noise = NOISES[known]
    with pytest.MonkeyPatch.context() as patch:
        silence(patch)
        here, there = (noise.release(vector, NoiseBits(1, "a", 0))[0] for vector in (first, second))
    assert np.linalg.norm(here - there) <= noise.additive.charged
    steps = here / noise.additive.step
    assert (steps == np.rint(steps)).all()


@pytest.mark.parametrize("known", NOISES)
def test_opposite_ends_of_the_ball_are_as_far_apart_as_is_charged(known, monkeypatch):
    silence(monkeypatch)
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
    noise = NOISES["pure", Ball(1.0, scaled=True)]
    guarantee = noise.guarantee(Unit.PARTY)
    assert (guarantee.epsilon, guarantee.delta, guarantee.mechanism) == (1.0, 0.0, "vector_sum_l2_gamma")
    assert (guarantee.parameters["contributors"], guarantee.parameters["norm"]) == (3, 1.0)
    texts = [assumption.text for assumption in guarantee.assumptions]
    assert "at least 3 parties add their shares of the noise as drawn, and tell nobody" in texts
    with pytest.raises(InputError, match="unit"):
        noise.guarantee(Unit.ROW)
