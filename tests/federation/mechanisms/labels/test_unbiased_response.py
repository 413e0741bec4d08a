"""Unbiased answers from a table: its law by all words, privacy in rational numbers, and tables that are refused.

The table of least variance: private in exact numbers, unbiased, as good as another solver says, beside one bit.
"""

import math
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from support.examples import examples
from support.scripted_words import Script, evenly

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency
from federation.contract.randomness import NoiseBits
from federation.mechanisms.labels import randomised_response as one_bit
from federation.mechanisms.labels.mechanism import LabelRange
from federation.mechanisms.labels.unbiased_response import (
    POINTS,
    TOTAL,
    WORTHWHILE,
    UnbiasedResponse,
    calibrate,
    exponential_below,
    table,
)

RANGE = LabelRange(-1.0, 3.0)
QUARTER = TOTAL // 4
OUTPUTS = (-2.0, 2.0)
SMALL = ((3 * QUARTER, QUARTER), (2 * QUARTER, 2 * QUARTER), (QUARTER, 3 * QUARTER))  # three points, odds of 3 at most
KEPT = UnbiasedResponse(RANGE, 1.1, OUTPUTS, SMALL)  # log 3 = 1.0986


@pytest.mark.parametrize("share", [0.0, 0.125, 0.25, 0.5, 0.875, 1.0])
def test_the_law_by_all_words(share):
    """4 words to round a label on eighths and 4 to choose an output are all."""
    rounding, choice = (words.ravel() for words in np.meshgrid(evenly(4), evenly(4)))
    labels = np.full(16, RANGE.low + share * RANGE.width)
    released = KEPT.release(labels, Script(rounding, choice))
    assert set(released) <= {-3.0, 5.0}  # the middle, 1, and twice half of the width beyond it
    assert (released > 0).mean() == 0.25 + share / 2
    assert released.mean() == labels[0]
    assert released.var() == pytest.approx(KEPT.variance(labels[:1])[0], rel=1e-12)
    assert KEPT.bias(labels[:1])[0] == 0.0


@given(epsilon=st.floats(0.05, 3.0), label=st.floats(-1.0, 3.0), other=st.floats(-1.0, 3.0))
def test_no_pair_of_labels_makes_an_answer_more_than_e_to_the_epsilon_times_as_likely(epsilon, label, other):
    """In rational numbers, with the very places to which labels are rounded."""
    mechanism = UnbiasedResponse(RANGE, 4.0, *table(4.0)) if epsilon > 1.5 else KEPT
    laws = []
    for one in (label, other):
        steps = (len(mechanism.weights) - 1) * 2**48
        row, part = divmod(int(RANGE.positions(np.array([one]), steps)[0]), 2**48)
        above = mechanism.weights[min(row + 1, len(mechanism.weights) - 1)]
        up = Fraction(part, 2**48)
        laws.append([(1 - up) * w + up * v for w, v in zip(mechanism.weights[row], above, strict=True)])
    assert all(sum(law) == TOTAL for law in laws)
    assert max(here / there for here, there in zip(*laws, strict=True)) <= exponential_below(mechanism.epsilon)
    beyond = [float(max(h - Fraction(math.exp(epsilon)) * t, 0) / TOTAL) for h, t in zip(*laws, strict=True)]
    assert sum(beyond) <= mechanism.delta_at(epsilon) + 1e-15


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.5, 4.0])
def test_delta_is_that_of_the_worst_pair_in_rational_numbers(epsilon):
    mechanism = UnbiasedResponse(RANGE, 4.0, *table(4.0))
    factor = Fraction(math.exp(epsilon))
    exact = max(
        sum(max(Fraction(h) - factor * t, Fraction(0)) for h, t in zip(here, there, strict=True)) / TOTAL
        for here in mechanism.weights
        for there in mechanism.weights
    )
    assert mechanism.delta_at(epsilon) == pytest.approx(float(exact), rel=1e-12, abs=1e-15)
    assert (exact > 0) == (epsilon < 4.0)


