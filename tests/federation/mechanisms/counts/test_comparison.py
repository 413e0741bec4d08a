"""All mechanisms side by side.

Expected distortion: exact against sampled, and the figures of the literature's comparison.

Lemma 4, its better form and its publishable form: known figures, their order, and that they hold.
"""

import math
import re
from typing import Any

import numpy as np
import pytest

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts import comparison
from federation.mechanisms.counts.calibration import calibrate
from federation.mechanisms.counts.comparison import (
    affordable,
    compare,
    distortion,
    published_dirichlet,
    recommended,
    sampled,
)
from federation.numerics.simplex import project

SKEWED = np.array([50, 50, 50, 50, 800])


def by_noise(*arguments: Any, **others: Any) -> dict[str, Any]:
    return {row.noise: row for row in compare(*arguments, **others)}


def test_every_kind_is_there_ordered_by_distortion() -> None:
    rows = by_noise(SKEWED, 0.05, 0.05)
    assert rows.keys() == {
        "gaussian", "laplace", "pure", "independent_laplace", "published_laplace", "published_gaussian",
        "laplace_prior", "dirichlet_floor", "dirichlet_shifted",
    }  # fmt: skip
    assert next(iter(rows)) == "gaussian"
    means = [row.distortion.mean for row in rows.values() if row.distortion]
    assert len(means) == 9
    assert means == sorted(means)
    assert all(row.private and row.delta is not None and row.delta <= 0.05 for row in rows.values())
    assert rows["dirichlet_floor"].parameters["floor"] == 50
    assert rows["dirichlet_shifted"].parameters["pseudo_count"] == 500
    assert "only for bags whose classes all hold 50 records or more" in rows["dirichlet_floor"].note


def test_impossible_mechanisms_come_last_and_say_why() -> None:
    rows = by_noise(np.array([5, 95]), 0.05, 0.05, pseudo_count=3)
    assert set([*rows][-2:]) == {"dirichlet_floor", "dirichlet_shifted"}
    assert "floor must be at least 7" in rows["dirichlet_floor"].note
    assert re.search(r"pseudo_count.*7", rows["dirichlet_shifted"].note)
    below = by_noise(np.array([50, 50, 100]), 0.05, 0.05, floor=60)["dirichlet_floor"]
    assert below.distortion is None
    assert "the smallest count, 50, is below the floor 60" in below.note
    assert "delta must be above 0" in by_noise(np.array([5, 6]), 1.0, 0.0)["gaussian"].note


@pytest.mark.slow
def test_a_classic_gaussian_beyond_its_theorem_says_so() -> None:
    counts = np.array([50, 60])
    row = by_noise(counts, 20.0, 1e-6)["published_gaussian"]
    assert row.delta > 1e-6
    assert "too small for the wanted delta" in row.note
    rows = by_noise(counts, 2.0, 1e-6)
    assert [rows[noise].note for noise in ("gaussian", "laplace", "pure")] == ["", "", ""]  # calibrated to the delta


@pytest.mark.slow
def test_the_published_dirichlet_is_measured_and_not_called_private() -> None:
    row = published_dirichlet(SKEWED, 0.05, 0.05)
    assert not row.private
    assert "NOT differentially private" in row.note
    assert row.delta == pytest.approx(0.0769, abs=8e-4)
    assert row.distortion is not None
    assert row.distortion.mean == pytest.approx(0.308, abs=0.005)


@pytest.mark.parametrize("counts", [(20, 20, 960), (0, 100, 900), (1, 1, 8)])
def test_where_the_published_dirichlet_fails_it_says_that_this_tells(counts: tuple[int, ...]) -> None:
    row = published_dirichlet(np.array(counts), 0.05, 0.05)
    assert (row.delta, row.distortion, row.private) == (None, None, False)
    assert "no sigma serves these counts" in row.note
    assert "delta" in published_dirichlet(SKEWED, 1.0, 0.0).note
    # The neighbour has one record of the smallest class counted in the largest.
    assert comparison._neighbour(np.array([5, 2, 9])).tolist() == [5, 1, 10]
    assert comparison._neighbour(np.array([5, 0, 9])) is None


@pytest.mark.slow
def test_a_delta_that_draws_cannot_show_is_not_called_zero() -> None:
    row = published_dirichlet(SKEWED, 1.0, 1e-6)
    assert row.delta is None
    assert re.search(r"209715.*1e-05", row.note)
    exact = published_dirichlet(np.array([400, 600]), 1.0, 1e-6)
    assert exact.delta is not None
    assert 0 < exact.delta < 1e-5


