"""Counts over all parties of which nobody sees a part."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from support.two_class_parties import Parties
from support.two_class_questions import marginals

from aggregator.collectors.marginals import SharedMarginals
from federation.contract.errors import FederationError, InputError
from federation.contract.plugins import Reference
from federation.contract.query import Submission
from parties.guard.answering import answered
from parties.party_data.cohort import Cohort

MOST = 100


def plan(summation="", parties=6):
    return SimpleNamespace(summation=summation, parties=parties, quorum=0.7, colluding=0.1, servers="two")


def node():
    return Cohort(Reference(f"{Parties.__module__}:Parties").to_json(), 0, 6, 3)


def counted(question, summation=""):
    collector = SharedMarginals(question, plan(summation), MOST)
    assert collector.add(answered(node(), question)) == {}
    return collector


@pytest.mark.parametrize("noise", ["pure", "gaussian"])
@pytest.mark.parametrize("protect", ["row", "label"])
@pytest.mark.parametrize("asks", ["errors", "rows"])
def test_a_masked_sum_gives_the_total_of_plain_addition(noise, protect, asks):
    question = marginals(
        noise, protect, "add_remove" if protect == "row" else "replace", asks, contributors=4, seeded=True
    )
    if asks == "rows" and protect == "label":
        assert not question.shared  # numbers of rows are public
        return
    clear = counted(question)
    masked = counted(question, "scenarios.simulated.secure_aggregation:SimulatedSummation")
    np.testing.assert_array_equal(clear.rows, masked.rows)
    assert (clear.errors is None) == (asks == "rows")
    if asks == "errors":
        np.testing.assert_array_equal(clear.errors, masked.errors)
    sent = answered(node(), question).arrays
    np.testing.assert_array_equal(clear.rows, sent["rows"].sum(axis=0))
    assert clear.wholes == 6 / 4
    assert "masked sum" in masked.told[1]


def sent(errors, rows, question):
    arrays = {"errors": np.array([errors], dtype=float), "rows": np.array([rows], dtype=float)}
    return Submission("error_marginals", np.array([0]), arrays, None)


def test_counts_beyond_honest_ones_are_refused_and_smaller_lies_are_not():
    question = marginals("pure", contributors=4)
    bins = question.bins.total
    for lie, refused in ((2.0**30, True), (-(2.0**30), True), (MOST, False)):
        collector = SharedMarginals(question, plan(), MOST)
        collector.add(sent([lie] * bins, [MOST] * bins, question))
        if refused:
            with pytest.raises(FederationError, match="beyond what honest ones can have"):
                _ = collector.errors
        else:
            assert collector.errors is not None


def test_public_numbers_of_rows_are_checked_of_each_party():
    question = marginals("pure", "label", "replace", contributors=4)
    sizes = question.bins.sizes
    fair = np.concatenate([[10, *[0] * (size - 1)] for size in sizes])
    for rows, refused in ((fair, 0), (fair + np.eye(len(fair))[0], 1), (fair * MOST, 1)):
        collector = SharedMarginals(question, plan(), MOST)
        assert len(collector.add(sent(np.zeros(len(fair)), rows, question))) == refused


def test_counts_that_might_wrap_around_are_refused_before_anybody_is_asked():
    with pytest.raises(InputError, match="does not fit into 64 bits"):
        SharedMarginals(marginals("pure", contributors=4, epsilon=100.0), plan(parties=10**6), 10**9)
