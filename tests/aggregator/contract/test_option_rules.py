"""Rules of options: what clashes is refused, and the refusal says which option and what to do."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest

from aggregator.contract.protocol import refuse_misplaced, refuse_public_reach, require_positive
from federation.contract.errors import InputError


@dataclass(frozen=True)
class Options:
    size: int = 4
    widths: tuple[int, ...] = (3, 2)


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan])
def test_what_must_be_positive_is_a_finite_number_above_zero(value):
    require_positive("ridge", 5e-324)
    with pytest.raises(InputError, match=f"^ridge must be a positive number, got {value}$"):
        require_positive("ridge", value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (Options(size=5), "size belongs to learner: network; remove it or choose that"),
        (Options(5, (1,)), "size and widths belong to learner: network; remove them or choose that"),
    ],
)
def test_options_are_refused_away_from_home_when_they_are_not_the_defaults(options, words):
    refuse_misplaced(options, ("size", "widths"), "learner: network", True)
    with pytest.raises(InputError, match=f"^{words}$"):
        refuse_misplaced(options, ("size", "widths"), "learner: network", False)


def test_a_list_of_the_defaults_is_the_default():
    refuse_misplaced(Options(widths=[3, 2]), ("size", "widths"), "learner: network", False)
    with pytest.raises(InputError, match=r"^widths belongs"):
        refuse_misplaced(Options(widths=[2, 3]), ("size", "widths"), "learner: network", False)


def test_options_that_are_not_named_may_be_anything():
    refuse_misplaced(Options(5, (1,)), (), "learner: network", False)


def test_a_sensitivity_of_the_rows_cannot_protect_one_of_them():
    refuse_public_reach("public_features", "party")
    refuse_public_reach("tight", "party_and_auxiliary_row")
    with pytest.raises(InputError, match="one of which protect: party_and_auxiliary_row covers"):
        refuse_public_reach("public_features", "party_and_auxiliary_row")