@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1.0, math.log(3), 5.7, 12.0])
def test_the_bound_of_e_to_the_epsilon_is_below_it_and_hardly(epsilon):
    with localcontext() as context:
        context.prec = 80
        exact = Fraction(Decimal(epsilon).exp())
    bound = exponential_below(epsilon)
    assert 0 < exact - bound < Fraction(1, 2**63)
    assert bound.denominator <= 2**64


def test_a_table_is_private_up_to_the_last_unit():
    """A column with a largest weight of floor(e^epsilon times its smallest) is allowed, one more is not."""
    least = 2**30
    most = math.floor(exponential_below(0.5) * least)
    kept = ((least, TOTAL - least), (most, TOTAL - most))
    assert UnbiasedResponse(RANGE, 0.5, OUTPUTS, kept).delta_at(0.5) == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(InputError, match=r"epsilon.*0\.5.*1\.6487"):
        UnbiasedResponse(RANGE, 0.5, OUTPUTS, (kept[0], (most + 1, TOTAL - most - 1)))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"epsilon": 1.0}, r"epsilon.*1.*3"),
        *(({"epsilon": epsilon}, "12") for epsilon in (0.0, 12.5, math.nan)),
        *(
            ({"outputs": pair}, None)
            for pair in ((2.0, -2.0), (0.0, 0.0), (math.nan, 0.0), (0.0, math.inf), (-1e9, 0.0))
        ),
        *(({"outputs": outputs}, r"2.*128") for outputs in ((), tuple(range(129)))),
        ({"outputs": (0.0, 1.0, 2.0)}, r"2.*33.*3"),
        *(({"weights": weights}, r"2.*33") for weights in (SMALL[:1], SMALL * 12, (SMALL[0], SMALL[1][:1]))),
        *(({"weights": (row, SMALL[1])}, "1") for row in ((TOTAL, 0), (TOTAL + 1, -1))),
        ({"weights": ((QUARTER, QUARTER), SMALL[1])}, rf"{TOTAL}.*{2 * QUARTER}"),
        ({"weights": ((0.5 * TOTAL, 0.5 * TOTAL), SMALL[1])}, None),
    ],
)
def test_a_table_that_is_none_is_refused(changed, message):
    with pytest.raises(InputError, match=message):
        replace(KEPT, **changed)


@pytest.mark.parametrize(
    ("epsilon", "message"),
    [
        (12.1, "from 0.01 to 12, got 12.1; choose noise laplace or auto"),
        (0.005, "choose noise one_bit"),
        (math.nan, ""),
    ],
)
def test_epsilons_out_of_reach_are_refused(epsilon, message):
    with pytest.raises(InputError, match=rf"epsilon.*{message}"):
        calibrate(RANGE, epsilon)


def test_the_guarantee_is_pure_names_its_table_and_is_for_replaced_labels_only():
    promised = KEPT.guarantee()
    assert (promised.epsilon, promised.delta, promised.mechanism) == (1.1, 0.0, "label_unbiased")
    assert (promised.parameters["points"], promised.parameters["outputs"]) == (3, 2)
    assert promised.parameters["table"] != replace(KEPT, weights=SMALL[::-1]).parameters["table"]
    with pytest.raises(InputError, match="adjacency"):
        KEPT.guarantee(adjacency=Adjacency.ADD_REMOVE)
    # The largest table serves, and a weight of one part is enough.
    row = (1, TOTAL - 127, *(1,) * 126)
    largest = UnbiasedResponse(RANGE, 1.1, tuple(float(output) for output in range(128)), (row,) * 33)
    assert (largest.parameters["points"], largest.parameters["outputs"]) == (33, 128)
    assert largest.delta_at(0.0) == 0.0


