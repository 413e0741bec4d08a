"""The mean of vectors that nobody saw, and the noise that is in it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from support.questions import QUESTIONS

from aggregator.collectors.vectors import SharedVectors
from federation.contract.errors import FederationError
from federation.contract.query import Submission

QUESTION = QUESTIONS["parameter_sum"]
STEP, WIDTH = QUESTION.steps["vectors"], QUESTION.numbers
PLAN = SimpleNamespace(summation="", parties=90, quorum=0.9, colluding=0.0, servers="one")


def collected(vectors) -> SharedVectors:
    found = SharedVectors(QUESTION, PLAN)
    sent = np.rint(np.asarray(vectors, dtype=float) / STEP)[:, None, :] * STEP
    assert not found.add(Submission(QUESTION.kind, np.arange(len(sent)), {"vectors": sent}))
    return found


def test_the_mean_is_over_those_who_answered():
    vectors = np.zeros((4, WIDTH))
    vectors[:, 0] = [1.0, 0.5, -0.25, 0.75]
    found = collected(vectors)
    assert (found.answered, found.means.shape) == (4, (1, WIDTH))
    assert found.means[0, 0] == pytest.approx(0.5)
    assert not found.means[0, 1:].any()


@pytest.mark.parametrize("answered", [80, 90])
def test_the_noise_is_that_of_the_shares_that_came(answered):
    found, whole = collected(np.zeros((answered, WIDTH))), QUESTION.mechanism().additive
    assert found.wholes == answered / 80
    assert found.mechanism.variance() == pytest.approx(found.wholes * whole.variance() / answered**2, rel=1e-6)


def test_a_sum_that_no_honest_parties_have_is_refused_and_a_smaller_lie_is_not():
    deviation = QUESTION.mechanism().additive.variance() ** 0.5
    lie = np.zeros((4, WIDTH))
    lie[0, 2] = 4 + 30 * (4 / 80) ** 0.5 * deviation
    assert collected(lie).means[0, 2] == pytest.approx(lie[0, 2] / 4, rel=1e-3)
    lie[0, 2] = 4 + 50 * (4 / 80) ** 0.5 * deviation
    with pytest.raises(FederationError, match="beyond what honest ones can have"):
        _ = collected(lie).means
