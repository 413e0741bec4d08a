"""The noise of a sum of y x: sizes as in closed form, the choice among kinds, what is charged, what is refused.

Quantiles of the noise's norm against simulation; the published Laplace bound fails, and more so with dimension.

X'X, X'y and y'y as one vector: its geometry, how far one replaced row moves it, and the noise that follows.

Randomised response of labels in a sum: its law and variance against closed forms, and its threshold.
"""

import itertools
import math
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from support.refusals import refused

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Assumption, Check, Unit
from federation.contract.randomness import NoiseBits
from federation.mechanisms.noise import gaussian
from federation.mechanisms.sums import row_sums
from federation.mechanisms.sums.row_sums import calibrate_row_sums as calibrate
from federation.numerics.rows import within_norm

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
    if dimension == 2:
        assert expected_norm("laplace", 2) == pytest.approx(2 * (math.sqrt(2) + math.asinh(1)), rel=1e-3)


@pytest.mark.parametrize(("epsilon", "last"), [(0.1, 12), (0.3, 14), (1.0, 17), (3.0, 20), (10.0, 28)])
def test_l2_gamma_is_expected_to_be_shorter_than_gaussian_noise_up_to_a_dimension(epsilon, last):
    shorter = [
        expected_norm("pure", dimension, epsilon=epsilon) < expected_norm("gaussian", dimension, epsilon=epsilon)
        for dimension in (last, last + 1)
    ]
    assert shorter == [True, False]


@given(st.integers(1, 60), st.floats(0.05, 8), st.sampled_from([0.0, 1e-9, 1e-3]), st.floats(0.2, 9))
@settings(derandomize=True)
def test_auto_takes_the_smallest_root_mean_square(dimension, epsilon, delta, l1_bound):
    public = {"dimension": dimension, "epsilon": epsilon, "delta": delta, "l1_bound": l1_bound}
    chosen = noise_of("auto", **public)
    others = [noise_of(kind, **public) for kind in ("pure", "laplace", *(["gaussian"] if delta else []))]
    assert chosen in others
    assert chosen.noise_norm() == min(other.noise_norm() for other in others)
    assert chosen.epsilon == epsilon
    assert chosen.delta in (0.0, delta)


@pytest.mark.parametrize(
    ("public", "name"),
    [
        ({"dimension": 16}, "sum_l2_gamma"),
        ({"dimension": 17}, "sum_discrete_gaussian"),  # by mean squares; by means it is 18
        ({"dimension": 17, "delta": 0.0}, "sum_l2_gamma"),
        ({"dimension": 17, "l1_bound": 1.0}, "sum_discrete_laplace"),
        ({"dimension": 1}, "sum_discrete_laplace"),
    ],
)
def test_auto_has_reasons_to_take_each(public, name):
    assert noise_of("auto", **public).name == name


def test_the_published_scale_gives_epsilon_times_the_l1_bound():
    published = noise_of("published_laplace", dimension=25)
    assert published.additive.parameters["scale"] == pytest.approx(2.0, rel=1e-3)
    assert (published.epsilon, published.claimed) == (5.0, 1.0)
    guarantee = published.guarantee()
    assert (guarantee.epsilon, guarantee.parameters["claimed_epsilon"]) == (5.0, 1.0)
    assert "published" in guarantee.mechanism
    short = noise_of("published_laplace", dimension=25, l1_bound=1.0)
    assert short.epsilon == 1.0
    assert short.additive == noise_of("laplace", dimension=25, l1_bound=1.0).additive
    # A larger bound than unit rows have changes nothing.
    assert noise_of("laplace", l1_bound=50.0) == noise_of("laplace")
    bounds = [noise_of(kind, l1_bound=1.2).parameters.get("l1_bound") for kind in ("laplace", "pure")]
    assert [noise_of("laplace").parameters["l1_bound"], *bounds] == [math.sqrt(6), 1.2, None]


