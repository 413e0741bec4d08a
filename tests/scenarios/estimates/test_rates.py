"""Slopes between samples: what grows with the parties, what does not, and how samples are chosen."""

import pytest

from federation.contract.errors import QuorumError
from scenarios.estimates import rates
from scenarios.estimates.rates import calibrated
from scenarios.estimates.samples import Sample


def sample(parties, **changes):
    """One of a world that takes a second, and 1 ms for each party."""
    fields = {
        "nodes": 1, "messages": 1, "answering": 0.1 + 1e-3 * parties, "gathering": 0.2, "release": 0.3, "scoring": 0.4,
        "sent": 20 * parties, "asked": 1000, "held": 500 + parties, "wall": 2.0 + 2e-3 * parties,
        "processor": 1.0 + 1e-3 * parties, "peaks": {"collect": 100.0}, "missing": (),
    }  # fmt: skip
    return Sample(parties=parties, **{**fields, **changes})


@pytest.fixture
def served(monkeypatch):
    """Answers every sample from the list of costs, and notes what was asked for."""
    asked = []

    def fake(world, parties, per_node, turn, *, individual):
        asked.append((parties, turn, individual))
        extra = 0.05 + 2e-3 * parties if individual else 0.0
        found = sample(parties)
        return sample(parties, answering=found.answering + extra, processor=found.processor + extra)

    monkeypatch.setattr(rates, "sampled", fake)
    return asked


def test_slopes_fixed_costs_and_parties_on_their_own(world, served):
    found = calibrated(world(), 2000, 60.0)
    assert found.answering.fixed == pytest.approx(0.1)
    assert found.answering.each == found.answering.least == pytest.approx(1e-3)
    assert found.gathering.at(10**6)[1] == pytest.approx(0.2)
    assert (found.release.at(10**6)[1], found.scoring.at(10**6)[1]) == (pytest.approx(0.3), pytest.approx(0.4))
    assert (found.sent.each, found.held.each) == (20, 1)
    assert found.alone == pytest.approx(0.05 + 2e-3 * 1000)  # at most a thousand are scored
    assert found.crowding == pytest.approx(2.0, rel=0.1)
    assert served[0] == (32, 0, True)
    assert served[-1][::2] == (1000, True)
    assert [parties for parties, _, individual in served if not individual] == [32, 2048, 3000]
    assert len({turn for _, turn, _ in served}) == len(served)


def test_no_sample_is_larger_than_two_nodes_or_the_world(world, served):
    calibrated(world("parties.count=40"), 4096, 60.0)
    calibrated(world(), 20, 60.0)
    assert max(parties for parties, _, individual in served if not individual) == 40


def test_a_second_sample_is_taken_even_without_time(world, served):
    calibrated(world("protocols=[{kind: soft_vote}]"), 4096, 0.0)
    assert served == [(32, 0, False), (32, 1, False)]  # a sample takes a second by itself


def test_what_the_aggregator_does_grows_only_where_that_shows(world, monkeypatch):
    monkeypatch.setattr(
        rates,
        "sampled",
        lambda world, parties, *_, individual: sample(parties, release=0.4 + 1e-3 * parties, scoring=1e-3 * parties),
    )
    found = calibrated(world("protocols=[{kind: soft_vote}]"), 1000, 60.0)
    assert found.release.each == pytest.approx(1e-3)
    assert found.scoring.each == 0.0  # nothing is scored that depends on the parties
    pooled = calibrated(world("protocols=[{kind: soft_vote}, {kind: pooled}]"), 1000, 60.0)
    assert pooled.scoring.each == pytest.approx(1e-3)


def test_too_few_parties_for_a_quorum_are_doubled(world, served, monkeypatch):
    known = rates.sampled

    def strict(world, parties, per_node, turn, *, individual):
        if parties < 100:
            raise QuorumError("too few")
        return known(world, parties, per_node, turn, individual=individual)

    monkeypatch.setattr(rates, "sampled", strict)
    calibrated(world(), 4096, 60.0)
    assert served[0][0] == 128
    monkeypatch.setattr(rates, "sampled", lambda *_, **__: strict(None, 1, 1, 1, individual=False))
    with pytest.raises(QuorumError):
        calibrated(world(), 4096, 60.0)
