"""All mechanisms side by side."""

from __future__ import annotations

import math

import numpy as np
import pytest

from federation.contract.errors import InputError
from federation.mechanisms.counts import comparison
from federation.mechanisms.counts.calibration import calibrate
from federation.mechanisms.counts.comparison import compare, published_dirichlet, recommended

SKEWED = np.array([50, 50, 50, 50, 800])


def test_every_kind_is_there_ordered_by_distortion() -> None:
    rows = compare(SKEWED, 0.05, 0.05)
    assert {row.noise for row in rows} == {
        "gaussian", "laplace", "pure", "independent_laplace", "published_laplace", "published_gaussian",
        "laplace_prior", "dirichlet_floor", "dirichlet_shifted",
    }  # fmt: skip
    assert rows[0].noise == "gaussian"
    means = [row.distortion.mean for row in rows if row.distortion]
    assert len(means) == 9
    assert means == sorted(means)
    assert all(row.private and row.delta is not None and row.delta <= 0.05 for row in rows)
    floor = next(row for row in rows if row.noise == "dirichlet_floor")
    assert floor.parameters["floor"] == 50
    shifted = next(row for row in rows if row.noise == "dirichlet_shifted")
    assert shifted.parameters["pseudo_count"] == 500
    assert "only for bags whose classes all hold 50 records or more" in floor.note


def test_impossible_mechanisms_come_last_and_say_why() -> None:
    notes = {row.noise: row.note for row in compare(np.array([5, 95]), 0.05, 0.05, pseudo_count=3)[-2:]}
    assert "floor must be at least 7" in notes["dirichlet_floor"]
    assert "pseudo_count must be at least 7" in notes["dirichlet_shifted"]
    rows = {row.noise: row for row in compare(SKEWED, 0.05, 0.05, floor=60)}
    assert rows["dirichlet_floor"].distortion is None
    assert "the smallest count, 50, is below the floor 60" in rows["dirichlet_floor"].note
    assert "delta must be above 0" in {row.noise: row.note for row in compare(SKEWED, 1.0, 0.0)}["gaussian"]


def test_a_classic_gaussian_beyond_its_theorem_says_so() -> None:
    row = next(row for row in compare(SKEWED, 20.0, 1e-6) if row.noise == "published_gaussian")
    assert row.delta is not None
    assert row.delta > 1e-6
    assert "too small for the wanted delta" in row.note
    notes = {row.noise: row.note for row in compare(SKEWED, 2.0, 1e-6)}
    assert [notes[noise] for noise in ("gaussian", "laplace", "pure")] == ["", "", ""]  # calibrated to the delta


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


def test_a_delta_that_draws_cannot_show_is_not_called_zero() -> None:
    row = published_dirichlet(SKEWED, 1.0, 1e-6)
    assert row.delta is None
    assert "too small for 209715 draws to show, likely below 1e-05" in row.note
    exact = published_dirichlet(np.array([400, 600]), 1.0, 1e-6)
    assert exact.delta is not None
    assert 0 < exact.delta < 1e-5


def test_defaults_stay_within_what_is_allowed() -> None:
    rows = {row.noise: row for row in compare(np.array([4 * 10**6, 6 * 10**6]), 1.0, 1e-6)}
    assert rows["dirichlet_floor"].parameters["floor"] == 10**6
    assert rows["dirichlet_shifted"].parameters["pseudo_count"] == 10**6


@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.5])
@pytest.mark.parametrize("epsilon", [701.0, 1e5, 1e9])
def test_an_absurd_epsilon_gives_rows_or_reasons(epsilon: float, delta: float) -> None:
    rows = {row.noise: row for row in compare(SKEWED, epsilon, delta)}
    assert rows["pure"].distortion is not None
    assert rows["pure"].distortion.mean == 0
    assert all(row.distortion or row.note for row in rows.values())


def test_the_published_dirichlet_needs_a_delta() -> None:
    assert "delta" in published_dirichlet(SKEWED, 1.0, 0.0).note


@pytest.mark.parametrize(
    ("epsilon", "delta", "noise"), [(0.05, 0.05, "gaussian"), (0.5, 0.01, "laplace"), (1.0, 1e-6, "pure")]
)
def test_the_recommendation_is_what_auto_does(epsilon: float, delta: float, noise: str) -> None:
    name, mechanism = recommended(5, epsilon, delta)
    assert name == noise
    assert mechanism == calibrate("auto", classes=5, epsilon=epsilon, delta=delta)
    same = calibrate(name, classes=5, epsilon=epsilon, delta=delta)
    assert same == mechanism


def test_counts_that_are_none_are_refused() -> None:
    with pytest.raises(InputError, match="counts must be whole numbers"):
        compare(np.array([-1, 2]), 1.0, 1e-6)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be a positive"),
        ({"epsilon": math.nan}, "epsilon must be a positive"),
        ({"delta": -1e-6}, "delta must lie in"),
        ({"delta": 1.0}, "delta must lie in"),
        ({"floor": -1}, "floor must be an integer"),
        ({"floor": 1.5}, "floor must be an integer"),
        ({"pseudo_count": -1}, "pseudo_count must be an integer"),
    ],
)
def test_impossible_levels_and_floors_are_refused_before_anything_is_compared(changed: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        compare(np.array([5, 6]), **({"epsilon": 1.0, "delta": 1e-6} | changed))


def test_the_neighbour_has_one_record_of_the_smallest_class_counted_in_the_largest() -> None:
    assert comparison._neighbour(np.array([5, 2, 9])).tolist() == [5, 1, 10]
    assert comparison._neighbour(np.array([5, 0, 9])) is None
