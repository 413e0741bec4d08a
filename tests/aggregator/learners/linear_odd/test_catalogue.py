"""Losses by name, what makes a loss linear-odd, and refusals that say why."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.learners.linear_odd.losses import NAMES, loss, require_linear_odd
from federation.contract.errors import InputError


@pytest.mark.parametrize("name", NAMES)
def test_every_loss_is_linear_odd_with_its_slope(name):
    found = loss(name)
    assert require_linear_odd(found.value) == pytest.approx(found.slope, rel=1e-14)


@pytest.mark.parametrize(
    ("name", "off"),
    [("hinge", "1"), ("squared_hinge", "1"), ("exponential", "2.553"), ("zero_one", "1"), ("ramp", "1")],
)
def test_common_losses_that_are_not_linear_odd_are_refused(name, off):
    with pytest.raises(InputError, match=rf"'{name}' is not linear-odd.* at x = 2 is off by {off};"):
        loss(name)


def test_unknown_names_and_parameters_are_refused():
    with pytest.raises(InputError, match="did you mean 'logistic'"):
        loss("logisitc")
    with pytest.raises(InputError, match="'square' takes no parameters, got 'rho'"):
        loss("square", rho=1.0)
    with pytest.raises(InputError, match="'rho' takes rho, got 'width'"):
        loss("rho", width=1.0)


@pytest.mark.parametrize("rho", [0.0, -1.0, float("nan"), float("inf")])
def test_rho_must_be_positive(rho):
    with pytest.raises(InputError, match="rho must be positive"):
        loss("rho", rho=rho)


def test_symmetric_proper_losses_take_their_generator():
    assert loss("symmetric_proper", generator="gini", scale=0.5).slope == 2.0


@given(st.floats(0.01, 100), st.floats(0, 3), st.floats(0, 3))
def test_any_even_part_and_slope_is_accepted(slope, bend, power):
    found = require_linear_odd(lambda x: bend * np.abs(x) ** power - slope / 2 * x)
    assert found == pytest.approx(slope, rel=1e-6, abs=1e-7)


@given(st.floats(1e-3, 1.0))
def test_an_odd_part_that_bends_is_refused(bend):
    with pytest.raises(InputError, match="not linear-odd"):
        require_linear_odd(lambda x: -x - bend * np.tanh(x))


def test_the_reason_names_the_margin_and_the_failure():
    with pytest.raises(InputError, match=r"hinge.* a = 2, which at x = 2 is off by 1;"):
        require_linear_odd(lambda x: np.maximum(0, 1 - x), "hinge")


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda x: x, "does not prefer correct labels"),
        (np.abs, "does not prefer correct labels"),
        (lambda x: np.full(len(x), np.nan), "finite"),
        (lambda x: 0.0, "one finite number per margin"),
    ],
)
def test_losses_that_cannot_be_learned_from_are_refused(loss, message):
    with pytest.raises(InputError, match=message):
        require_linear_odd(loss)
