"""Declared label ranges: what is refused, what is clipped, and where labels lie on the public grid.

Every mechanism for labels keeps the same promises: a value for each label, moments as stated, premises in order.
"""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.contract.errors import InputError
from federation.contract.guarantee import Check
from federation.contract.randomness import NoiseBits
from federation.mechanisms.labels.calibration import LabelNoise, calibrate
from federation.mechanisms.labels.mechanism import PUBLIC_ROWS, LabelRange
from federation.mechanisms.noise.mechanism import NOISE_KEY


@pytest.mark.parametrize(
    ("refused", "told"),
    [
        *(
            (lambda ends=ends: LabelRange(*ends), "label_range")
            for ends in (
                *((1.0, 1.0), (2.0, 1.0), (0.0, np.inf), (np.nan, 1.0), (0.0, np.nan), (False, 1.0), (0.0, True)),
                *((-8e307, 8e307), (1e300, 1.1e300), (0.0, 5e-324), (0, 1e-101)),
            )
        ),
        *(
            (lambda ends=ends: LabelRange.of(ends), "label_range")
            for ends in ((0.0,), (0.0, 1.0, 2.0), (), "01", 1.0, None)
        ),
        (lambda: LabelRange(0.0, 1.0, "drop"), r"outside.*refuse.*clip.*drop"),
    ],
)
def test_a_range_has_two_ends_in_order_that_doubles_can_compute_with(refused, told):
    with pytest.raises(InputError, match=told):
        refused()


def test_a_range_is_made_of_any_two_numbers_in_a_row():
    assert {LabelRange.of(ends) for ends in ((0.0, 2.0), [0, 2], np.array([0.0, 2.0]))} == {LabelRange(0.0, 2.0)}
    assert [LabelRange(-1e100, 1e100).width, LabelRange(0.0, 1e-100).width] == [2e100, 1e-100]
    assert LabelRange(0.0, 1.0).assumption.check is Check.CHECKED
    assert LabelRange(0.0, 1.0, "clip").assumption.check is Check.ENFORCED


@pytest.mark.parametrize("outside", ["refuse", "clip"])
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.array([0.5, np.nan]), "NaN"),
        (np.array([]), "shape"),
        (np.ones((2, 2)), "shape"),
        (np.array(["a"]), "numbers"),
        (np.array([1j]), "numbers"),
    ],
)
def test_what_is_no_label_is_refused(labels, message, outside):
    with pytest.raises(InputError, match=message):
        LabelRange(0.0, 1.0, outside).checked(labels)


@pytest.mark.parametrize("label", [-1e-9, 7.123456, np.inf, -np.inf])
def test_labels_outside_are_refused_without_telling_them_or_clipped(label):
    labels = np.array([0.5, label])
    with pytest.raises(InputError) as caught:
        LabelRange(0.0, 1.0).checked(labels)
    assert "7.123456" not in str(caught.value)
    np.testing.assert_array_equal(LabelRange(0.0, 1.0, "clip").checked(labels), [0.5, min(max(label, 0.0), 1.0)])


@given(
    low=st.floats(-1e6, 1e6),
    width=st.floats(1e-3, 1e6),
    shares=st.lists(st.floats(0, 1), min_size=1, max_size=20),
    steps=st.sampled_from([1, 2, 31, 2**20, 2**52]),
)
def test_the_nearest_point_is_within_half_a_step(low, width, shares, steps):
    labels = LabelRange(low, low + width)
    values = np.clip(low + width * np.array(shares), labels.low, labels.high)
    positions = labels.positions(values, steps)
    assert positions.min() >= 0
    assert positions.max() <= steps
    rounding = 1e-15 * (abs(low) + width)
    assert np.abs(labels.points(positions, steps) - values).max() <= 0.5001 * labels.width / steps + 4 * rounding
    np.testing.assert_array_equal(labels.positions(np.array([labels.low, labels.high]), steps), [0, steps])


LABELS = np.linspace(-1.0, 3.0, 9)


@pytest.fixture(params=get_args(LabelNoise))
def mechanism(request):
    return calibrate(request.param, epsilon=1.0, delta=1e-5, label_range=(-1.0, 3.0), points=8)


def test_a_release_has_a_value_for_each_label_and_depends_on_the_bits_only(mechanism):
    first, again, other = (mechanism.release(LABELS, NoiseBits(seed, "test")) for seed in (1, 1, 2))
    assert (first.shape, first.dtype) == (LABELS.shape, np.float64)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    begin, second, *own, last = mechanism.guarantee().assumptions
    assert (begin, second, last) == (PUBLIC_ROWS, mechanism.labels.assumption, NOISE_KEY)
    assert own


def test_without_labels_moments_are_the_largest_of_any_label(mechanism):
    labels = np.linspace(-1.0, 3.0, 4001)
    for moment in (mechanism.variance, mechanism.bias):
        each = moment(labels)
        assert each.shape == labels.shape
        assert np.abs(each).max() <= moment() * (1 + 1e-9) + 1e-12
