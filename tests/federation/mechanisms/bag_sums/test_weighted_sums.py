"""Wtd-LBA on given data: what is revealed altogether, what must not matter, the worst other label, and the warning.

The pair of normal laws that a changed label leaves: its exact delta against two other integrals and Monte Carlo.

Weighted label sums with noise on every sum: its law, its composition, and what is refused.
"""

import json
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtr
from support.examples import examples
from support.refusals import refused
from support.weighted_bags import RANGE, K, M

from federation.contract.errors import InputError
from federation.contract.guarantee import Guarantee
from federation.contract.randomness import NoiseBits
from federation.mechanisms.bag_sums import weighted_sums
from federation.mechanisms.bag_sums.calibration import smallest_tau
from federation.mechanisms.bag_sums.design import mean_delta_chi

UNIT = (0.0, 1.0)


def bag(seed: int, size: int = 12, columns: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.normal(size=(size, columns)), np.ones(size)]), rng.random(size)


def deltas(epsilon: float, rows: np.ndarray, labels: np.ndarray, label_range: tuple[float, float] = UNIT) -> np.ndarray:
    return weighted_sums.bag_deltas(epsilon, rows, labels, label_range=label_range)


def test_leverages_and_residuals_are_those_of_the_projection() -> None:
    rows, labels = bag(0)
    hat = rows @ np.linalg.pinv(rows)
    leverage, residual = weighted_sums.leverages_and_residuals(rows, labels)
    np.testing.assert_allclose(leverage, np.diag(hat), atol=1e-12)
    np.testing.assert_allclose(residual, labels - hat @ labels, atol=1e-12)


@given(st.integers(0, 10**6), st.integers(-(2**31), 2**31), st.integers(-40, 40))
@settings(derandomize=True, max_examples=examples(6))
def test_where_labels_are_and_all_units_do_not_matter_beside_a_constant(seed: int, shift: int, power: int) -> None:
    rows, labels = bag(seed)
    labels = np.rint(labels * 2**20) / 2**20  # doubles hold these exactly wherever they are moved
    unit = 2.0**power
    expected = deltas(1.0, rows, labels)
    moved = deltas(1.0, rows, unit * (labels + shift), (unit * shift, unit * (shift + 1)))
    assert expected.max() < 1
    np.testing.assert_allclose(moved, expected, rtol=1e-5)
    odd = np.column_stack([rows * [1e-12, 1.0, 1e9, 1e3], rows[:, 0] * 7, rows[:, 0] + rows[:, 1], np.zeros(12)])
    np.testing.assert_allclose(deltas(1.0, odd, labels), expected, rtol=1e-5)


def test_labels_far_from_zero_are_revealed_where_they_are_a_function_of_the_rows() -> None:
    rows, random = bag(8)
    labels = 1e6 + 0.5 + 0.1 * np.tanh(rows[:, 0])
    explained = np.column_stack([rows, np.tanh(rows[:, 0])])
    np.testing.assert_array_equal(deltas(1.0, explained, labels, (1e6, 1e6 + 1)), 1.0)
    assert deltas(1.0, rows, labels, (1e6, 1e6 + 1)).min() < 1
    # Without a constant labels far from zero leave a large residual.
    near, far = (deltas(1.0, rows[:, :3], random + shift, (shift, shift + 1)).max() for shift in (0.0, 1e6))
    assert far < near < 1


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        (bag(3)[0], np.full(12, 0.3)),  # constant labels under an intercept
        (bag(3)[0], np.zeros(12)),
        bag(3, size=4),  # as many columns as records
        (bag(3)[0], np.clip(0.5 + 0.01 * bag(3)[0][:, 0], 0, 1)),  # labels that are a function of the rows
        (np.zeros((5, 2)), np.zeros(5)),
    ],
)
def test_labels_without_residual_are_revealed(rows: np.ndarray, labels: np.ndarray) -> None:
    np.testing.assert_array_equal(deltas(9.0, rows, labels), 1.0)


