"""Losses by name, and refusals that say why."""

from __future__ import annotations

import pytest

from aggregator.learners.linear_odd.catalogue import NAMES, loss, require_linear_odd
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
