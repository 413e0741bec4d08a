"""What every calibrated mechanism promises, and which units, adjacencies and calls it refuses.

Scales that the samplers take, and the search for the smallest integer that is enough.
"""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.refusals import refused

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Assumption, Check, Unit
from federation.mechanisms.bag_sums.noisy_labels import laplace_bag_sums
from federation.mechanisms.counts import calibration as counts
from federation.mechanisms.labels import calibration as labels
from federation.mechanisms.noise.mechanism import (
    Replacement,
    first,
    first_between,
    require_delta_above_zero,
    require_draws,
    require_epsilon_from_zero,
    require_positive,
    require_scale,
    require_whole,
)

OWN, FURTHER = Assumption("its own", Check.ENFORCED), Assumption("the caller's", Check.CHECKED)


class Noise(Replacement):
    """A claim and nothing else."""

    name, epsilon, delta, gaussian_mu = "noise", 0.5, 1e-6, 0.1
    units, assumptions = (Unit.LABEL, Unit.ROW), (OWN,)
    parameters = {"scale": 3}  # noqa: RUF012


def test_a_claim_becomes_a_guarantee_for_what_the_mechanism_is_for():
    made = Noise().guarantee(Unit.ROW, further=(FURTHER,))
    assert (made.epsilon, made.delta, made.mechanism, made.gaussian_mu) == (0.5, 1e-6, "noise", 0.1)
    assert (made.unit, made.adjacency, made.assumptions) == (Unit.ROW, Adjacency.REPLACE, (FURTHER, OWN))
    assert made.parameters == {"scale": 3}
    assert Noise().guarantee().unit is Unit.LABEL
    for wrong, told in (((Unit.PARTY,), "unit"), ((Unit.ROW, Adjacency.ADD_REMOVE), r"adjacency.*add_remove")):
        refused(told, Noise().guarantee, *wrong)


@pytest.mark.parametrize(
    ("mechanism", "allowed"),
    [
        (counts.calibrate("pure", classes=3, epsilon=1.0, delta=0.0), {Unit.LABEL, Unit.PERSON}),
        (counts.calibrate("laplace_prior", classes=3, epsilon=1.0, delta=0.0), {Unit.LABEL, Unit.PERSON}),
        (labels.calibrate("one_bit", epsilon=1.0, delta=0.0, label_range=(0.0, 1.0)), {Unit.LABEL}),
        (laplace_bag_sums(20, 5, 4, label_range=(0.0, 1.0), epsilon=1.0), {Unit.LABEL}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_labels_are_protected_and_not_rows(mechanism, allowed):
    for unit in Unit:
        if unit in allowed:
            assert mechanism.guarantee(unit).unit is unit
            refused("adjacency", mechanism.guarantee, unit, Adjacency.ADD_REMOVE)
        else:
            refused(f"{unit}", mechanism.guarantee, unit)


@pytest.mark.parametrize(
    ("require", "allowed", "refused", "text"),
    [
        (
            lambda value: require_whole("bags", value, 2, 5, "all "),
            (2, 5, np.int64(3), np.uint8(4)),
            (2.0, True, "3", None, 1, 6),
            r"bags.*2.*5",
        ),
        (lambda value: require_whole("rows", value, 1), (1,), (0,), r"rows.*1.*0"),
        (partial(require_positive, "step"), (5e-324, 0.5, 1e308), (0.0, -0.5, math.inf, math.nan), "step"),
        (require_epsilon_from_zero, (0.0, 0.5, 1e308), (-5e-324, -0.5, math.inf, math.nan), "epsilon"),
        (require_delta_above_zero, (5e-324, 0.5, 1 - 2**-53), (0.0, -0.5, 1.0, 1.5, math.nan), "delta"),
        (require_draws, (0, 1, np.int64(7), 2**40), (-1, 1.5, True, 2**40 + 1), r"draws.*0.*1099511627776"),
        (
            partial(require_scale, "sigma"),
            (1, 2**40, Fraction(3, 2**20)),
            (0, -1, 2**40 + 1, 0.5, Fraction(1, 2**41)),
            r"sigma.*1.*2.*40",
        ),
    ],
)
def test_numbers_pass_up_to_the_ends_of_their_range_and_no_further(require, allowed, refused, text):
    for value in allowed:
        assert require(value) in (value, None)
    for value in refused:
        with pytest.raises(InputError, match=text):
            require(value)


@given(st.integers(0, 2**40), st.integers(1, 2**20))
@settings(derandomize=True)
def test_the_first_that_is_enough_is_found_from_below_and_between(low: int, distance: int) -> None:
    wanted = low + distance
    assert first(lambda n: n >= wanted, low) == wanted
    assert first_between(lambda n: n >= wanted, low, wanted + 7) == wanted
    assert first_between(lambda n: False, low, wanted) == wanted  # the upper end is taken to be enough
