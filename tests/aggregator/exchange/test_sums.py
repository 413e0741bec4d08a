"""Secure sums between sites: the plain total, whatever ends in between; below a quorum nothing."""

import json

import numpy as np
import pytest
from support.summing_sites import town

from aggregator.exchange.app import run_exchange
from aggregator.exchange.sums import over
from aggregator.protocols.mean_operator import moment_session
from federation.contract.errors import QuorumError
from federation.sums.memory import Record
from federation.sums.messages import AGREE, KEYS, MASKED, SHARES, UNMASK

QUERIES = (KEYS, SHARES, MASKED, AGREE, UNMASK)


@pytest.fixture
def three(tmp_path, monkeypatch, flower_process):
    return town(tmp_path, monkeypatch)


@pytest.fixture
def totals(monkeypatch):
    """What collectors take."""
    found = []
    real = moment_session.SharedMoments.take_total
    monkeypatch.setattr(
        moment_session.SharedMoments,
        "take_total",
        lambda self, opened, whole: (found.append((opened, whole)), real(self, opened, whole))[1],
    )
    return found


def run(post, number="001", patience=5.0):
    return run_exchange(post, post.folder.path, number, patience, 60.0)


def plain(post, names):
    return sum(post.parts[name][-1] for name in names)


def test_the_total_is_that_of_plain_sums_and_is_released(three, totals):
    outcome = run(three)
    assert outcome["status"] == "released"
    [(opened, whole)] = totals
    np.testing.assert_array_equal(whole, plain(three, three.keys))
    assert opened.parties.tolist() == [0, 1, 2]
    assert set(opened.arrays) == {"size"}
    assert sorted(three.letters) == sorted((name, query) for name in three.keys for query in QUERIES)
    world = json.loads((three.folder.release("001") / "world.json").read_text())
    assert world["answered"] == 3
    for name in three.keys:
        assert [len(three.parts[name]), len(three.lines(name, "charged"))] == [1, 1]
        [path] = three.memory(name)
        assert Record.read(path.read_bytes()).root == b""  # it has destroyed its secrets
    assert over(three.folder.exchange("001")) is None


@pytest.mark.parametrize("query", QUERIES)
def test_a_site_that_is_killed_before_a_query_goes_on(three, totals, query):
    three.before = lambda name, asked: three.again(name) if asked == query else None
    assert run(three)["status"] == "released"
    np.testing.assert_array_equal(totals[0][1], plain(three, three.keys))
    assert all(len(three.lines(name, "charged")) == 1 for name in three.keys)


@pytest.mark.parametrize("query", QUERIES)
def test_an_interrupted_coordinator_goes_on_and_nobody_computes_or_pays_twice(three, totals, query):
    """It is interrupted after one site has answered."""

    def before(name, asked):
        if (name, asked) == ("south", query):
            raise KeyboardInterrupt

    three.before = before
    conduct = three.pull_messages

    def pulled(names):  # as if everything ended at once
        try:
            return list(conduct(names))
        except KeyboardInterrupt:
            three.conduct["all"] = "ended"
            return []

    three.pull_messages = pulled
    with pytest.raises(QuorumError):
        run(three, patience=0.3)
    if query == KEYS:
        assert over(three.folder.exchange("001")) is None
        three.before = lambda name, asked: None
        three._out.clear()
        assert run(three)["status"] == "released"
        np.testing.assert_array_equal(totals[0][1], plain(three, three.keys))
        assert all(len(parts) == 1 for parts in three.parts.values())
    else:
        assert over(three.folder.exchange("001")) is not None
