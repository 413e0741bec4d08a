"""Noise for all queries of an exchange: scales, what auto takes, what parts of the exchange promise, bad input.

The exact delta of several noisy integers against convolutions, joint laws and privacy loss distributions.

What a row or a label moves in the cells of binned errors, on random rows and hypotheses.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st
from support.exact_losses import delta_one_coordinate

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Check, Guarantee, Unit
from federation.contract.randomness import NoiseBits
from federation.mechanisms.accounting.composition import compose
from federation.mechanisms.counts.exact_laws import discrete_gaussian_delta as exact_delta
from federation.mechanisms.marginals import noise as moved
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
from federation.mechanisms.noise import discrete as discrete_laplace
from federation.mechanisms.noise import gaussian
from federation.mechanisms.noise.discrete import delta_bound

UNITS = ((Unit.ROW, Adjacency.ADD_REMOVE), (Unit.ROW, Adjacency.REPLACE), (Unit.LABEL, Adjacency.REPLACE))
BASE = {
    "features": 22,
    "queries": 2,
    "epsilon": 1.0,
    "delta": 1e-5,
    "unit": Unit.ROW,
    "adjacency": Adjacency.ADD_REMOVE,
}


def noise_of(kind: str, **changed: object) -> MarginalNoise:
    return calibrate(kind, **(BASE | changed))


@pytest.mark.parametrize(("queries", "sigma", "laplace"), [(2, 24.75, 62.22), (3, 30.31, 93.34)])
def test_many_features_and_queries_take_gaussian_noise(queries: int, sigma: float, laplace: float) -> None:
    chosen = noise_of("auto", queries=queries)
    assert chosen.name == "marginal_gaussian"
    assert chosen.deviation == pytest.approx(sigma, abs=0.01)
    assert noise_of("pure", queries=queries).deviation == pytest.approx(laplace, abs=0.01)


def test_few_take_pure_noise() -> None:
    chosen = noise_of("auto", features=2)
    assert (chosen.name, chosen.delta, chosen.scale) == ("marginal_laplace", 0.0, 4)
    assert noise_of("gaussian", features=2).deviation == pytest.approx(7.46, abs=0.01)
    assert noise_of("auto", delta=0.0) == noise_of("pure")


@pytest.mark.parametrize(("unit", "adjacency"), UNITS)
def test_the_pure_scale_is_the_summed_l1_sensitivity_over_epsilon(unit: Unit, adjacency: Adjacency) -> None:
    noise = noise_of("pure", queries=3, epsilon=0.3, unit=unit, adjacency=adjacency)
    summed = 3 * 22 * (2 if adjacency is Adjacency.REPLACE and unit is Unit.ROW else 1)
    assert 0 <= noise.scale - summed / Fraction(0.3) < Fraction(1, 2**10)
    assert noise.delta_at(0.3) == 0.0
    made = noise.guarantee().parameters
    assert made["l1_sensitivity"] == summed / 3
    assert made["l2_sensitivity"] == (summed / 3) ** 0.5
    assert "grid_scale" not in made  # by which Gaussian noise would be composed


def test_replaced_rows_need_root_two_more_gaussian_noise_and_twice_the_pure() -> None:
    for kind, factor in (("gaussian", 2**0.5), ("pure", 2.0)):
        added, replaced = (
            noise_of(kind, adjacency=change).deviation for change in (Adjacency.ADD_REMOVE, Adjacency.REPLACE)
        )
        assert replaced / added == pytest.approx(factor, rel=1e-3)


@settings(derandomize=True)
@given(st.integers(1, 60), st.integers(1, 5), st.floats(0.01, 8), st.floats(1e-9, 1e-2), st.sampled_from(UNITS))
def test_the_claim_holds_and_less_noise_would_break_it(features, queries, epsilon, delta, unit) -> None:
    protected = {"unit": unit[0], "adjacency": unit[1]}
    noise = noise_of("gaussian", features=features, queries=queries, epsilon=epsilon, delta=delta, **protected)
    assert noise.delta_at(epsilon) <= delta
    thinner = noise.__class__(features, queries, *unit, epsilon, delta, noise.scale * Fraction(999, 1000))
    assert thinner.delta_at(epsilon) > 0.99 * delta
    auto = noise_of("auto", features=features, queries=queries, epsilon=epsilon, delta=delta, **protected)
    pure = noise_of("pure", features=features, queries=queries, epsilon=epsilon, delta=delta, **protected)
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


def test_composition_is_sound_where_the_grid_is_coarse() -> None:
    """The total of single answers is never below the exact one, and not far above for ten steps or more."""
    for features, queries, epsilon, most in (
        (8, 2, 1.0, 1.003),
        (4, 2, 1.0, 1.01),
        (4, 4, 5.0, 1.12),
        (22, 2, 20.0, 1.07),
    ):
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


def test_counts_and_sizes_may_be_as_large_as_is_said() -> None:
    largest = np.array([2**52, 0])
    assert np.abs(noise_of("pure").release(largest, NoiseBits(1, "largest")) - largest).max() < 10**6
    assert noise_of("pure", features=2**20, queries=1).cells == 2**20


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"features": 0}, r"features.*1.*0"),
        ({"queries": 2.0}, "queries"),
        ({"queries": True}, "queries"),
        ({"features": 2**20}, r"2.*20"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"epsilon": 1e-12}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"delta": 0.0}, r"delta.*0"),
        ({"unit": Unit.PARTY}, "add_remove"),
    ],
)
def test_bad_numbers_are_refused(changed: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        noise_of("gaussian", **changed)


def test_unknown_noise_and_further_queries_are_refused() -> None:
    with pytest.raises(InputError, match="gaussian"):
        noise_of("gausian")
    for queries in (0, 3, True, 1.0):
        with pytest.raises(InputError, match=r"1.*2"):
            noise_of("pure").of(queries)


def test_an_epsilon_beyond_all_reason_is_that_of_a_million():
    wanted = {"features": 21, "queries": 2, "delta": 1e-5, "unit": Unit.ROW, "adjacency": Adjacency.ADD_REMOVE}
    scales = [calibrate("gaussian", epsilon=epsilon, **wanted).scale for epsilon in (1e6, 1e50, 1.7e308)]
    assert scales == [scales[0]] * 3
    assert 0 < scales[0] < 0.01


def convolved(epsilon: float, cells: int, sigma: float) -> float:
    """From the law of the sum, one cell at a time."""
    k = np.arange(-int(40 * sigma) - 5, int(40 * sigma) + 6)
    one = np.exp(-0.5 * np.square(k / sigma))
    law = one = one / one.sum()
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


def test_two_integers_and_one() -> None:
    assert gaussian_delta(1.0, 2, 3.25) == pytest.approx(exact_delta(1.0, 3.25), rel=1e-10)
    assert gaussian_delta(0.2, 1, 6.0) == pytest.approx(delta_one_coordinate(0.2, 1, 6), rel=1e-10)


@pytest.mark.parametrize(("cells", "sigma"), [(4, 2.0), (44, 24.7)])
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
    monkeypatch.setattr(moved, "_MAX_SUM_TAU", 1e5)
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
    assert exact <= delta_bound(epsilon, mu, 1, moved.grid_scale(cells, sigma)) * (1 + 1e-9)
    step = 0.5 / sigma**2  # half the spacing of the losses
    assert float(gaussian.delta(epsilon + step, mu)) * (1 - 2e-2) <= exact
    assert gaussian_delta(epsilon + 0.1 * mu, cells, sigma) <= exact


@pytest.mark.parametrize("sigma", [0.3, 1.0, 2.0])
def test_the_deviation_of_coarse_noise(sigma: float) -> None:
    k = np.arange(-80, 81)
    mass = np.exp(-0.5 * np.square(k / sigma))
    assert moved.deviation(sigma) == pytest.approx((k**2 @ mass / mass.sum()) ** 0.5, rel=1e-12)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3, 2), Fraction(7)])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.9])
def test_laplace_it_is_that_of_the_joint_law(scale: Fraction, epsilon: float) -> None:
    reach = int(40 * scale)
    k = np.arange(-reach, reach + 1)
    q = np.exp(-1 / float(scale))
    here, there = ((1 - q) / (1 + q) * q ** np.abs(k - moved) for moved in (0, 1))
    sides = [
        (here[k <= 0].sum(), there[k <= 0].sum()),
        (here[k > 0].sum(), there[k > 0].sum()),
    ]  # where the loss is one
    expected = sum(
        max(0.0, np.prod([p for p, _ in cell]) - np.exp(epsilon) * np.prod([p for _, p in cell]))
        for cell in product(sides, repeat=3)
    )
    assert laplace_delta(epsilon, 3, scale) == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_laplace_one_integer() -> None:
    assert laplace_delta(0.1, 1, Fraction(4)) == pytest.approx(discrete_laplace.delta(0.1, 1, 4), rel=1e-10)


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


@pytest.mark.parametrize(
    ("unit", "adjacency"), [(Unit.LABEL, Adjacency.ADD_REMOVE), (Unit.PARTY, Adjacency.REPLACE), ("row", "swap")]
)
def test_other_units_are_refused(unit: Unit, adjacency: Adjacency) -> None:
    for ask in (moved_cells, lambda *pair: premises(*pair, 2)):
        with pytest.raises(InputError, match="add_remove"):
            ask(unit, adjacency)


def test_the_size_is_public_for_replaced_rows_only() -> None:
    texts = {
        adjacency: " ".join(premise.text for premise in premises(Unit.ROW, adjacency, 3)) for adjacency in Adjacency
    }
    assert "how many rows there are is public" in texts[Adjacency.REPLACE]
    assert "how many rows there are is not published" in texts[Adjacency.ADD_REMOVE]
    assert "3 queries, agreed on before the first" in texts[Adjacency.REPLACE]
    assert "one query is answered" in premises(Unit.LABEL, Adjacency.REPLACE, 1)[-1].text


def test_a_hundred_queries_about_ten_thousand_features_are_within_the_limit() -> None:
    assert moved_cells(Unit.ROW, Adjacency.ADD_REMOVE) * 100 * 10_000 <= MAX_CELLS
