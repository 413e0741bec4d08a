"""The noise of a sum of y x: sizes as in closed form, the choice among kinds, what is charged, what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Assumption, Check, Unit
from federation.contract.randomness import NoiseBits
from federation.mechanisms.sums import row_sums as calibrated_moments
from federation.mechanisms.sums.row_sums import calibrate_row_sums as calibrate

KINDS = ("laplace", "pure", "gaussian", "published_laplace")


def noise_of(kind="pure", **others):
    return calibrate(kind, **({"dimension": 6, "epsilon": 1.0, "delta": 1e-6, "rows": 100} | others))


def expected_norm(kind, dimension, **others):
    """E|b| times epsilon."""
    return noise_of(kind, dimension=dimension, **others).additive.expected_noise_norm()


@pytest.mark.parametrize("dimension", [2, 10, 400])
def test_expected_norms_are_those_of_the_closed_forms(dimension):
    assert expected_norm("pure", dimension) == pytest.approx(2 * dimension, rel=1e-3)
    chi = math.exp(math.lgamma((dimension + 1) / 2) - math.lgamma(dimension / 2)) * math.sqrt(2 / dimension)
    assert expected_norm("gaussian", dimension) == pytest.approx(8.450 * chi * math.sqrt(dimension), rel=1e-3)
    root_mean_square = noise_of("laplace", dimension=dimension).noise_norm()
    assert root_mean_square == pytest.approx(2 * math.sqrt(2) * dimension, rel=1e-3)
    assert expected_norm("laplace", dimension) == pytest.approx(root_mean_square, rel=0.7 / dimension)


def test_laplace_noise_in_two_dimensions_has_an_expected_norm_of_4_60():
    """E|b| of two independent Laplace variables of scale 1, by the integral in polar coordinates."""
    angles = (np.arange(20_000) + 0.5) * math.pi / 40_000
    closed = np.mean(2 * math.pi / 2 / (np.cos(angles) + np.sin(angles)) ** 3)
    assert closed * 2 * math.sqrt(2) == pytest.approx(4.60, abs=0.01)
    assert expected_norm("laplace", 2) == pytest.approx(closed * 2 * math.sqrt(2), rel=1e-3)


@pytest.mark.parametrize(("epsilon", "last"), [(0.1, 12), (0.3, 14), (1.0, 17), (3.0, 20), (10.0, 28)])
def test_l2_gamma_is_expected_to_be_shorter_than_gaussian_noise_up_to_a_dimension(epsilon, last):
    shorter = [
        expected_norm("pure", dimension, epsilon=epsilon) < expected_norm("gaussian", dimension, epsilon=epsilon)
        for dimension in (last, last + 1)
    ]
    assert shorter == [True, False]


@given(st.integers(1, 60), st.floats(0.05, 8), st.sampled_from([0.0, 1e-9, 1e-3]), st.floats(0.2, 9))
@settings(derandomize=True, deadline=None, max_examples=60)
def test_auto_takes_the_smallest_root_mean_square(dimension, epsilon, delta, l1_bound):
    public = {"dimension": dimension, "epsilon": epsilon, "delta": delta, "l1_bound": l1_bound}
    chosen = noise_of("auto", **public)
    others = [noise_of(kind, **public) for kind in ("pure", "laplace", *(["gaussian"] if delta else []))]
    assert chosen in others
    assert chosen.noise_norm() == min(other.noise_norm() for other in others)
    assert chosen.epsilon == epsilon
    assert chosen.delta in (0.0, delta)


def test_auto_has_reasons_to_take_each():
    assert noise_of("auto", dimension=16).name == "sum_l2_gamma"
    assert noise_of("auto", dimension=17).name == "sum_discrete_gaussian"  # by mean squares; by means it is 18
    assert noise_of("auto", dimension=17, delta=0.0).name == "sum_l2_gamma"
    assert noise_of("auto", dimension=17, l1_bound=1.0).name == "sum_discrete_laplace"
    assert noise_of("auto", dimension=1).name == "sum_discrete_laplace"


def test_the_published_scale_gives_epsilon_times_the_l1_bound():
    published = noise_of("published_laplace", dimension=25)
    assert published.additive.parameters["scale"] == pytest.approx(2.0, rel=1e-3)
    assert (published.epsilon, published.claimed) == (5.0, 1.0)
    guarantee = published.guarantee()
    assert guarantee.epsilon == 5.0
    assert guarantee.parameters["claimed_epsilon"] == 1.0
    assert "published" in guarantee.mechanism
    short = noise_of("published_laplace", dimension=25, l1_bound=1.0)
    assert short.epsilon == 1.0
    assert short.additive == noise_of("laplace", dimension=25, l1_bound=1.0).additive


def test_a_larger_l1_bound_than_unit_rows_have_changes_nothing():
    assert noise_of("laplace", l1_bound=50.0) == noise_of("laplace")
    assert noise_of("laplace", l1_bound=50.0).parameters["l1_bound"] == math.sqrt(6)
    assert noise_of("laplace", l1_bound=1.2).parameters["l1_bound"] == 1.2
    assert "l1_bound" not in noise_of("pure", l1_bound=1.2).parameters


@given(st.integers(1, 12), st.integers(1, 400), st.sampled_from(KINDS), st.integers(0, 2**32))
@settings(derandomize=True, deadline=None, max_examples=80)
def test_the_integers_move_no_further_than_charged(dimension, rows, kind, seed):
    """Rows cut in double precision, summed in double precision, one of them replaced by its opposite."""
    random = np.random.default_rng(seed)
    noise = noise_of(kind, dimension=dimension, rows=rows)
    held = random.standard_normal((rows, dimension)) * 10 ** random.uniform(-3, 3)
    held[0] = 1.0
    held /= np.maximum(np.linalg.norm(held, axis=1), 1.0)[:, None]
    signs = np.where(random.random(rows) < 0.5, 1.0, -1.0)
    flipped = np.where(np.arange(rows) == 0, -signs, signs)
    moved = noise.additive.rounded(signs @ held) - noise.additive.rounded(flipped @ held)
    order = 1 if "laplace" in noise.additive.name else 2
    assert np.linalg.norm(moved, order) * noise.additive.step <= noise.additive.parameters["charged_sensitivity"]


@pytest.mark.parametrize("kind", KINDS)
def test_summation_in_double_precision_is_charged(kind):
    few, many = (noise_of(kind, rows=rows).additive.sensitivity for rows in (1, 10**6))
    assert 1 + 1e12 * 2**-53 < many / few < 1 + 1.1e12 * 2**-53
    exact = 2 * math.sqrt(6) if "laplace" in kind else 2  # rows may be longer than 1 by the rounding of their norm
    assert 1 + 1e-9 <= few / exact < 1 + 1.01e-9


@pytest.mark.parametrize("contributors", [0, 1, 5])
@pytest.mark.parametrize("kind", KINDS)
def test_releases_lie_on_the_grid_and_repeat_with_the_key(kind, contributors):
    noise = noise_of(kind, contributors=contributors)
    total = np.linspace(-3, 3, 6)
    first, again = (noise.release(total, NoiseBits(5, "release"), 40) for _ in range(2))
    assert first.shape == (40, 6)
    assert np.array_equal(first, again)
    assert np.array_equal(first / noise.additive.step, np.rint(first / noise.additive.step))
    assert first.std(axis=0).min() > 0


def test_shares_are_smaller_than_the_whole_and_declare_what_they_rest_on():
    for kind in KINDS:
        whole, shared = noise_of(kind), noise_of(kind, contributors=64)
        assert shared.epsilon == whole.epsilon
        assert shared.delta_at(0.5) == whole.delta_at(0.5)
        assert whole.variance() <= shared.variance() < whole.variance() * (1 + 1e-5)
        deviations = [noise.release(np.zeros(6), NoiseBits(6, kind), 2000).std() for noise in (whole, shared)]
        assert deviations[1] == pytest.approx(deviations[0] / 8, rel=0.5)
        declared = [a.text for a in shared.guarantee().assumptions if a.check is Check.DECLARED]
        assert any("at least 64 parties" in text for text in declared)
        assert any("reveals the sum" in text for text in declared)
        assert not any("parties" in a.text for a in whole.guarantee().assumptions)
    many = noise_of("pure", contributors=2**20)  # the rounding of so many shares adds up
    assert many.variance() > many.additive.variance() * (1 + 1e-5)


def test_the_guarantee_says_what_is_protected():
    why = Assumption("rows are cut to norm 1", Check.ENFORCED)
    for kind in KINDS:
        noise = noise_of(kind)
        for unit in (Unit.LABEL, Unit.ROW):
            guarantee = noise.guarantee(unit, Adjacency.REPLACE, (why,))
            assert (guarantee.unit, guarantee.assumptions[0]) == (unit, why)
            assert (guarantee.epsilon, guarantee.delta) == (noise.epsilon, noise.delta)
            assert guarantee.parameters["rows"] == 100
        assert (guarantee.gaussian_mu is not None) == (kind == "gaussian")
        for wrong in ((Unit.PARTY, Adjacency.REPLACE), (Unit.LABEL, Adjacency.ADD_REMOVE)):
            with pytest.raises(InputError, match="unit must be label or row"):
                noise.guarantee(*wrong)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "laplce"}, "did you mean"),
        ({"dimension": 0}, "dimension must be"),
        ({"dimension": 2.5}, "dimension must be"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"epsilon": math.inf}, "epsilon must be"),
        ({"delta": 1.0}, "delta must lie"),
        ({"delta": math.nan}, "delta must lie"),
        ({"kind": "gaussian", "delta": 0.0}, "delta must be above 0"),
        ({"l1_bound": 0.0}, "l1_bound must be"),
        ({"l1_bound": math.inf}, "l1_bound must be"),
        ({"dimension": -1}, "dimension must be"),
        ({"rows": 0}, "rows must be"),
        ({"rows": True}, "rows must be"),
        ({"contributors": -1}, "contributors must be"),
        ({"contributors": 2**40}, "contributors must be at most"),
        ({"rows": 10**6, "epsilon": 1e6}, "does not fit the grid"),
        ({"rows": 10**6, "epsilon": 1e3, "contributors": 10**4}, "does not fit the grid"),
        ({"epsilon": 1e-9}, "does not fit the grid"),
        ({"kind": "gaussian", "contributors": 2**30}, "grid is too coarse"),
    ],
)
def test_impossible_parameters_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        noise_of(**change)


@pytest.mark.parametrize("contributors", [0, 3])
def test_a_sum_of_a_million_rows_of_norm_1_that_are_alike_is_released(contributors):
    noise = noise_of(rows=10**6, contributors=contributors)
    longest = np.eye(6)[2] * 1e6
    assert np.abs(noise.release(longest, NoiseBits(1, "test")) - longest).max() < 100


@pytest.mark.parametrize("draws", [-1, 1.5])
@pytest.mark.parametrize("contributors", [0, 3])
def test_impossible_numbers_of_draws_are_refused(draws, contributors):
    with pytest.raises(InputError, match="draws must be an integer"):
        noise_of(contributors=contributors).release(np.zeros(6), NoiseBits(1, "test"), draws)


@pytest.mark.parametrize(
    ("total", "message"),
    [
        (np.zeros(5), "shape"),
        (np.full(6, math.nan), "finite"),
        (np.full(6, 42.0), "cut the rows"),
    ],
)
@pytest.mark.parametrize("contributors", [0, 3])
def test_sums_that_such_rows_do_not_have_are_refused(total, message, contributors):
    with pytest.raises(InputError, match=message):
        noise_of(contributors=contributors).release(total, NoiseBits(1, "x"))


@pytest.mark.parametrize(("contributors", "fits"), [(0, True), (1, True), (2, False)])
def test_room_is_for_all_who_contribute(monkeypatch: pytest.MonkeyPatch, contributors: int, fits: bool) -> None:
    """Of whom one is there where each party has noise of its own."""
    known = {"dimension": 3, "rows": 50, "epsilon": 1.0, "delta": 1e-6}
    noise = calibrate("gaussian", **known, contributors=contributors)
    monkeypatch.setattr(calibrated_moments, "_MOST_STEPS", 1.5 * 50 * noise.longest / noise.additive.step)
    if fits:
        calibrate("gaussian", **known, contributors=contributors)
        return
    with pytest.raises(InputError, match="does not fit the grid"):
        calibrate("gaussian", **known, contributors=contributors)
