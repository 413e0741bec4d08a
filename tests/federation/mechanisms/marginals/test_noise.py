"""Noise for all queries of an exchange: scales, what auto takes, what parts of the exchange promise, bad input.

The exact delta of several noisy integers against convolutions, joint laws and privacy loss distributions.

What a row or a label moves in the cells of binned errors, on random rows and hypotheses.
"""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st
from support.discrete_laws import gaussian_law, laplace_law
from support.refusals import refused

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Check, Guarantee, Unit
from federation.contract.randomness import NoiseBits
from federation.mechanisms.accounting.composition import compose
from federation.mechanisms.marginals import noise as module
from federation.mechanisms.marginals.noise import (
    MAX_CELLS,
    SMOOTH_SIGMA,
    MarginalNoise,
    calibrate,
    gaussian_delta,
    laplace_delta,
    moved_cells,
    premises,
)
from federation.mechanisms.noise import discrete, gaussian

UNITS = ((Unit.ROW, Adjacency.ADD_REMOVE), (Unit.ROW, Adjacency.REPLACE), (Unit.LABEL, Adjacency.REPLACE))
BASE = {"features": 22, "queries": 2, "epsilon": 1.0, "delta": 1e-5}


def noise_of(kind: str, unit: tuple[Unit, Adjacency] = UNITS[0], **changed: object) -> MarginalNoise:
    return calibrate(kind, unit=unit[0], adjacency=unit[1], **(BASE | changed))


@pytest.mark.parametrize(("queries", "sigma", "laplace"), [(2, 24.75, 62.22), (3, 30.31, 93.34)])
def test_many_features_and_queries_take_gaussian_noise_and_few_pure(queries: int, sigma: float, laplace: float) -> None:
    chosen, few = noise_of("auto", queries=queries), noise_of("auto", features=2)
    assert chosen.name == "marginal_gaussian"
    assert chosen.deviation == pytest.approx(sigma, abs=0.01)
    assert noise_of("pure", queries=queries).deviation == pytest.approx(laplace, abs=0.01)
    assert (few.name, few.delta, few.scale) == ("marginal_laplace", 0.0, 4)
    assert noise_of("gaussian", features=2).deviation == pytest.approx(7.46, abs=0.01)
    assert noise_of("auto", delta=0.0) == noise_of("pure")


@pytest.mark.parametrize("unit", UNITS)
def test_the_pure_scale_is_the_summed_l1_sensitivity_over_epsilon(unit: tuple[Unit, Adjacency]) -> None:
    noise = noise_of("pure", unit, queries=3, epsilon=0.3)
    summed = 3 * 22 * (2 if unit == UNITS[1] else 1)
    assert 0 <= noise.scale - summed / Fraction(0.3) < Fraction(1, 2**10)
    assert noise.delta_at(0.3) == 0.0
    made = noise.guarantee().parameters
    assert made["l1_sensitivity"] == summed / 3
    assert made["l2_sensitivity"] == (summed / 3) ** 0.5
    assert "grid_scale" not in made  # by which Gaussian noise would be composed


@pytest.mark.parametrize(("kind", "factor"), [("gaussian", 2**0.5), ("pure", 2.0)])
def test_replaced_rows_need_root_two_more_gaussian_noise_and_twice_the_pure(kind: str, factor: float) -> None:
    added, replaced = (noise_of(kind, unit).deviation for unit in UNITS[:2])
    assert replaced / added == pytest.approx(factor, rel=1e-3)


@settings(derandomize=True)
@given(st.integers(1, 60), st.integers(1, 5), st.floats(0.01, 8), st.floats(1e-9, 1e-2), st.sampled_from(UNITS))
def test_the_claim_holds_and_less_noise_would_break_it(features, queries, epsilon, delta, unit) -> None:
    known = {"unit": unit, "features": features, "queries": queries, "epsilon": epsilon, "delta": delta}
    noise, auto, pure = (noise_of(kind, **known) for kind in ("gaussian", "auto", "pure"))
    assert noise.delta_at(epsilon) <= delta
    thinner = noise.__class__(features, queries, *unit, epsilon, delta, noise.scale * Fraction(999, 1000))
    assert thinner.delta_at(epsilon) > 0.99 * delta
    assert auto.deviation <= 1.001 * min(noise.deviation, pure.deviation)