def test_a_value_that_occurs_once_exposes_its_record_and_indicators_of_all_values_are_fine() -> None:
    rows, labels = bag(4, size=40)
    found = deltas(1.0, np.column_stack([rows, np.arange(40) == 7]), labels)
    assert found.argmax() == 7
    assert found[7] > 20 * np.median(found)
    indicators = np.column_stack([np.eye(4)[np.repeat(np.arange(4), 10)], np.ones(40)])
    assert np.all((deltas(1.0, indicators, labels) > 0) & (deltas(1.0, indicators, labels) < 1))


@pytest.mark.slow
@given(st.integers(0, 10**6))
@settings(derandomize=True, max_examples=examples(3))
def test_no_other_label_on_a_fine_grid_is_worse(seed: int) -> None:
    rows, labels = bag(seed, size=8, columns=2)
    leverage, residual = weighted_sums.leverages_and_residuals(rows, labels)
    rss = float(residual @ residual)
    found = deltas(0.7, rows, labels)
    tried = np.linspace(*UNIT, 101)
    for i in range(8):
        others = np.full(101, leverage[i]), np.full(101, residual[i])
        values = weighted_sums.pair_delta(0.7, tried - labels[i], *others, rss, coarse=False)
        assert values.max() <= found[i] * (1 + 1e-4)
        assert found[i] <= 1


def test_the_worst_label_can_lie_inside_the_range() -> None:
    rows = np.column_stack([np.arange(6.0), np.ones(6)])
    labels = 0.2 + 0.1 * np.arange(6.0)
    labels[2] = 0.9  # all others are on a line, on which 0.4 would be
    assert deltas(3.0, rows, labels)[2] == 1
    leverage, residual = weighted_sums.leverages_and_residuals(rows, labels)
    changes, rss = np.array([0.0, 1.0]) - 0.9, float(residual @ residual)
    assert weighted_sums.pair_delta(3.0, changes, leverage[[2, 2]], residual[[2, 2]], rss).max() < 0.9


@pytest.mark.slow
def test_larger_bags_hide_labels_better() -> None:
    rng = np.random.default_rng(5)
    rows, labels = np.column_stack([rng.normal(size=(2048, 4)), np.ones(2048)]), rng.random(2048)
    found = [
        weighted_sums.per_instance_delta(1.0, rows, labels, np.arange(1024).reshape(-1, k), label_range=UNIT)
        for k in (16, 64, 256)
    ]
    assert found[0].mean > 5 * found[1].mean > 25 * found[2].mean
    for value in found:
        assert value.mean <= value.mean_largest <= value.largest < 1
        assert value.revealed == 0


def test_it_cannot_be_taken_for_a_guarantee() -> None:
    rows, labels = bag(6)
    found = weighted_sums.per_instance_delta(1.0, rows, labels, np.arange(12)[None], label_range=UNIT, inclusion=0.5)
    assert isinstance(found, weighted_sums.PerInstanceDelta)
    assert not isinstance(found, Guarantee)
    record = json.loads(json.dumps(found.to_dict()))
    assert (record["guarantee"], record["inclusion"]) == (None, 0.5)
    assert "must not be published" in record["warning"]
    assert "delta" not in record
    assert not any(hasattr(found, name) for name in ("delta", "epsilon"))
    with pytest.raises(InputError):
        Guarantee.from_dict(record)


def test_labels_at_the_ends_of_the_range_and_bags_that_are_never_drawn_are_looked_at_like_others() -> None:
    rows, labels = bag(7)
    labels[:2] = UNIT
    found = weighted_sums.per_instance_delta(1.0, rows, labels, np.arange(12)[None], label_range=UNIT, inclusion=0.0)
    assert (found.inclusion, found.revealed) == (0.0, 0.0)
    assert 0 < found.mean < 1
    # One row in a bag tells its label.
    alone = weighted_sums.per_instance_delta(1.0, rows, labels, np.array([[0]]), label_range=UNIT, inclusion=1.0)
    assert (alone.mean, alone.revealed) == (1.0, 1.0)