@given(st.integers(1, 12), st.integers(1, 400), st.sampled_from(KINDS), st.integers(0, 2**32))
@settings(derandomize=True)
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
            refused("unit", noise.guarantee, *wrong)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "laplce"}, None),
        *(({"dimension": dimension}, "dimension") for dimension in (0, 2.5, -1)),
        *(({"epsilon": epsilon}, "epsilon") for epsilon in (0.0, math.inf)),
        *(({"delta": delta}, "delta") for delta in (1.0, math.nan)),
        ({"kind": "gaussian", "delta": 0.0}, r"delta.*0"),
        *(({"l1_bound": bound}, "l1_bound") for bound in (0.0, math.inf)),
        *(({"rows": rows}, "rows") for rows in (0, True)),
        *(({"contributors": contributors}, "contributors") for contributors in (-1, 2**40)),
        ({"rows": 10**6, "epsilon": 1e6}, None),
        ({"rows": 10**6, "epsilon": 1e3, "contributors": 10**4}, None),
        ({"epsilon": 1e-9}, None),
        ({"kind": "gaussian", "contributors": 2**30}, "grid"),
    ],
)
def test_impossible_parameters_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        noise_of(**change)


@pytest.mark.parametrize(
    ("total", "message"),
    [
        (np.zeros(5), "shape"),
        (np.full(6, math.nan), "finite"),
        (np.full(6, 42.0), None),
    ],  # which no such rows add up to
)
@pytest.mark.parametrize("contributors", [0, 3])
def test_impossible_releases_are_refused(total, message, contributors):
    with pytest.raises(InputError, match=message):
        noise_of(contributors=contributors).release(total, NoiseBits(1, "x"))
    for draws in (-1, 1.5):
        refused("draws", noise_of(contributors=contributors).release, np.zeros(6), NoiseBits(1, "x"), draws)


@pytest.mark.parametrize("contributors", [0, 3])
def test_a_sum_of_a_million_rows_of_norm_1_that_are_alike_is_released(contributors):
    noise = noise_of(rows=10**6, contributors=contributors)
    longest = np.eye(6)[2] * 1e6
    assert np.abs(noise.release(longest, NoiseBits(1, "test")) - longest).max() < 100


@pytest.mark.parametrize(("contributors", "fits"), [(0, True), (1, True), (2, False)])
def test_room_is_for_all_who_contribute(monkeypatch, contributors, fits):
    """Of whom one is there where each party has noise of its own."""
    known = {"kind": "gaussian", "dimension": 3, "rows": 50, "contributors": contributors}
    noise = noise_of(**known)
    monkeypatch.setattr(row_sums, "_MOST_STEPS", 1.5 * 50 * noise.longest / noise.additive.step)
    with nullcontext() if fits else pytest.raises(InputError):
        noise_of(**known)


def norms_of(noise, draws=20_000):
    released = noise.release(np.zeros(noise.additive.dimension), NoiseBits(4, "norms"), draws)
    return np.linalg.norm(released, axis=1)


@pytest.mark.parametrize("dimension", [1, 5, 20])
@pytest.mark.parametrize("kind", ["pure", "gaussian", "laplace"])
def test_quantiles_cover_as_often_as_they_say(kind, dimension):
    noise = calibrate(kind, dimension=dimension, epsilon=0.7, delta=1e-5, rows=10)
    norms = norms_of(noise)
    for probability in (0.5, 0.95):
        covered = np.mean(norms <= row_sums.noise_quantile(noise, probability))
        assert covered > probability - 0.015
        if kind != "laplace" or dimension == 1:
            assert covered < probability + 0.015


@pytest.mark.parametrize(("dimension", "failing"), [(2, 0.061), (10, 0.208), (22, 0.566), (50, 0.985)])
def test_the_published_norm_bound_of_laplace_noise_fails(dimension, failing):
    """Patrini et al. (2015, Theorem 10) at delta = .05: |b|_2 <= sigma log(d/delta)."""
    noise = calibrate("laplace", dimension=dimension, epsilon=1.0, rows=10)
    norms = norms_of(noise)
    published = float(noise.additive.parameters["scale"]) * np.log(dimension / 0.05)
    assert np.mean(norms > published) == pytest.approx(failing, abs=0.012)
    repaired = row_sums.noise_quantile(noise, 0.95)
    assert repaired == pytest.approx(published * np.sqrt(dimension), rel=1e-4)
    assert np.mean(norms > repaired) < 0.05