@pytest.mark.parametrize("kind", ["pure", "gaussian"])
def test_answers_compose_to_what_all_promise(kind: str) -> None:
    """However many are asked, and for Gaussian noise but for what composition does not know."""
    noise = noise_of(kind, queries=3)
    one = noise.per_query()
    assert isinstance(one, Guarantee)
    epsilon, delta = compose([one] * 3, noise.delta)
    assert epsilon == pytest.approx(1.0, rel=1e-3)
    assert (epsilon > 1 - 1e-9, delta) == (True, noise.delta)
    assert compose([noise.guarantee()], noise.delta)[0] == pytest.approx(1.0, rel=1e-9)
    spent = [noise.of(count).epsilon for count in (1, 2, 3)]
    assert spent[0] == one.epsilon
    assert spent[0] < spent[1] < spent[2] == 1.0
    assert noise.of(2).delta_at(spent[1]) <= noise.delta


def test_the_first_of_many_gaussian_answers_claims_no_more_than_it_needs() -> None:
    noise = noise_of("gaussian", queries=9)
    one = noise.of(1)
    assert one.epsilon < 0.5
    assert one.delta_at(one.epsilon) <= noise.delta < one.delta_at(0.999 * one.epsilon)


@pytest.mark.parametrize(
    ("features", "queries", "epsilon", "most"),
    [(8, 2, 1.0, 1.003), (4, 2, 1.0, 1.01), (4, 4, 5.0, 1.12), (22, 2, 20.0, 1.07)],
)
def test_composition_is_sound_where_the_grid_is_coarse(features, queries, epsilon, most) -> None:
    """The total of single answers is never below the exact one, and not far above for ten steps or more."""
    noise = noise_of("gaussian", features=features, queries=queries, epsilon=epsilon)
    total, _ = compose([noise.per_query()] * queries, noise.delta)
    assert noise.delta_at(total) <= noise.delta
    assert epsilon < total <= most * epsilon


def test_the_guarantee_names_what_it_rests_on() -> None:
    made = noise_of("gaussian").guarantee()
    assert (made.unit, made.adjacency, made.epsilon, made.delta) == (Unit.ROW, Adjacency.ADD_REMOVE, 1.0, 1e-5)
    assert made.gaussian_mu == pytest.approx(44**0.5 / made.parameters["scale"])
    enforced = [premise.text for premise in made.assumptions if premise.check is Check.ENFORCED]
    assert any("exactly one bin of every feature" in text for text in enforced)
    assert any("2 queries, agreed on before the first" in text for text in enforced)
    assert Guarantee.from_dict(made.to_dict()) == made
    coarse = noise_of("gaussian", features=1, queries=1, epsilon=40.0)
    assert coarse.scale < 1
    assert coarse.guarantee().gaussian_mu is None


@pytest.mark.parametrize("kind", ["pure", "gaussian"])
def test_noise_on_any_shape_has_mean_zero_and_the_deviation(kind: str) -> None:
    noise = noise_of(kind, features=2, queries=2)
    cells = np.arange(12).reshape(2, 3, 2)
    drawn = noise.release(np.broadcast_to(cells, (20_000, 2, 3, 2)), NoiseBits(3, kind)) - cells
    assert (drawn.shape, drawn.dtype) == ((20_000, 2, 3, 2), np.int64)
    error = noise.deviation / 240_000**0.5
    assert abs(drawn.mean()) < 5 * error
    assert drawn.std() == pytest.approx(noise.deviation, rel=0.02)
    assert (drawn[:10_000] != drawn[10_000:]).mean() > 0.5
    flat = drawn.reshape(20_000, 12)
    correlation = np.corrcoef(flat, rowvar=False) - np.eye(12)
    assert np.abs(correlation).max() < 6 / 20_000**0.5
    assert noise.release(np.zeros((0, 2), int), NoiseBits(3, kind)).shape == (0, 2)
    np.testing.assert_array_equal(noise.release(cells, NoiseBits(1, "a")), noise.release(cells, NoiseBits(1, "a")))


