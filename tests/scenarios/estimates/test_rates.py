"""Slopes between samples: what grows with the parties, what does not, and how samples are chosen."""

import pytest

from federation.contract.errors import QuorumError
from scenarios.estimates import rates
from scenarios.estimates.rates import Sample, calibrated


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

    def fake(world, parties, per_node, turn, *, individual, releases):
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
    def growing(world, parties, *_, individual, releases):
        return sample(parties, release=0.4 + 1e-3 * parties, scoring=1e-3 * parties)

    monkeypatch.setattr(rates, "sampled", growing)
    found = calibrated(world("protocols=[{kind: soft_vote}]"), 1000, 60.0)
    assert found.release.each == pytest.approx(1e-3)
    assert found.scoring.each == 0.0  # nothing is scored that depends on the parties
    pooled = calibrated(world("protocols=[{kind: soft_vote}, {kind: pooled}]"), 1000, 60.0)
    assert pooled.scoring.most == pytest.approx(1e-3)
    low, likely, high = pooled.scoring.at(3000)
    assert (low, high) == (pytest.approx(2.0), pytest.approx(3.0))  # of two nodes, and in a straight line
    assert likely == pytest.approx(6.0**0.5)


def test_too_few_parties_for_a_quorum_are_doubled(world, served, monkeypatch):
    known = rates.sampled

    def strict(world, parties, per_node, turn, *, individual, releases=None):
        if parties < 100:
            raise QuorumError("too few")
        return known(world, parties, per_node, turn, individual=individual, releases=releases)

    monkeypatch.setattr(rates, "sampled", strict)
    calibrated(world(), 4096, 60.0)
    assert served[0][0] == 128
    monkeypatch.setattr(rates, "sampled", lambda *_, **__: strict(None, 1, 1, 1, individual=False))
    with pytest.raises(QuorumError):
        calibrated(world(), 4096, 60.0)


def test_a_world_whose_first_sample_takes_too_long_gets_no_other(world, served):
    found = calibrated(world("parties.count=20", "protocols=[{kind: soft_vote}]"), 20, 0.5)
    assert served == [(20, 0, False)]
    assert found.answering.at(20)[1] == pytest.approx(0.12)
    assert found.once == 0.0


def test_heavy_releases_are_made_by_ones_and_twos(world, monkeypatch):
    """Releases and answers for every epsilon and draw, scores for every epsilon, and bytes that grow with neither."""
    seen = []

    def heavy(world, parties, per_node, turn, *, individual, releases):
        epsilons, draws = releases
        seen.append(releases)
        return sample(
            parties, release=5.0 * epsilons * draws, scoring=2.0 * epsilons, answering=1e-3 * parties * epsilons * draws
        )

    monkeypatch.setattr(rates, "sampled", heavy)
    several = world("protocols=[{kind: soft_vote}]", "privacy.epsilon=[1, 2, 3]", "trials.noise=5")
    found = calibrated(several, 1000, 60.0)
    assert found.release.at(3000)[1] == pytest.approx(5.0 * 15)
    assert found.scoring.at(3000)[1] == pytest.approx(2.0 * 3)
    assert found.answering.at(3000)[1] == pytest.approx(3.0 * 15)
    assert found.sent.at(3000)[1] == pytest.approx(60_000)
    assert max(seen) == (2, 1)
    seen.clear()
    short = calibrated(several, 1000, 0.5)  # a sample takes a second: the heavy ones are taken to grow with both
    assert set(seen) == {(1, 1)}
    assert short.release.at(3000)[1] == pytest.approx(5.0 * 15)