def test_quantiles_are_those_of_the_sum_of_shares():
    for kind in ("pure", "gaussian", "laplace"):
        whole, shared = (
            row_sums.noise_quantile(calibrate(kind, dimension=4, epsilon=1.0, delta=1e-5, rows=10, contributors=n), 0.9)
            for n in (0, 64)
        )
        assert whole <= shared <= whole * (1 + 1e-5)


@given(st.sampled_from(["pure", "gaussian", "laplace"]), st.integers(1, 300), st.floats(0.01, 1 - 1e-9))
@settings(derandomize=True)
def test_quantiles_grow_with_probability_and_noise(kind, dimension, probability):
    little, much = (
        calibrate(kind, dimension=dimension, epsilon=epsilon, delta=1e-6, rows=10) for epsilon in (2.0, 1.0)
    )
    assert row_sums.noise_quantile(little, probability) < row_sums.noise_quantile(much, probability)
    assert row_sums.noise_quantile(much, probability / 2) < row_sums.noise_quantile(much, probability)
    for outside in (0.0, 1.0, -1.0, math.nan):
        refused("probability", row_sums.noise_quantile, much, outside)


def test_regularisation_is_half_the_expected_squared_norm_and_never_less_than_the_least():
    assert [row_sums.regularisation(noise) for noise in (0.0, 1e-5, 0.5)] == [1e-4, 1e-4, 0.25]


UNIT = st.floats(-1, 1, allow_subnormal=False)
BOTH = [True, False]


def rows_and_labels(count, features=3):
    return st.tuples(arrays(float, (count, features), elements=UNIT), arrays(float, count, elements=UNIT))


def moved(statistic, numbers):
    """How far two neighbours are apart: numbers of any size make two rows, cut to norm 1, and two labels, clipped."""
    rows = within_norm(numbers[:-2].reshape(2, -1))
    labels = np.clip(numbers[-2:], -1, 1)
    here, there = (statistic.of(rows[i : i + 1], labels[i : i + 1]) for i in (0, 1))
    return float(np.linalg.norm(here - there))


@pytest.mark.parametrize("second", BOTH)
@pytest.mark.parametrize("features", [1, 2, pytest.param(5, marks=pytest.mark.slow)])
def test_no_search_moves_the_statistic_further_than_its_sensitivity_and_each_gets_there(features, second):
    statistic, random = row_sums.RowStatistic(features, second), np.random.default_rng(features)
    starts = random.normal(size=(4, 2 * features + 2))
    found = [
        -minimize(lambda numbers: -moved(statistic, numbers), start, method=method).fun
        for start in starts
        for method in ("BFGS", "Nelder-Mead")
    ]
    assert max(found) <= row_sums.SENSITIVITY * (1 + 1e-12)
    assert max(found) == pytest.approx(row_sums.SENSITIVITY, rel=1e-3)


@pytest.mark.parametrize(
    ("second", "numbers"),
    [
        *((second, [1.0, 0.0, -1.0, 0.0, 1.0, 1.0]) for second in BOTH),  # an opposite row
        *((second, [1.0, 0.0, 1.0, 0.0, 1.0, -1.0]) for second in BOTH),  # an opposite label
        # A label of nothing beside an orthogonal row: so no larger weight of y^2 comes for nothing.
        (True, [1.0, 0.0, 0.0, 1.0, 1.0, 0.0]),
    ],
)
def test_neighbours_attain_the_sensitivity(second, numbers):
    assert moved(row_sums.RowStatistic(2, second), np.array(numbers)) == pytest.approx(row_sums.SENSITIVITY, rel=1e-12)


@given(rows_and_labels(2))
def test_no_neighbours_are_further_apart_and_distances_are_those_of_matrices_and_sums(drawn):
    rows, labels = drawn
    numbers = np.append(rows.ravel(), labels)
    assert moved(row_sums.RowStatistic(3, False), numbers) <= moved(row_sums.RowStatistic(3), numbers) * (1 + 1e-12)
    assert moved(row_sums.RowStatistic(3), numbers) <= row_sums.SENSITIVITY * (1 + 1e-12)
    expected = np.square(rows.T @ rows).sum() + 2 * np.square(labels @ rows).sum() + 4 * (labels @ labels) ** 2
    assert np.square(row_sums.RowStatistic(3).of(rows, labels)).sum() == pytest.approx(expected, abs=1e-12)