@pytest.mark.parametrize("cells", [[-1, 2], [0.5, 1.0], [True, False], [2**53, 0], ["1"]])
def test_cells_that_are_no_counts_are_refused(cells: list) -> None:
    with pytest.raises(InputError, match="cells"):
        noise_of("pure").release(np.array(cells), NoiseBits(1, "bad"))
    largest = np.array([2**52, 0])
    assert np.abs(noise_of("pure").release(largest, NoiseBits(1, "largest")) - largest).max() < 10**6


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"features": 0}, r"features.*1.*0"),
        *(({"queries": queries}, "queries") for queries in (2.0, True)),
        ({"features": 2**20}, r"2.*20"),
        *(({"epsilon": epsilon}, "epsilon") for epsilon in (0.0, float("nan"), 1e-12)),
        ({"delta": 1.0}, "delta"),
        ({"delta": 0.0}, r"delta.*0"),
        ({"unit": (Unit.PARTY, Adjacency.ADD_REMOVE)}, "add_remove"),
        ({"kind": "gausian"}, "gaussian"),
    ],
)
def test_bad_numbers_are_refused(changed: dict, message: str) -> None:
    refused(message, noise_of, **{"kind": "gaussian"} | changed)
    for queries in (0, 3, True, 1.0):
        refused(r"1.*2", noise_of("pure").of, queries)
    # So many are within the limit.
    assert noise_of("pure", features=2**20, queries=1).cells == 2**20
    assert moved_cells(*UNITS[0]) * 100 * 10_000 <= MAX_CELLS


@pytest.mark.parametrize("unit", [(Unit.LABEL, Adjacency.ADD_REMOVE), (Unit.PARTY, Adjacency.REPLACE), ("row", "swap")])
def test_other_units_are_refused(unit: tuple) -> None:
    for ask in (moved_cells, lambda *pair: premises(*pair, 2)):
        refused("add_remove", ask, *unit)


def test_an_epsilon_beyond_all_reason_is_that_of_a_million():
    scales = [noise_of("gaussian", features=21, epsilon=epsilon).scale for epsilon in (1e6, 1e50, 1.7e308)]
    assert scales == [scales[0]] * 3
    assert 0 < scales[0] < 0.01


def convolved(epsilon: float, cells: int, sigma: float) -> float:
    """From the law of the sum, one cell at a time."""
    _, one = gaussian_law(sigma)
    law = one
    for _ in range(cells - 1):
        law = np.convolve(law, one)
    s = np.arange(len(law)) - len(law) // 2
    return float(law @ np.maximum(0.0, -np.expm1(epsilon - (cells - 2 * s) / (2 * sigma**2))))


@pytest.mark.parametrize(
    ("cells", "sigma"), [(1, 0.4), (3, 0.5), (7, 0.9), (5, 1.7), (5, 2.49), (5, 2.5), (2, 4.0), (12, 7.3)]
)
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.0, 8.0])
def test_it_is_that_of_the_convolution(cells: int, sigma: float, epsilon: float) -> None:
    assert gaussian_delta(epsilon, cells, sigma) == pytest.approx(convolved(epsilon, cells, sigma), rel=1e-10)


@pytest.mark.parametrize(("cells", "sigma"), [(4, 2.0), pytest.param(44, 24.7, marks=pytest.mark.slow)])
def test_a_privacy_loss_distribution_is_a_little_above(cells: int, sigma: float) -> None:
    interval = 1e-4 / cells
    one = pld.from_discrete_gaussian_mechanism(sigma, value_discretization_interval=interval)
    whole = one.self_compose(cells)
    for epsilon in (0.5, 1.0, 2.0):
        theirs = whole.get_delta_for_epsilon(epsilon)
        assert gaussian_delta(epsilon, cells, sigma) <= theirs * (1 + 1e-9)
        assert gaussian_delta(epsilon - 1e-4, cells, sigma) >= theirs * (1 - 1e-6) - 1e-12


def test_the_sum_meets_the_bound_where_that_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    sigma = 4100 / 44**0.5
    values = [gaussian_delta(epsilon, 44, sigma) for epsilon in (0.001, 0.03, 0.1)]
    monkeypatch.setattr(module, "_MAX_SUM_TAU", 1e5)
    summed = [gaussian_delta(epsilon, 44, sigma) for epsilon in (0.001, 0.03, 0.1)]
    np.testing.assert_allclose(values, summed, rtol=5e-4)
    assert np.all(np.array(values) >= summed)


@settings(derandomize=True)
@given(st.integers(1, 200), st.floats(SMOOTH_SIGMA, 60), st.floats(0, 4))
def test_it_lies_between_the_continuous_law_and_the_bound_for_all_cells(cells: int, sigma: float, at: float) -> None:
    """Rounded continuous noise is more private than the continuous one by no more than the grid can tell."""
    mu = cells**0.5 / sigma
    epsilon = at * mu
    exact = gaussian_delta(epsilon, cells, sigma)
    assert exact <= discrete.delta_bound(epsilon, mu, 1, module.grid_scale(cells, sigma)) * (1 + 1e-9)
    step = 0.5 / sigma**2  # half the spacing of the losses
    assert float(gaussian.delta(epsilon + step, mu)) * (1 - 2e-2) <= exact
    assert gaussian_delta(epsilon + 0.1 * mu, cells, sigma) <= exact