def test_answers_have_the_stated_mean_variance_and_law():
    mechanism = UnbiasedResponse(RANGE, 2.0, *table(2.0))
    labels = np.repeat([-1.0, 0.31, 1.0, 3.0], 100_000)
    released = mechanism.release(labels, NoiseBits(4, "unbiased"))
    parts, own = released.reshape(4, -1), labels[::100_000]
    np.testing.assert_allclose(parts.mean(axis=1), own, atol=4.5 * (mechanism.variance() / 100_000) ** 0.5)
    np.testing.assert_allclose(parts.var(axis=1), mechanism.variance(own), rtol=0.03)
    values = RANGE.middle + RANGE.width / 2 * np.array(mechanism.outputs)
    shares = (parts[-1][:, None] == values).mean(axis=0)
    np.testing.assert_allclose(shares, np.array(mechanism.weights[-1]) / TOTAL, atol=4.5 * 0.5 / 100_000**0.5)


@pytest.mark.parametrize(
    "mechanism",
    [
        KEPT,
        *(
            UnbiasedResponse(RANGE, 1.1, OUTPUTS, rows)
            for rows in (
                (SMALL[0], SMALL[2]),
                (SMALL[0], SMALL[1]),
                (SMALL[1], SMALL[2]),
                (SMALL[0], (5 * QUARTER // 2, 3 * QUARTER // 2)),
            )
        ),
        UnbiasedResponse(RANGE, 2.0, *table(2.0)),
    ],
)
def test_the_largest_variance_and_bias_are_those_of_the_worst_label_also_between_points(mechanism):
    labels = np.linspace(RANGE.low, RANGE.high, 20_001)
    worst = np.abs(mechanism.bias(labels)).max()
    assert mechanism.variance() == pytest.approx(mechanism.variance(labels).max(), rel=1e-7)
    assert mechanism.bias() == pytest.approx(worst, abs=1e-12)
    assert (worst > 1e-6) == (len(mechanism.weights) == 2 and mechanism.weights != (SMALL[0], SMALL[2]))


def test_the_likelihood_ratio_of_an_answer_is_that_of_the_ends():
    values = RANGE.middle + RANGE.width / 2 * np.array([OUTPUTS, OUTPUTS[::-1]])
    low, high, middle = (np.full(2, label) for label in (RANGE.low, RANGE.high, RANGE.middle))
    ratios = KEPT.log_ratio(np.column_stack([values.ravel(), np.full(4, values[0, 0])]), low, high)
    np.testing.assert_allclose(ratios, np.log([1 / 9, 1, 1, 1 / 9]), atol=1e-12)
    assert not KEPT.log_ratio(values, middle, middle).any()


SIGNS = LabelRange(-1.0, 1.0)
GRID = np.linspace(-1.0, 1.0, POINTS)
WEIGHT = np.where(np.abs(GRID) == 1, 0.25, 0.0) + 0.5 / POINTS


@given(epsilon=st.floats(0.5, 12.0))
@settings(max_examples=examples(8))
def test_every_table_is_private_in_whole_numbers_and_unbiased(epsilon):
    weights = table(epsilon)[1]
    assert {sum(row) for row in weights} == {TOTAL}
    bound = exponential_below(epsilon)
    assert all(1 <= max(column) <= bound * min(column) for column in zip(*weights, strict=True))
    assert max(max(column) / min(column) for column in zip(*weights, strict=True)) > 0.999 * math.exp(epsilon)
    labels = np.linspace(-1.0, 1.0, 201)
    assert np.abs(calibrate(SIGNS, epsilon).bias(labels)).max() <= 6e-9 * SIGNS.width


@pytest.mark.parametrize("epsilon", [0.01, 0.03, 0.1, 0.3])
def test_at_small_epsilon_it_is_as_good_as_one_bit(epsilon):
    """No unbiased answers to two labels are better than one bit, and for these the others hardly count."""
    noise, bit = calibrate(SIGNS, epsilon), one_bit.calibrate_one_bit(SIGNS, epsilon)
    np.testing.assert_allclose(noise.variance(GRID), bit.variance(GRID), rtol=0.01)
    assert noise.bias() < 1e-7


def test_from_where_it_is_worthwhile_it_spares_variance():
    """Below, one bit a label does nearly as well; at twice that epsilon it costs nearly twice the variance."""
    once, twice = (
        one_bit.calibrate_one_bit(SIGNS, epsilon).variance() / calibrate(SIGNS, epsilon).variance()
        for epsilon in (WORTHWHILE, 2 * WORTHWHILE)
    )
    assert 1 < once < 1.1
    assert twice > 1.5


@pytest.mark.parametrize("epsilon", [0.7, 2.0, 6.0])
def test_another_solver_finds_no_less_variance(epsilon):
    """An interior-point method on half of the unknowns: an optimum may be taken as its own mirror image."""
    half, bit = POINTS // 2 + 1, 1 / math.tanh(epsilon / 2)
    outputs = np.sort([*np.linspace(-1.15 * bit, 1.15 * bit, 41), -bit, bit])
    m = len(outputs)
    folded = np.where(np.arange(half) < half - 1, 2, 1) * WEIGHT[:half]  # the middle point is its own image
    cost = folded[:, None] * np.square(outputs - GRID[:half, None])
    bounds, sums = [], np.zeros((2 * half, half * m + m))
    for i in range(half):
        sums[2 * i, i * m : (i + 1) * m], sums[2 * i + 1, i * m : (i + 1) * m] = 1.0, outputs
        for j in range(m):
            for least in {j, m - 1 - j}:  # of the point, and of its mirror image
                low, high = np.zeros(half * m + m), np.zeros(half * m + m)
                low[[half * m + least, i * m + j]] = 1.0, -1.0
                high[[half * m + least, i * m + j]] = -math.exp(epsilon), 1.0
                bounds += [low, high]
    targets = np.column_stack([np.ones(half), GRID[:half]]).ravel()
    found = linprog(
        [*cost.ravel(), *np.zeros(m)],
        A_ub=np.array(bounds),
        b_ub=np.zeros(len(bounds)),
        A_eq=sums,
        b_eq=targets,
        method="highs-ipm",
    )
    assert WEIGHT @ calibrate(SIGNS, epsilon).variance(GRID) == pytest.approx(found.fun, rel=1e-5)


@pytest.mark.parametrize(("epsilon", "at_an_end"), [(1.0, 1.02), (2.0, 1.23), (4.0, 1.58), (6.0, 2.4), (8.0, 4.3)])
def test_beside_one_bit(epsilon, at_an_end):
    """Never worse where labels are even or half of them at the ends; worst where all are at one end."""
    noise, bit = calibrate(SIGNS, epsilon), one_bit.calibrate_one_bit(SIGNS, epsilon)
    assert WEIGHT @ noise.variance(GRID) <= WEIGHT @ bit.variance(GRID)
    labels = np.linspace(-1.0, 1.0, 2001)
    ratios = noise.variance(labels) / bit.variance(labels)
    assert ratios.argmax() in (0, 2000)
    assert ratios.max() <= at_an_end
    bell = np.exp(-np.square(labels / 0.4) / 2)
    ratio = (bell @ noise.variance(labels)) / (bell @ bit.variance(labels))
    assert ratio <= {1.0: 0.95, 2.0: 0.57, 4.0: 0.15}.get(epsilon, 0.05)


def test_a_table_is_made_once_for_each_epsilon_and_serves_every_range():
    assert table(1.25) is table(1.25)
    wide, small = calibrate(LabelRange(0.0, 52.0), 1.25), calibrate(SIGNS, 1.25)
    np.testing.assert_allclose(wide.variance(26 + 26 * GRID), 26**2 * small.variance(GRID), rtol=1e-9)