@given(rows_and_labels(4), rows_and_labels(3))
def test_vectors_add_up_and_give_all_moments_back(some, others):
    rows, labels = (np.concatenate(parts) for parts in zip(some, others, strict=True))
    for second in BOTH:
        statistic = row_sums.RowStatistic(3, second)
        found = statistic.moments(statistic.of(*some) + statistic.of(*others))
        np.testing.assert_allclose(found.moment, labels @ rows, atol=1e-12)
        assert found.squares == pytest.approx(labels @ labels, abs=1e-12)
        if second:
            np.testing.assert_allclose(found.gram, rows.T @ rows, atol=1e-12)
        else:
            assert found.gram is None


@pytest.mark.parametrize("second", BOTH)
@given(drawn=rows_and_labels(1))
def test_one_row_is_no_longer_than_is_said(second, drawn):
    statistic = row_sums.RowStatistic(3, second)
    assert np.linalg.norm(statistic.of(within_norm(drawn[0]), drawn[1])) <= statistic.longest * (1 + 1e-12)
    longest = statistic.of(np.eye(1, 3), np.ones(1))
    assert np.linalg.norm(longest) == pytest.approx(statistic.longest, rel=1e-12)


@pytest.mark.parametrize("features", [1, 2, 5])
def test_variances_of_all_moments_are_those_of_independent_noise_in_the_vector(features):
    statistic = row_sums.RowStatistic(features)
    found = statistic.moments(np.eye(statistic.dimension))  # one unit of noise in each number by itself
    assert np.square(found.gram).sum(axis=0).mean() == pytest.approx(statistic.gram_variance(1.0))
    np.testing.assert_allclose(np.square(found.moment).sum(axis=0), statistic.moment_variance(1.0))
    assert np.square(found.squares).sum() == pytest.approx(statistic.squares_variance(1.0))
    assert row_sums.RowStatistic(features, second=False).gram_variance(3.0) == math.inf


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_x_y_gets_the_noise_that_it_needs_by_itself(epsilon):
    known = {"epsilon": epsilon, "delta": 1e-6, "rows": 1000}
    alone = calibrate("gaussian", dimension=9, **known).variance()  # sensitivity 2
    assert alone == pytest.approx((2 / gaussian.mu(epsilon, 1e-6)) ** 2, rel=2e-3)
    for second in BOTH:
        statistic = row_sums.RowStatistic(9, second)
        assert statistic.moment_variance(statistic.noise(**known).variance()) == pytest.approx(alone, rel=2e-3)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"delta": 0.0}, "delta"),
        ({"rows": 0}, "rows"),
        ({"contributors": 2**31}, "contributors"),
        ({"rows": 10**6, "epsilon": 1e3, "contributors": 10**4}, None),
    ],
)
def test_every_number_is_charged_for_its_rounding_and_what_no_noise_serves_is_refused(changed, words):
    known = {"epsilon": 1.0, "delta": 1e-6, "rows": 1000}
    additive = row_sums.RowStatistic(9).noise(**known).additive
    assert additive.dimension == 55
    assert additive.charged >= math.sqrt(8) + math.sqrt(55) * additive.step
    refused(words, row_sums.RowStatistic(2).noise, **known | changed)
    with pytest.raises(InputError, match=r"3.*2\.65"):  # a sum of rows that were not cut
        row_sums.RowStatistic(2).noise(**known | {"rows": 3}).release(np.array([8.0, 0.0, 0.0, 0.0, 0.0, 0.0]), None)


@given(st.floats(1e-6, 60.0))
def test_labels_are_unbiased_with_the_least_variance(epsilon):
    found = row_sums.calibrate_summed_response(epsilon)
    assert found.reach == pytest.approx(1 / math.tanh(epsilon / 2), rel=1e-7)
    assert found.label_variance == pytest.approx(1 / math.sinh(epsilon / 2) ** 2, rel=1e-6, abs=1e-18)


