"""Sessions that learn from one X'y over all parties, who share its noise: what is asked, learned, and promised."""

from __future__ import annotations

import numpy as np
import pytest
from support import linear_labels
from support.synthetic import Table

from aggregator.protocols.label_sums import NoisyLabelSums
from aggregator.trial.trial import Views, World
from federation.contract.errors import InputError
from federation.contract.plugins import Reference
from parties.guard.answering import answered
from parties.party_data.cohort import Cohort
from scenarios.testing import small_trials as small

HELD = Reference("support.linear_labels:Parties").to_json()
PARTIES = 6


def few_public_rows() -> Table:
    return Table(linear_labels.draw(99, 9)[0], ("p", "q", "r"))


def near_public_rows() -> Table:
    """So near to each other that most private rows lie beyond them."""
    return Table(0.3 * linear_labels.draw(99, 200)[0], ("p", "q", "r"))


@pytest.fixture
def world(tmp_path):
    def make(options, public="support.linear_labels:public_table", **changes):
        fields = {
            "public": Reference(public),
            "label_range": linear_labels.RANGE,
            "largest_bag": 87,
            "smallest_bag": 80,
            "private_rows": 501,
            "draws": 1,
            "quorum": 2 / 3,
            **changes,
        }
        plan = small.plan(NoisyLabelSums, "label_sums", {"trust": "secure", **options}, tmp_path, **fields)
        return World(plan, Views(plan)).of(plan.variants[0])

    return make


def learned(world, epsilon, parties=range(PARTIES)):
    """Its session, and weights of each draw for raw rows and a constant."""
    session = NoisyLabelSums(**world.own.options).begin(world, epsilon, world.plan.draws)
    [asked] = session.questions()
    for party in parties:
        assert asked.collector.add(answered(Cohort(HELD, party, 1, 1), asked.question)) == {}
    session.take([asked.collector])
    raw = np.vstack([np.zeros(3), np.eye(3)])
    weights = []
    for draw in range(world.plan.draws):
        at = session.feature_map.transform(raw) @ session.learn(draw)[1]["weights"]
        weights.append(np.append(at[1:] - at[0], at[0]))
    return session, np.array(weights)


@pytest.mark.parametrize("public", ["support.linear_labels:public_table", f"{__name__}:near_public_rows"])
@pytest.mark.parametrize("shape", ["optimal", "whitened", "isotropic"])
@pytest.mark.parametrize("shrink", [True, False])
def test_with_next_to_no_noise_it_is_least_squares_wherever_public_rows_lie(world, public, shape, shrink):
    session, [weights] = learned(world({"shape": shape, "shrink": shrink, "noise": "pure"}, public), 1000.0)
    np.testing.assert_allclose(weights, [*linear_labels.WEIGHTS, 0.0], atol=0.06)
    beyond = session.diagnostics()["mean_weight"]
    assert (beyond < 0.8) == ("near_public" in public)
    assert beyond <= 1.0


@pytest.mark.parametrize("noise", ["gaussian", "pure"])
def test_the_spread_of_weights_is_that_of_the_shares_that_came(world, noise):
    """Least squares without shrinkage: covariance of the noise between the inverses of X'X."""
    draws = 600
    session, _ = learned(world({"noise": noise, "shrink": False}, draws=draws), 5.0, parties=(0, 2, 3, 5))
    answers = session._sums
    assert answers.wholes == 4 / 3
    inverse = np.linalg.inv(answers.total("gram"))
    learned_weights = np.array([session.learn(draw)[1]["weights"] for draw in range(draws)])
    spread = np.cov(learned_weights, rowvar=False)
    expected = 10.0**2 * answers.summed_variance * inverse @ inverse
    assert np.trace(spread) == pytest.approx(np.trace(expected), rel=6 / draws**0.5)


def test_the_promise_is_for_the_sum_over_parties_of_whom_some_may_collude(world):
    session, _ = learned(world({"noise": "gaussian"}), 1.0)
    guarantee = session.guarantee
    assert (guarantee.epsilon, guarantee.unit, guarantee.parameters["contributors"]) == (1.0, "label", 3)
    told = " ".join(one.text for one in guarantee.assumptions)
    assert "at least 4 of 6 answer, and at most 1 of them collude" in told
    assert "features are public: only labels are protected" in told
    assert session.checks[0].startswith("nobody saw a party's answer")


def test_too_few_public_rows_are_refused(world):
    with pytest.raises(InputError, match="trust: secure needs 10 public rows or more"):
        learned(world({}, f"{__name__}:few_public_rows"), 1.0)