ROWS, LABELS = bag(7)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        *(({"labels": np.where(np.arange(12) == 3, wrong, LABELS)}, r"rows.*0.*1") for wrong in (1.1, np.nan)),
        ({"rows": np.where(ROWS == 1, np.nan, ROWS)}, "rows"),
        ({"bags": np.arange(0)}, "bags"),
        *(({"bags": np.array([[0, outside]])}, r"bags.*12.*0") for outside in (12, -1)),
        *(({"inclusion": inclusion}, r"inclusion.*0.*1") for inclusion in (-0.1, 1.1, np.nan)),
        ({"label_range": (1.0, 1.0)}, "label_range"),
        *(({"epsilon": epsilon}, r"epsilon.*0.*700") for epsilon in (-0.1, 701.0, math.nan)),
    ],
)
def test_bad_data_are_refused(changes: dict, told: str) -> None:
    known = {"epsilon": 1.0, "rows": ROWS, "labels": LABELS, "bags": np.arange(12)[None], "label_range": UNIT}
    with pytest.raises(InputError, match=told):
        weighted_sums.per_instance_delta(**known | changes)


def one(epsilon: float, change: float, leverage: float, residual: float, rss: float, *, coarse: bool = False) -> float:
    arrays = (np.array([value]) for value in (change, leverage, residual))
    return float(weighted_sums.pair_delta(epsilon, *arrays, rss, coarse=coarse)[0])


def scales(change: float, leverage: float, residual: float, rss: float) -> tuple[float, float]:
    """The a and b of the pair."""
    square = 1 + (2 * change * residual + change**2 * (1 - leverage)) / rss
    return abs(change) * math.sqrt(leverage / rss), math.sqrt(square)


def exceeding(level: np.ndarray, a: float, b: float) -> np.ndarray:
    """P[ln p/q > level] for P: u, v ~ N(0, 1) and Q: v | u ~ N(a u, b²), by panels of u."""
    nodes, weights = np.polynomial.legendre.leggauss(24)
    edges = np.linspace(0, 12, 241)
    half = (edges[1] - edges[0]) / 2
    u = (edges[:-1, None] + half * (nodes + 1)).ravel()
    density = np.tile(half * weights, 240) * np.exp(-u * u / 2) * 2 / math.sqrt(2 * math.pi)
    result = np.empty(len(level))
    for i, t in enumerate(level):
        # ln p/q = ln b - v²/2 + (v - a u)²/2b² exceeds t where the parabola is positive.
        top, middle = 0.5 / b**2 - 0.5, -a * u / b**2
        under = middle**2 - 4 * top * ((a * u) ** 2 / (2 * b**2) + math.log(b) - t)
        root = np.sqrt(np.maximum(under, 0))
        low, high = np.sort([(-middle - root) / (2 * top), (-middle + root) / (2 * top)], axis=0)
        inside = np.where(under > 0, ndtr(high) - ndtr(low), 0.0)
        result[i] = density @ (1 - inside if top > 0 else inside)
    return result


def in_order(epsilon: float, a: float, b: float) -> float:
    """integral over t > epsilon of e^{epsilon - t} P[ln p/q > t]."""
    nodes, weights = np.polynomial.legendre.leggauss(8)
    kink = max(abs(math.log(b)) - epsilon, 0.0)  # where the event changes its form
    away = np.geomspace(1e-6, 40, 40)
    edges = np.unique(np.clip(np.concatenate([[0.0, kink], away, kink + away, kink - away]), 0, 40))
    half = np.diff(edges)[:, None] / 2
    t = (edges[:-1, None] + half * (nodes + 1)).ravel()
    w = (half * weights).ravel() * np.exp(-t)
    return float(w @ exceeding(epsilon + t, a, b))


@pytest.mark.slow
@pytest.mark.parametrize(("a", "b"), [(0.3, 1.2), (0.6, 1.01), (0.3, 0.8), (0.05, 1.05), (1.0, 2.0), (0.6, 0.99)])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5, 1.0])
def test_either_order_is_integrated_from_where_it_begins(epsilon: float, a: float, b: float) -> None:
    """The worse of both hides an error in the other."""
    x = np.arange(-24.0, 4.0, 0.05)
    [found] = weighted_sums._hockey_stick(epsilon, np.array([a]), np.array([b]), x)
    assert found == pytest.approx(in_order(epsilon, a, b), rel=3e-5, abs=1e-15)


