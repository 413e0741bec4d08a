"""What the aggregator knows after the votes are in: whose they are, and minimisers that are computed once."""

from __future__ import annotations

import numpy as np
import pytest
from support.voting import ensemble, instance

from aggregator.ensembles import output as module
from federation.contract.query import Submission
from federation.numerics.erm import gradient_floor, risk_minimiser


@pytest.fixture
def world():
    votes, rows = instance(2, parties=9, classes=3)
    return ensemble(votes, rows, 3)


def test_it_counts_declared_parties_once(world):
    assert (world.parties, world.answered, world.classes) == (9, 9, 3)
    again = Submission("votes", np.array([4, 9]), {"votes": np.zeros((2, 30), dtype=np.uint8)})
    assert sorted(world.add(again)) == [4, 9]
    assert world.answered == 9


@pytest.mark.parametrize("labels", ["soft", "majority"])
@pytest.mark.parametrize("classes", [2, 3])
def test_minimisers_are_those_of_the_shares_or_the_majority(labels, classes):
    votes, rows = instance(3, classes=classes)
    world = ensemble(votes, rows, classes)
    shares = world.tally.shares() if labels == "soft" else world.tally.majority()
    found = world.minimiser(labels, 0.1)
    assert found.shape == ((4,) if classes == 2 else (3, 4))
    np.testing.assert_array_equal(found, risk_minimiser(rows, shares, 0.1, world.gradient_tolerance(0.1)))


def test_a_minimiser_is_computed_once_for_each_kind_of_labels_and_strength(world, monkeypatch):
    computed = []

    def counted(*arguments):
        computed.append(arguments)
        return risk_minimiser(*arguments)

    monkeypatch.setattr(module, "risk_minimiser", counted)
    wanted = [("soft", 0.1), ("majority", 0.1), ("soft", 0.2), ("soft", 0.1)]
    found = [world.minimiser(*one) for one in wanted]
    assert len(computed) == 3
    assert found[0] is found[3]
    assert (found[0] != found[2]).any()


def test_the_tolerance_is_a_millionth_of_what_a_party_moves_unless_rounding_is_more(world):
    assert world.gradient_tolerance(1.0) == 1e-6 / 9
    for lam in (1e-2, 1.0, 1e12):
        assert world.gradient_tolerance(lam) == max(1e-6 / 9, 4 * gradient_floor(lam))
