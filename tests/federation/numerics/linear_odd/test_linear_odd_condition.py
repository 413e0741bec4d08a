"""The linear-odd condition, found by evaluating losses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.learners.linear_odd.catalogue import require_linear_odd
from federation.contract.errors import InputError


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