@given(st.floats(0, 3), st.floats(-3, 3), st.floats(0, 1), st.floats(-0.99, 0.99), st.floats(0.5, 20))
@example(1.0, 1.0, 0.1, 0.3, 2.0)
@example(0.1, 1.0, 0.01, 0.5, 60.0)
@settings(derandomize=True)
def test_monte_carlo(epsilon: float, change: float, leverage: float, share: float, rss: float) -> None:
    residual = share * math.sqrt(rss * (1 - leverage))  # r² <= rss (1 - h) for every row
    a, b = scales(change, leverage, residual, rss)
    rng, runs = np.random.default_rng(0), 100_000
    u, v = rng.normal(size=(2, runs))
    expected = []
    for first, second in ((a, b), (a / b, 1 / b)):
        loss = math.log(second) - v**2 / 2 + (v - first * u) ** 2 / (2 * second**2)
        seen = np.maximum(0, -np.expm1(np.minimum(epsilon - loss, 0)))
        expected.append((seen.mean(), seen.std() / math.sqrt(runs)))
    worst, error = max(expected)
    found = one(epsilon, change, leverage, residual, rss)
    assert found == pytest.approx(worst, abs=5 * error + 2e-4)
    assert one(epsilon, change, leverage, residual, rss, coarse=True) == pytest.approx(found, rel=0.05, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "change", "leverage", "residual", "rss"),
    [
        (1.0, 1.0, 0.1, 0.3, 2.0),
        (1.0, 1.0, 0.5, -0.9, 2.0),
        (0.1, 1.0, 0.01, 0.5, 60.0),
        (2.0, 1.0, 0.3, -1.0, 1.6),
        (0.5, -2.0, 0.2, 0.5, 9.0),
        (0.0, 1.0, 0.1, 0.3, 2.0),
    ],
)
def test_the_tail_integral(epsilon: float, change: float, leverage: float, residual: float, rss: float) -> None:
    a, b = scales(change, leverage, residual, rss)
    expected = max(in_order(epsilon, a, b), in_order(epsilon, a / b, 1 / b))
    assert one(epsilon, change, leverage, residual, rss) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("epsilon", "ratio"), [(0.0, 1.0), (0.5, 0.3), (1.0, 0.1), (1.0, 2.0), (3.0, 0.08),
                                                (1.0, 0.06), (1.0, 0.04), (1.0, 0.025), (1.0, 0.015)])  # fmt: skip
def test_full_leverage_is_a_weighted_gaussian_mechanism(epsilon: float, ratio: float) -> None:
    """h = 1, r = 0: only the mean moves, by a times the weight, which the sums of rows reveal; down to 1e-40."""
    expected = mean_delta_chi(epsilon, ratio)
    assert expected > 1e-40
    assert one(epsilon, ratio, 1.0, 0.0, 1.0) == pytest.approx(expected, rel=1e-8 if expected > 1e-20 else 1e-7)
    if expected > 1e-20:
        assert one(epsilon, ratio, 1 - 1e-9, 0.0, 1.0) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("b", [0.2, 0.9, 1.1, 3.0])
def test_no_leverage_is_a_change_of_variance(b: float) -> None:
    """h = 0: N(0, 1) against N(0, b²), whose likelihood ratio depends on |v|."""
    epsilon = 0.05

    def stick(spread: float) -> float:
        square = 2 * (epsilon - math.log(spread)) / (spread**-2 - 1)
        if square <= 0:
            return 0.0
        edge = math.sqrt(square)
        # By complements where that is the outside.
        here, there = 2 * ndtr(-edge), 2 * ndtr(-edge / spread)
        if spread > 1:
            here, there = 1 - here, 1 - there
        return here - math.exp(epsilon) * there

    rss = 4.0
    change = math.sqrt((b * b - 1) * rss) if b > 1 else 1.0
    residual = 0.0 if b > 1 else ((b * b - 1) * rss - 1) / 2
    assert one(epsilon, change, 0.0, residual, rss) == pytest.approx(max(stick(b), stick(1 / b)), rel=1e-8)


def test_labels_that_fit_perfectly_reveal_themselves_and_a_label_that_stays_tells_nothing() -> None:
    assert one(5.0, 1.0, 0.5, -0.5, 0.5) == 1  # dy = -r/(1 - h) takes all the residual away
    assert one(5.0, 0.0, 0.5, -0.5, 0.5) == 0
    assert [one(0.0, 0.0, leverage, 0.2, 1.0) for leverage in (0.0, 0.3, 1.0)] == [0, 0, 0]


