"""Mechanisms by name and public numbers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.contract.errors import InputError
from federation.mechanisms.counts import exact_laws as discrete_gaussian
from federation.mechanisms.counts import exact_laws as lattice_laplace
from federation.mechanisms.counts.additive import AdditiveCounts
from federation.mechanisms.counts.calibration import calibrate

NAMES = {
    "gaussian": "count_gaussian",
    "laplace": "lattice_laplace",
    "pure": "lattice_laplace",
    "independent_laplace": "count_laplace",
    "published_laplace": "count_laplace",
    "published_gaussian": "count_gaussian",
    "laplace_prior": "laplace_prior",
    "dirichlet_floor": "dirichlet_floor",
    "dirichlet_shifted": "dirichlet_shifted",
}
EXTRA = {"dirichlet_floor": {"floor": 60}, "dirichlet_shifted": {"pseudo_count": 60}}


@pytest.mark.parametrize("noise", NAMES)
def test_every_kind_keeps_its_claim_and_is_rebuilt_from_json(noise: str) -> None:
    numbers: dict[str, Any] = {"noise": noise, "classes": 5, "epsilon": 0.5, "delta": 0.01, **EXTRA.get(noise, {})}
    mechanism = calibrate(**numbers)
    assert mechanism.name == NAMES[noise]
    assert (mechanism.classes, mechanism.epsilon) == (5, 0.5)
    assert mechanism.delta_at(0.5) <= mechanism.delta <= 0.01
    assert calibrate(**json.loads(json.dumps(numbers))) == mechanism


@pytest.mark.parametrize("noise", ["pure", "published_laplace", "laplace_prior"])
def test_pure_kinds_claim_no_delta(noise: str) -> None:
    assert calibrate(noise, classes=3, epsilon=1.0, delta=0.1).delta == 0


def test_laplace_without_delta_is_pure() -> None:
    pure = calibrate("pure", classes=3, epsilon=0.7, delta=0.1)
    assert calibrate("laplace", classes=3, epsilon=0.7, delta=0.0) == pure
    assert calibrate("auto", classes=3, epsilon=0.7, delta=0.0) == pure


@pytest.mark.parametrize(
    ("classes", "epsilon", "delta", "expected"),
    [
        (5, 0.05, 0.05, "count_gaussian"),
        (2, 0.05, 0.05, "count_gaussian"),
        (5, 1.0, 1e-6, "lattice_laplace"),
        (2, 0.5, 0.01, "lattice_laplace"),
        (5, 0.5, 0.01, "lattice_laplace"),
        (20, 0.5, 0.01, "count_gaussian"),
        (2, 1.0, 0.05, "lattice_laplace"),
        (10, 1.0, 0.05, "count_gaussian"),
        (7_000, 0.05, 0.02, "count_gaussian"),
        (7_000, 1.0, 1e-6, "lattice_laplace"),
        (20_000, 0.7, 1e-5, "lattice_laplace"),
    ],
)
def test_auto_crosses_where_the_expected_errors_do(classes: int, epsilon: float, delta: float, expected: str) -> None:
    assert calibrate("auto", classes=classes, epsilon=epsilon, delta=delta).name == expected


@given(st.integers(2, 30), st.floats(0.01, 5), st.floats(1e-9, 0.3))
@settings(derandomize=True, deadline=None, max_examples=60)
def test_auto_has_the_smallest_expected_error_but_for_what_pure_noise_is_worth(
    classes: int, epsilon: float, delta: float
) -> None:
    chosen = calibrate("auto", classes=classes, epsilon=epsilon, delta=delta)
    assert isinstance(chosen, AdditiveCounts)
    best = min(
        discrete_gaussian.calibrate_discrete_gaussian(classes, epsilon, delta).expected_l1(),
        lattice_laplace.calibrate_lattice_laplace(classes, epsilon, delta).expected_l1(),
    )
    assert chosen.expected_l1() <= best * (1 + (0.001 if chosen.delta == 0 else 0))
    pure = lattice_laplace.calibrate_lattice_laplace(classes, epsilon, 0.0)
    assert (chosen.delta == 0) == (pure.expected_l1() <= 1.001 * best)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"noise": "gausian"}, "did you mean 'gaussian'"),
        ({"noise": "published_dirichlet"}, "noise must be one of auto, gaussian"),
        ({"classes": 1}, "classes must be an integer from 2 to 1048576, got 1"),
        ({"classes": 2.0}, "classes must be an integer"),
        ({"classes": True}, "classes must be an integer"),
        ({"epsilon": 0.0}, "epsilon must be a positive finite number"),
        ({"epsilon": float("inf")}, "epsilon must be a positive finite number"),
        ({"epsilon": float("nan")}, "epsilon must be a positive finite number"),
        ({"noise": "pure", "epsilon": 1e-13}, "choose a larger epsilon"),
        ({"delta": -0.1}, r"delta must lie in \[0, 1\)"),
        ({"delta": 1.0}, r"delta must lie in \[0, 1\)"),
        ({"delta": float("nan")}, r"delta must lie in \[0, 1\)"),
        ({"delta": 0.0}, "delta must be above 0 for noise gaussian"),
        ({"floor": 5}, "floor must be given for noise dirichlet_floor and for no other"),
        ({"pseudo_count": 5}, "pseudo_count must be given for noise dirichlet_shifted and for no other"),
        ({"noise": "dirichlet_floor"}, "floor must be given .* name a public number"),
        ({"noise": "dirichlet_shifted"}, "pseudo_count must be given"),
        ({"noise": "dirichlet_floor", "floor": 2}, "floor must be at least"),
    ],
)
def test_impossible_arguments_are_refused(changes: dict[str, Any], message: str) -> None:
    numbers: dict[str, Any] = {"noise": "gaussian", "classes": 5, "epsilon": 0.05, "delta": 0.05}
    with pytest.raises(InputError, match=message):
        calibrate(**{**numbers, **changes})
