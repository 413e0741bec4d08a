"""What honest label counts with noise reach in bags: against draws, and kept by whatever is sent."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.collectors.bags import CountRange
from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts.calibration import calibrate

KINDS = ("gaussian", "laplace", "pure", "independent_laplace")
RANGES = {
    (kind, classes): CountRange(calibrate(kind, classes=classes, epsilon=1.0, delta=1e-5), 3)
    for kind in KINDS
    for classes in (2, 4)
}
SIZES = np.array([[30.0, 12.0, 0.0]])


@pytest.mark.parametrize(("kind", "classes"), RANGES)
def test_no_honest_counts_are_changed(kind, classes):
    mechanism = calibrate(kind, classes=classes, epsilon=1.0, delta=1e-5)
    sent = np.zeros((1, 3000, 3, classes))
    for bag, size in enumerate(SIZES[0][:2]):
        sent[0, :, bag] = mechanism.release(
            np.eye(classes, dtype=int)[0] * int(size), NoiseBits(1, "counts", bag), 3000
        )
    kept, changed = RANGES[kind, classes].bounded(sent, SIZES)
    np.testing.assert_array_equal(kept, sent)
    assert not changed.any()


@settings(deadline=None, max_examples=30)
@given(st.sampled_from([*RANGES]), st.integers(0, 10**6), st.floats(1.0, 1e6))
def test_counts_far_out_come_near_and_sum_to_their_bags(key, seed, size):
    classes = key[1]
    sent = size * np.random.default_rng(seed).normal(size=(1, 2, 3, classes))
    sent += (SIZES[0][:, None] - sent.sum(axis=3, keepdims=True)) / classes
    sent[:, :, 2] = 0.0
    kept, changed = RANGES[key].bounded(sent, SIZES)
    np.testing.assert_allclose(kept.sum(axis=3), np.broadcast_to(SIZES, (1, 2, 3)), atol=1e-6 * size)
    assert np.abs(kept).max() <= 2 * (30 + 80 * 2 + 1)  # no law here has noise beyond 80
    if not changed.any():
        np.testing.assert_array_equal(kept, sent)
