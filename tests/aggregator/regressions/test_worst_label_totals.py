"""The worst pair of neighbours of one X'y over public rows: as far apart as a label moves the sum at most."""

from __future__ import annotations

import numpy as np
import pytest
from support.worst_pairs import pair_of, without_noise

from aggregator.trial.plan import PublicNumbers

PUBLIC = PublicNumbers(0.01, label_range=(-3.0, 7.0))
SECURE = {"trust": "secure"}


def test_one_label_moves_the_sum_as_far_as_a_label_can():
    pair = pair_of("label_sums", SECURE, PUBLIC)
    here, there = (without_noise(pair, 1, side)["sums"][0] for side in (False, True))
    reached = np.linalg.norm(here - there)
    assert 2 * (1 - 1e-5) < reached <= 2 * (1 + 1e-7)  # labels go from -1 to 1


def test_neighbours_differ_in_one_label():
    pair = pair_of("label_sums", SECURE, PUBLIC)
    here, there = pair.held(False), pair.held(True)
    assert len(here) == 3  # of a quorum of 4 of 6, one of whom may collude
    assert all((one.rows == other.rows).all() for one, other in zip(here, there, strict=True))
    assert [(one.labels != other.labels).sum() for one, other in zip(here, there, strict=True)] == [1, 0, 0]


@pytest.mark.parametrize("there", [False, True])
def test_its_sums_are_those_that_parties_answer_without_noise(there):
    pair = pair_of("label_sums", SECURE, PUBLIC)
    np.testing.assert_allclose(
        pair.worst._centre(there, pair.question), without_noise(pair, 1, there)["sums"][0], atol=1e-6
    )