@pytest.mark.parametrize("at_once", [701, 2**22])
def test_sums_have_the_mean_and_the_covariance_that_is_said(monkeypatch, at_once):
    monkeypatch.setattr(row_sums, "_AT_ONCE", at_once)
    rows, signs, draws = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, -1.0]]), np.array([1.0, -1.0, -1.0]), 20_000
    found = row_sums.calibrate_summed_response(1.5)
    sums = found.release(rows, signs, NoiseBits(1, "sums"), draws)
    scale = found.label_variance * rows.T @ rows
    assert sums.shape == (draws, 2)
    assert np.abs(sums.mean(axis=0) - signs @ rows).max() < 5 * math.sqrt(scale.max() / draws)
    np.testing.assert_allclose(np.cov(sums.T), scale, atol=0.06 * scale.max())
    np.testing.assert_array_equal(sums, np.rint(sums * 2.0**25) / 2.0**25)


def test_one_label_of_one_row_is_flipped_as_often_as_epsilon_says_and_labels_only_are_protected():
    draws, epsilon = 100_000, 0.7
    found = row_sums.calibrate_summed_response(epsilon)
    sums = found.release(np.ones((1, 1)), np.array([-1.0]), NoiseBits(2, "flips"), draws)[:, 0]
    np.testing.assert_allclose(np.abs(sums), found.reach, rtol=1e-6)
    flipped = (sums > 0).mean()
    assert flipped == pytest.approx(1 / (1 + math.exp(epsilon)), abs=5 * math.sqrt(0.25 / draws))
    promised = found.labels.guarantee(Unit.LABEL, Adjacency.REPLACE, ())
    assert (promised.epsilon, promised.delta, promised.mechanism) == (epsilon, 0.0, "label_one_bit")
    refused("unit", found.labels.guarantee, Unit.ROW, Adjacency.REPLACE, ())
    refused("epsilon", row_sums.calibrate_summed_response, 1e-9)
    refused(r"labels.*label_range", found.release, np.ones((1, 1)), np.array([2.0]), NoiseBits(1, "x"))


@pytest.mark.parametrize("dimension", [3, 31, 110])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_noise_on_the_sum_is_less_from_so_many_rows_on(dimension, epsilon):
    sums = calibrate("auto", dimension=dimension, epsilon=epsilon, delta=1e-6, rows=1000)
    response = row_sums.calibrate_summed_response(epsilon)
    least = response.rows_for(sums)
    assert (least - 1) * response.label_variance < dimension * sums.variance() <= least * response.label_variance
    assert response.rows_for(sums, weight=1e6) == 1  # where errors of responses count for nothing but harm
    # Labels that are hardly ever flipped are better than any noise.
    little = calibrate("pure", dimension=3, epsilon=100.0, rows=10)
    assert 10**15 < row_sums.calibrate_summed_response(1000.0).rows_for(little) < row_sums.ANY


@pytest.mark.parametrize("count", [1, 3, 10])
def test_no_sum_of_responses_is_longer_than_its_reach_and_long_ones_are_rare(count):
    """All answers of few rows, by their probabilities, whatever the labels."""
    mechanism = row_sums.calibrate_summed_response(1.5)
    rows = np.random.default_rng(count).normal(size=(count, 3))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=count)))
    sums = mechanism.reach * signs @ rows
    kept = (1 + 1 / mechanism.reach) / 2
    chances = np.where(signs == 1, kept, 1 - kept).prod(axis=1)
    for beyond in (1e-6, 0.5):
        entry, norm = mechanism.reaches(np.array([float(count)]), 3, beyond)
        out = (np.abs(sums) > entry + 1e-9).any(axis=1) | (np.linalg.norm(sums, axis=1) > norm + 1e-9)
        assert chances[out].sum() <= beyond


def test_sums_of_many_responses_stay_within_a_reach_that_is_less_than_the_longest_sum():
    mechanism, count = row_sums.calibrate_summed_response(1.0), 2000
    rows = np.tile([1.0, 0.0], (count, 1))  # of all rows the sums of equal ones are longest
    sums = mechanism.release(rows, np.ones(count), NoiseBits(1, "reaches"), 300)
    entry, norm = mechanism.reaches(np.array([float(count)]), 2, 0.1)
    assert (np.linalg.norm(sums, axis=1) > norm).mean() <= 0.05
    assert count < norm < 0.65 * count * mechanism.reach
    assert entry < 0.65 * count * mechanism.reach
