"""What cannot be calibrated is refused, and the refusal names the parameter, what is allowed and what came."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

from federation.contract.errors import InputError
from federation.mechanisms.noise.mechanism import (
    require_delta_above_zero,
    require_draws,
    require_epsilon_from_zero,
    require_positive,
    require_wanted,
    require_whole,
)


@pytest.mark.parametrize(
    ("noise", "epsilon", "delta", "text"),
    [
        ("pur", 1.0, 0.1, "noise must be one of pure, normal, got 'pur'; did you mean 'pure'"),
        ("pure", 0.0, 0.1, "epsilon must be a positive finite number, got 0"),
        ("pure", math.inf, 0.1, "epsilon must be"),
        ("pure", math.nan, 0.1, "epsilon must be"),
        ("pure", 1.0, -0.1, r"delta must lie in \[0, 1\), got -0.1"),
        ("pure", 1.0, 1.0, "delta must lie"),
        ("pure", 1.0, math.nan, "delta must lie"),
        ("normal", 1.0, 0.0, "delta must be above 0 for noise normal, got 0; choose pure for delta 0"),
    ],
)
def test_what_cannot_be_calibrated_is_refused(noise, epsilon, delta, text):
    with pytest.raises(InputError, match=text):
        require_wanted(noise, epsilon, delta, known=("pure", "normal"), with_delta=("normal",), pure="pure")


def test_pure_noise_may_be_given_a_delta():
    for noise, delta in (("pure", 0.0), ("pure", 0.5), ("normal", 0.5)):
        require_wanted(noise, 1.0, delta, known=("pure", "normal"), with_delta=("normal",), pure="pure")


@pytest.mark.parametrize("value", [2.0, True, "3", None, 1, 6])
def test_what_is_no_integer_in_range_is_refused(value):
    with pytest.raises(InputError, match=r"bags must be an integer from 2 to all 5, got"):
        require_whole("bags", value, 2, 5, "all ")


def test_integers_of_any_kind_pass():
    for value in (2, 5, np.int64(3), np.uint8(4)):
        require_whole("bags", value, 2, 5)
    with pytest.raises(InputError, match="rows must be an integer of at least 1, got 0"):
        require_whole("rows", 0, 1)


@pytest.mark.parametrize(
    ("require", "allowed", "refused", "text"),
    [
        (
            partial(require_positive, "step"),
            (5e-324, 0.5, 1e308),
            (0.0, -0.5, math.inf, math.nan),
            "step must be a pos",
        ),
        (require_epsilon_from_zero, (0.0, 0.5, 1e308), (-5e-324, -0.5, math.inf, math.nan), "epsilon must be a finite"),
        (require_delta_above_zero, (5e-324, 0.5, 1 - 2**-53), (0.0, -0.5, 1.0, 1.5, math.nan), "delta must lie strict"),
    ],
)
def test_numbers_pass_up_to_the_ends_of_their_range_and_no_further(require, allowed, refused, text):
    for value in allowed:
        assert require(value) in (value, None)
    for value in refused:
        with pytest.raises(InputError, match=text):
            require(value)


def test_numbers_of_draws_may_be_0_and_fill_the_largest_array_at_most():
    for draws in (0, 1, np.int64(7), 2**40):
        require_draws(draws)
    for draws in (-1, 1.5, True, 2**40 + 1):
        with pytest.raises(InputError, match="draws must be an integer from 0 to 1099511627776, got"):
            require_draws(draws)