def test_defaults_stay_within_what_is_allowed() -> None:
    rows = by_noise(np.array([4 * 10**6, 6 * 10**6]), 1.0, 1e-6)
    assert rows["dirichlet_floor"].parameters["floor"] == 10**6
    assert rows["dirichlet_shifted"].parameters["pseudo_count"] == 10**6


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.5])
@pytest.mark.parametrize("epsilon", [701.0, 1e5, 1e9])
def test_an_absurd_epsilon_gives_rows_or_reasons(epsilon: float, delta: float) -> None:
    rows = by_noise(SKEWED, epsilon, delta)
    assert rows["pure"].distortion.mean == 0
    assert all(row.distortion or row.note for row in rows.values())


@pytest.mark.parametrize(
    ("epsilon", "delta", "noise"), [(0.05, 0.05, "gaussian"), (0.5, 0.01, "laplace"), (1.0, 1e-6, "pure")]
)
def test_the_recommendation_is_what_auto_does(epsilon: float, delta: float, noise: str) -> None:
    same = [calibrate(name, classes=5, epsilon=epsilon, delta=delta) for name in ("auto", noise)]
    assert recommended(5, epsilon, delta) == (noise, same[0]) == (noise, same[1])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"counts": np.array([-1, 2])}, "counts"),
        *(({"epsilon": epsilon}, "epsilon") for epsilon in (0.0, math.nan)),
        *(({"delta": delta}, "delta") for delta in (-1e-6, 1.0)),
        *(({"floor": floor}, "floor") for floor in (-1, 1.5)),
        ({"pseudo_count": -1}, "pseudo_count"),
    ],
)
def test_impossible_levels_and_counts_are_refused_before_anything_is_compared(changed: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        compare(**{"counts": np.array([5, 6]), "epsilon": 1.0, "delta": 1e-6} | changed)


@pytest.mark.parametrize(
    ("counts", "draws", "message"),
    [([1, 2], 10, "counts"), *(([1, 2, 3], draws, r"draws.*1") for draws in (0, -1, 2.5))],
)
def test_impossible_numbers_of_draws_and_counts_are_refused(counts: list[int], draws: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        distortion(calibrate("pure", classes=3, epsilon=1.0, delta=0.0), np.array(counts), draws=draws)


LOOSE, TIGHT = (0.05, 0.05), (1.0, 1e-6)
# Mean L1 of 20,000 draws with about their standard errors, and half a unit of the last digit for rounding.
FIGURES = [
    ("published_gaussian", {}, SKEWED, LOOSE, 0.211, 5e-4),
    ("laplace_prior", {}, SKEWED, LOOSE, 0.187, 6e-4),
    ("published_laplace", {}, SKEWED, LOOSE, 0.164, 5e-4),
    ("independent_laplace", {}, SKEWED, LOOSE, 0.038, 1e-4),
    ("dirichlet_floor", {"floor": 50}, SKEWED, LOOSE, 0.036, 1e-4),
    ("dirichlet_floor", {"floor": 40}, SKEWED, LOOSE, 0.040, 1e-4),
    ("dirichlet_shifted", {"pseudo_count": 500}, SKEWED, LOOSE, 0.033, 1e-4),
    ("gaussian", {}, SKEWED, LOOSE, 0.028, 1e-4),
    ("laplace", {}, np.array([50, 950]), TIGHT, 0.0017, 1e-5),
    ("laplace", {}, SKEWED, TIGHT, 0.0075, 3e-5),
    ("laplace", {}, np.array([50] * 9 + [550]), TIGHT, 0.0171, 5e-5),
    ("independent_laplace", {}, np.array([50, 950]), TIGHT, 0.0030, 2e-5),
    ("independent_laplace", {}, SKEWED, TIGHT, 0.0092, 3e-5),
    ("independent_laplace", {}, np.array([50] * 9 + [550]), TIGHT, 0.0194, 5e-5),
    ("gaussian", {}, np.array([50, 950]), TIGHT, 0.0068, 4e-5),
    ("gaussian", {}, SKEWED, TIGHT, 0.0213, 6e-5),
    ("gaussian", {}, np.array([50] * 9 + [550]), TIGHT, 0.0452, 7e-5),
]


@pytest.mark.parametrize(
    ("noise", "extra", "counts", "privacy", "expected", "error"),
    [pytest.param(*figure, marks=() if "dirichlet" in figure[0] else pytest.mark.slow) for figure in FIGURES],
)
def test_figures_agree_within_three_standard_errors(
    noise: str, extra: dict[str, Any], counts: np.ndarray, privacy: tuple[float, float], expected: float, error: float
) -> None:
    epsilon, delta = privacy
    mechanism = calibrate(noise, classes=len(counts), epsilon=epsilon, delta=delta, **extra)
    found = distortion(mechanism, counts, draws=100_000)
    rounding = 5e-4 if expected > 0.02 and privacy == LOOSE else 5e-5
    assert abs(found.mean - expected) <= 3 * np.hypot(error, found.standard_error) + rounding


@pytest.mark.parametrize("noise", ["gaussian", "laplace", "independent_laplace"])
@pytest.mark.parametrize("counts", [(400, 500, 600), (3, 0, 40)])
def test_it_is_the_mean_error_of_projected_releases(noise: str, counts: tuple[int, ...]) -> None:
    true = np.array(counts)
    mechanism = calibrate(noise, classes=3, epsilon=0.5, delta=1e-3)
    found = distortion(mechanism, true)
    assert (found.standard_error == 0) == (min(counts) > 100)
    shares = project(mechanism.release(true, NoiseBits(7, "check"), 100_000) / true.sum())
    errors = np.abs(shares - true / true.sum()).sum(axis=1)
    tolerance = 4 * np.hypot(errors.std() / len(errors) ** 0.5, found.standard_error)
    assert found.mean == pytest.approx(errors.mean(), abs=tolerance)


def test_knowing_the_error_before_projection_makes_the_rest_precise() -> None:
    mechanism = calibrate("laplace", classes=5, epsilon=0.05, delta=0.05)
    with_it = distortion(mechanism, SKEWED)
    without = sampled(mechanism.release(SKEWED, NoiseBits(3, "x"), 20_000), SKEWED)
    assert 0 < with_it.standard_error < 0.1 * without.standard_error
    assert with_it.mean == pytest.approx(without.mean, abs=4 * without.standard_error)


def test_of_two_draws_the_standard_error_is_half_their_difference() -> None:
    found = sampled(np.array([[45.0, 55.0], [30.0, 70.0]]), np.array([50, 50]))  # 0.1 and 0.4 from the truth
    assert (found.mean, found.standard_error) == pytest.approx((0.25, 0.15))
    counts = np.array([50, 30, 20])
    found = sampled(np.tile(counts.astype(float), (3, 1)), counts, unprojected=0.0)  # a release without noise
    assert (found.mean, found.standard_error) == (0.0, 0.0)


@pytest.mark.slow
def test_it_is_reproducible_and_never_above_two() -> None:
    mechanism = calibrate("laplace_prior", classes=3, epsilon=1e-3, delta=0.0)
    counts = np.array([0, 0, 5])
    found = distortion(mechanism, counts, draws=5000)
    assert found == distortion(mechanism, counts, draws=5000)
    assert found != distortion(mechanism, counts, draws=5000, seed=2)
    assert 0.5 < found.mean <= 2
    many = calibrate("independent_laplace", classes=5000, epsilon=1.0, delta=1e-3)  # which do not fill the memory
    assert 0 < distortion(many, np.ones(5000)).mean < 2


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.1])
@pytest.mark.parametrize("noise", ["pure", "gaussian", "published_gaussian", "independent_laplace"])
def test_noise_far_above_the_counts_is_measured_precisely(noise: str, epsilon: float) -> None:
    mechanism = calibrate(noise, classes=3, epsilon=epsilon, delta=1e-6)
    found = distortion(mechanism, np.array([33, 33, 34]))
    plain = sampled(mechanism.release(np.array([33, 33, 34]), NoiseBits(5, "plain"), 20_000), np.array([33, 33, 34]))
    assert 0 < found.standard_error <= 1.05 * plain.standard_error
    assert found.mean == pytest.approx(plain.mean, abs=4 * np.hypot(found.standard_error, plain.standard_error))


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["pure", "gaussian", "dirichlet_shifted"])
def test_few_draws_are_enough_for_many_classes(noise: str) -> None:
    """Their mean is over many errors of one law; and a thousand classes take no more numbers than a hundred."""
    extra = {"pseudo_count": 500} if noise == "dirichlet_shifted" else {}
    drawn = []
    for classes in (100, 1000):
        mechanism = calibrate(noise, classes=classes, epsilon=1.0, delta=1e-6, **extra)
        found = distortion(mechanism, np.full(classes, 3))
        assert 0 < found.standard_error < 0.004 * found.mean
        drawn.append(found.mean)
    assert drawn[0] == pytest.approx(drawn[1], rel=0.05)


@pytest.mark.parametrize(("classes", "each", "draws"), [(3, 1.0, 20_000), (3, 8.0, 20_000), (10**6, 8.0, 2)])
def test_draws_are_as_many_as_their_numbers_allow(classes: int, each: float, draws: int) -> None:
    assert affordable(20_000, classes, each) == draws
    assert affordable(20_000, 1000, each) * 1000 * each <= 2_000_000
