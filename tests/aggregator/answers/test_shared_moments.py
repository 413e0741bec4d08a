"""The noisy sum over all rows of parties that share its noise."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from support.two_class_questions import moment

from aggregator.collectors.row_sums import SharedMoments
from federation.contract.errors import FederationError
from federation.contract.query import Submission

QUESTION = moment("gaussian", contributors=2)
STEP = QUESTION.mechanism().additive.step
PLAN = SimpleNamespace(summation="", parties=4, quorum=0.9, colluding=0.1, servers="one")


def collected(steps, sizes=10.0) -> SharedMoments:
    collector = SharedMoments(QUESTION, PLAN)
    steps = np.asarray(steps, dtype=float)
    sums = np.repeat(steps[:, None, :] * STEP, QUESTION.draws, axis=1)
    arrays = {"size": np.broadcast_to(np.asarray(sizes), len(steps)).astype(float), "sums": sums}
    collector.add(Submission("mean_operator", np.arange(len(steps)), arrays, QUESTION.promise()))
    return collector


def test_means_and_the_variance_of_all_shares() -> None:
    found = collected([[1, 2, 3, 4]] * 3)
    np.testing.assert_allclose(found.moments[0], np.array([3, 6, 9, 12]) * STEP / 30)
    assert found.summed_variance == pytest.approx(3 / 2 * QUESTION.mechanism().variance())
    assert found.noise_variance == pytest.approx(found.summed_variance / 30**2)
    assert found.response_variance == 0


def test_a_total_that_no_honest_parties_have_is_refused_and_a_smaller_lie_is_not() -> None:
    beyond = 1e6 / STEP
    with pytest.raises(FederationError, match="beyond what honest ones can have"):
        collected([[beyond, 0, 0, 0], [0, 0, 0, 0]]).total("sums")
    assert collected([[15 / STEP, 0, 0, 0], [0, 0, 0, 0]]).total("sums")[0, 0] == pytest.approx(15)


def test_numbers_of_rows_are_whole() -> None:
    assert collected([[0, 0, 0, 0]] * 2, [10.0, 10.5]).answered == 1
