"""Slopes between samples: the same trial with fewer parties, their rows, queries and answers, and none of its files."""

import logging

import numpy as np
import pytest

from aggregator.collectors.collectors import Answers
from federation.contract.errors import QuorumError
from scenarios.estimates import rates

VOTES = "protocols=[{kind: soft_vote}]"


def sample(parties, **changes):
    """One of a world that takes a second, and 1 ms for each party."""
    fields = {
        "nodes": 1, "messages": 1, "answering": 0.1 + 1e-3 * parties, "gathering": 0.2, "release": 0.3, "scoring": 0.4,
        "sent": 20 * parties, "asked": 1000, "held": 500 + parties, "wall": 2.0 + 2e-3 * parties,
        "processor": 1.0 + 1e-3 * parties, "peaks": {"collect": 100.0}, "missing": (),
    }  # fmt: skip
    return rates.Sample(parties=parties, **{**fields, **changes})


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
    found = rates.calibrated(world(), 2000, 60.0)
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


def test_no_sample_is_larger_than_two_nodes_or_the_world_and_a_second_is_taken_even_without_time(world, served):
    rates.calibrated(world("parties.count=40"), 4096, 60.0)
    rates.calibrated(world(), 20, 60.0)
    assert max(parties for parties, _, individual in served if not individual) == 40
    served.clear()
    rates.calibrated(world(VOTES), 4096, 0.0)
    assert served == [(32, 0, False), (32, 1, False)]  # a sample takes a second by itself


def test_what_the_aggregator_does_grows_only_where_that_shows(world, monkeypatch):
    def growing(world, parties, *_, individual, releases):
        return sample(parties, release=0.4 + 1e-3 * parties, scoring=1e-3 * parties)

    monkeypatch.setattr(rates, "sampled", growing)
    found = rates.calibrated(world(VOTES), 1000, 60.0)
    assert found.release.each == pytest.approx(1e-3)
    assert found.scoring.each == 0.0  # nothing is scored that depends on the parties
    pooled = rates.calibrated(world("protocols=[{kind: soft_vote}, {kind: pooled}]"), 1000, 60.0)
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
    rates.calibrated(world(), 4096, 60.0)
    assert served[0][0] == 128
    monkeypatch.setattr(rates, "sampled", lambda *_, **__: strict(None, 1, 1, 1, individual=False))
    with pytest.raises(QuorumError):
        rates.calibrated(world(), 4096, 60.0)


def test_a_world_whose_first_sample_takes_too_long_gets_no_other(world, served):
    found = rates.calibrated(world("parties.count=20", VOTES), 20, 0.5)
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
    several = world(VOTES, "privacy.epsilon=[1, 2, 3]", "trials.noise=5")
    found = rates.calibrated(several, 1000, 60.0)
    assert found.release.at(3000)[1] == pytest.approx(5.0 * 15)
    assert found.scoring.at(3000)[1] == pytest.approx(2.0 * 3)
    assert found.answering.at(3000)[1] == pytest.approx(3.0 * 15)
    assert found.sent.at(3000)[1] == pytest.approx(60_000)
    assert max(seen) == (2, 1)
    seen.clear()
    short = rates.calibrated(several, 1000, 0.5)  # a sample takes a second: the heavy ones are taken to grow with both
    assert set(seen) == {(1, 1)}
    assert short.release.at(3000)[1] == pytest.approx(5.0 * 15)


@pytest.mark.slow
def test_bytes_and_what_is_held_are_those_of_so_many_parties(world):
    whole = world()
    few, more = (rates.sampled(whole, parties, 40, parties, individual=False) for parties in (20, 80))
    assert (few.nodes, more.nodes, few.messages, more.messages) == (1, 2, 1, 1)
    # a party sends its id and 40 votes of a bit each, and is known to have answered by one byte; a node sends headers
    assert (more.sent - 2 * few.sent) / 40 == pytest.approx(8 + 5)
    assert more.held - few.held == 60
    assert few.asked == more.asked > 0
    assert 0 < few.answering < few.processor
    assert few.missing == ()
    # Parties on their own are scored only where that is asked.
    alone, beside = (rates.sampled(whole, 20, 50, turn, individual=turn == 1) for turn in (1, 2))
    assert alone.messages > beside.messages


@pytest.mark.slow
def test_no_turn_finds_what_the_last_has_trained(world, monkeypatch):
    seeds = []
    real = rates._with

    def watched(*arguments):
        found = real(*arguments)
        seeds.append(found.spec.seed)
        return found

    monkeypatch.setattr(rates, "_with", watched)
    for turn in (0, 1):
        rates.sampled(world(), 10, 10, turn, individual=False)
    assert len(set(seeds)) == 2


@pytest.mark.parametrize("bags", [1, 4])
def test_parties_who_share_all_rows_hold_as_many_each_in_a_sample(world, bags):
    protocol = "soft_vote" if bags == 1 else "class_ratio"
    whole = world("data.source=digits", "parties.count=100", "parties.rows=null", f"parties.bags={bags}",
                  f"protocols=[{{kind: {protocol}}}]")  # fmt: skip
    fewer = rates._with(whole, 10, 10, 0, False)
    average = len(whole.split.cut.order) / 100
    assert average - bags < len(fewer.split.cut.order) / 10 <= average
    assert fewer.split.cut.parties == 10


@pytest.mark.slow
def test_what_a_variant_of_few_parties_has_to_say_is_not_said(world, caplog):
    before = logging.root.manager.disable
    rates.sampled(world("privacy.epsilon=0.0001"), 10, 10, 0, individual=False)
    assert caplog.records == []
    assert logging.root.manager.disable == before


def test_arrays_are_counted_wherever_they_are_kept():
    class Kept(Answers):
        def __init__(self):
            self.question = np.zeros(1000)
            self.one, self.several, self.named = np.zeros(2), [np.zeros(1), (np.zeros(1),)], {"a": np.zeros(4)}

        def _faults(self, submission):
            return {}

        def _keep(self, parties, arrays):
            pass

    assert rates._held(Kept()) == 8 * 8