@given(st.floats(0, 2), st.floats(-2, 2), st.floats(0, 0.999), st.floats(-0.9, 0.9), st.floats(0.1, 10))
@settings(derandomize=True)
def test_delta_is_a_probability_that_falls_with_epsilon(epsilon, change, leverage, share, rss) -> None:
    residual = share * math.sqrt(rss * (1 - leverage))
    here, later = (one(e, change, leverage, residual, rss) for e in (epsilon, epsilon + 0.2))
    assert 0 <= later <= here * (1 + 1e-9) <= 1 + 1e-9


def fixed_sums(records: int = 640, bags: int = 10, size: int = 64, tau: float = 8.0, epsilon: float = 1.0):
    return weighted_sums.repaired_bag_sums(records, bags, size, tau=tau, label_range=RANGE, epsilon=epsilon)


def calibrated_sums(records: int = 640, bags: int = 10, delta: float = 1e-6):
    return weighted_sums.calibrate(records, bags, 64, label_range=RANGE, epsilon=1.0, delta=delta)


def test_noise_of_the_repaired_sums(drawn) -> None:
    labels, weights, _ = drawn
    error = fixed_sums(2 * M * K, M, K, 5.0).release(labels, weights, NoiseBits(1, "test"))
    assert stats.kstest((error - (weights * labels).sum(axis=1)) / 5, "norm").pvalue > 1e-3


@pytest.mark.parametrize(
    ("refused", "told"),
    [
        *((lambda delta=delta: calibrated_sums(delta=delta), r"delta.*0.*1") for delta in (0.0, 1.0, 1.5)),
        *((lambda wrong=wrong: fixed_sums(epsilon=wrong), "epsilon") for wrong in (-0.1, math.nan, math.inf)),
        (lambda: fixed_sums(tau=0.0), "tau"),
        (lambda: calibrated_sums(bags=11), r"11.*64.*704"),
        *(
            (lambda times=times: fixed_sums().composed_delta(1.0, times), r"releases.*1")
            for times in (0, -1, 1.5, True)
        ),
    ],
)
def test_impossible_repairs_are_refused(refused, told: str) -> None:
    with pytest.raises(InputError, match=told):
        refused()


@pytest.mark.parametrize("epsilon", [0.0, 1e-13, 0.3, 1.0, 4.0])
def test_the_claim_charges_a_little_for_its_grid(epsilon: float) -> None:
    exact = mean_delta_chi(epsilon, 0.5)
    assert exact < fixed_sums().delta_at(epsilon) < exact * (1 + 1e-4)


def test_calibrated_mechanisms_reach_their_claim_with_hardly_more_noise_than_ideal() -> None:
    fixed, rarely = calibrated_sums(), calibrated_sums(6400)
    assert 1e-6 * (1 - 1e-6) < fixed.delta_at(1.0) <= 1e-6
    assert fixed.tau == pytest.approx(smallest_tau(1.0, 1e-6, label_range=RANGE), rel=1e-5)
    assert rarely.tau == pytest.approx(smallest_tau(1.0, 1e-5, label_range=RANGE), rel=1e-5)
    assert calibrated_sums(6400, 1, 0.5).delta_at(1.0) <= 0.5


def test_releases_compose() -> None:
    fixed = fixed_sums(tau=20.0)
    assert fixed.composed_delta(1.0, 1) == fixed.delta_at(1.0)
    assert fixed.composed_delta(1.0, 5) == pytest.approx(mean_delta_chi(1.0, 0.2, 5), rel=1e-4)
    expected = sum(stats.binom(5, 0.5).pmf(t) * mean_delta_chi(1.0, 0.2, t) for t in range(1, 6))
    assert fixed_sums(1280, tau=20.0).composed_delta(1.0, 5) == pytest.approx(expected, rel=1e-4)


def test_more_bags_than_are_charged_and_infinite_weights_are_refused(drawn) -> None:
    labels, weights, _ = drawn
    refused(None, fixed_sums(2 * M * K, M - 1, K, 1.0).release, labels, weights, NoiseBits(1, "x"))
    infinite = np.where(np.arange(K) == 0, math.inf, weights)
    refused("weights", fixed_sums(2 * M * K, M, K, 1.0).release, labels, infinite, NoiseBits(1, "x"))
