"""A sample is the same world with fewer parties: their rows, questions and answers, and none of its files."""

import logging

import pytest

from aggregator.collectors.collectors import Answers
from scenarios.estimates import rates as samples
from scenarios.estimates.rates import sampled


def test_bytes_and_what_is_held_are_those_of_so_many_parties(world):
    whole = world()
    few, more = (sampled(whole, parties, 40, parties, individual=False) for parties in (20, 80))
    assert (few.nodes, more.nodes, few.messages, more.messages) == (1, 2, 1, 1)
    # a party sends its id and 40 votes of a bit each, and is known to have answered by one byte; a node sends headers
    assert (more.sent - 2 * few.sent) / 40 == pytest.approx(8 + 5)
    assert more.held - few.held == 60
    assert few.asked == more.asked > 0
    assert 0 < few.answering < few.processor
    assert few.missing == ()


def test_parties_on_their_own_are_scored_only_where_that_is_asked(world):
    whole = world()
    alone = sampled(whole, 20, 50, 1, individual=True)
    assert alone.messages > sampled(whole, 20, 50, 2, individual=False).messages


def test_no_turn_finds_what_the_last_has_trained(world, monkeypatch):
    seeds = []
    real = samples._with

    def watched(*arguments):
        found = real(*arguments)
        seeds.append(found.spec.seed)
        return found

    monkeypatch.setattr(samples, "_with", watched)
    for turn in (0, 1):
        sampled(world(), 10, 10, turn, individual=False)
    assert len(set(seeds)) == 2


@pytest.mark.parametrize("bags", [1, 4])
def test_parties_who_share_all_rows_hold_as_many_each_in_a_sample(world, bags):
    protocol = "soft_vote" if bags == 1 else "class_ratio"
    whole = world("data.source=digits", "parties.count=100", "parties.rows=null", f"parties.bags={bags}",
                  f"protocols=[{{kind: {protocol}}}]")  # fmt: skip
    fewer = samples._with(whole, 10, 10, 0, False)
    average = len(whole.split.cut.order) / 100
    assert average - bags < len(fewer.split.cut.order) / 10 <= average
    assert fewer.split.cut.parties == 10


def test_what_a_variant_of_few_parties_has_to_say_is_not_said(world, caplog):
    before = logging.root.manager.disable
    sampled(world("privacy.epsilon=0.0001"), 10, 10, 0, individual=False)
    assert caplog.records == []
    assert logging.root.manager.disable == before


def test_arrays_are_counted_wherever_they_are_kept():
    import numpy as np

    class Kept(Answers):
        def __init__(self):
            self.question = np.zeros(1000)
            self.one, self.several, self.named = np.zeros(2), [np.zeros(1), (np.zeros(1),)], {"a": np.zeros(4)}

        def _faults(self, submission):
            return {}

        def _keep(self, parties, arrays):
            pass

    assert samples._held(Kept()) == 8 * 8