@pytest.mark.parametrize("sigma", [0.3, 1.0, 2.0])
def test_the_deviation_of_coarse_noise(sigma: float) -> None:
    k, mass = gaussian_law(sigma, 80)
    assert module.deviation(sigma) == pytest.approx((k**2 @ mass) ** 0.5, rel=1e-12)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3, 2), Fraction(7)])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.9])
def test_laplace_it_is_that_of_the_joint_law(scale: Fraction, epsilon: float) -> None:
    k, here = laplace_law(float(scale))
    there = np.roll(here, 1)
    sides = [(here[side].sum(), there[side].sum()) for side in (k <= 0, k > 0)]  # where the loss is one
    pairs = [np.prod(cell, axis=0) for cell in product(sides, repeat=3)]
    expected = sum(max(0.0, one - np.exp(epsilon) * other) for one, other in pairs)
    assert laplace_delta(epsilon, 3, scale) == pytest.approx(expected, rel=1e-9, abs=1e-15)
    assert laplace_delta(epsilon, 1, scale) == pytest.approx(discrete.delta(epsilon, 1, scale), rel=1e-10, abs=1e-15)


def test_laplace_a_privacy_loss_distribution_agrees() -> None:
    """The loss of one cell is +1/t or -1/t, a multiple of its interval, so nothing is rounded."""
    one = pld.from_discrete_laplace_mechanism(1 / 44, value_discretization_interval=1 / 44)
    whole = one.self_compose(44)
    for epsilon in (2 / 44, 10 / 44, 30 / 44):
        assert laplace_delta(epsilon, 44, Fraction(44)) == pytest.approx(whole.get_delta_for_epsilon(epsilon), rel=1e-6)


@pytest.mark.parametrize(("cells", "scale"), [(1, Fraction(1, 3)), (44, Fraction(44)), (7, Fraction(7, 3))])
def test_laplace_nothing_is_left_from_the_largest_loss_on(cells: int, scale: Fraction) -> None:
    largest = float(cells / scale)
    assert laplace_delta(largest, cells, scale) == 0.0
    assert laplace_delta(2 * largest, cells, scale) == 0.0
    assert laplace_delta(0.99 * largest, cells, scale) > 0


BINS, FEATURES = 3, 4


def cells(bins: np.ndarray, wrong: np.ndarray) -> np.ndarray:
    """Corrects and errors (d, bins, 2) of rows with these bins (n, d)."""
    counts = np.zeros((FEATURES, BINS, 2), dtype=np.int64)
    for feature in range(FEATURES):
        np.add.at(counts[feature], (bins[:, feature], wrong.astype(int)), 1)
    return counts


@settings(derandomize=True)
@given(st.integers(0, 2**32 - 1))
def test_no_neighbour_moves_more(seed: int) -> None:
    random = np.random.default_rng(seed)
    bins = random.integers(BINS, size=(5, FEATURES))
    labels, predicted = random.integers(2, size=(2, 5))
    before = cells(bins, labels != predicted)
    removed = before - cells(bins[1:], (labels != predicted)[1:])
    flipped = labels.copy()
    flipped[0] = 1 - flipped[0]
    changed = (before - cells(bins, flipped != predicted))[..., 1]
    others = bins.copy()
    others[0] = random.integers(BINS, size=FEATURES)
    replaced = before - cells(others, flipped != predicted)
    for change, unit, adjacency in (
        (removed, Unit.ROW, Adjacency.ADD_REMOVE),
        (changed, Unit.LABEL, Adjacency.REPLACE),
        (replaced, Unit.ROW, Adjacency.REPLACE),
    ):
        assert np.abs(change).max() == 1
        assert np.abs(change).sum() == moved_cells(unit, adjacency) * FEATURES


def test_the_size_is_public_for_replaced_rows_only() -> None:
    removed, replaced = (" ".join(premise.text for premise in premises(*unit, 3)) for unit in UNITS[:2])
    assert "how many rows there are is public" in replaced
    assert "how many rows there are is not published" in removed
    assert "3 queries, agreed on before the first" in replaced
    assert "one query is answered" in premises(*UNITS[2], 1)[-1].text
