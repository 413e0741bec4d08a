"""Sums with a second server by letters: the plain total, one list, and nobody asked or charged twice."""

import numpy as np
import pytest
from support.summing_sites import town

from aggregator.collectors.row_sums import SharedMoments
from aggregator.exchange.app import run_exchange
from aggregator.exchange.exchange import JOURNALS
from aggregator.exchange.secure_aggregation import last_sum, over
from aggregator.secure_aggregation.server import AddingServer
from federation.contract.errors import InputError, QuorumError
from federation.secure_aggregation.messages import KEYS
from federation.signed_messages.aggregation_messages import MASKS, SumAnswer
from federation.signed_messages.messages import padded_answer
from scenarios.deployment.collecting import progress

SITES = ("north", "south", "west", "east", "centre")


@pytest.fixture
def five(tmp_path, monkeypatch, flower_process):
    return town(tmp_path, monkeypatch, SITES, parties={"quorum": 0.8}, servers="two")


@pytest.fixture
def totals(monkeypatch):
    """What collectors take."""
    found, real = [], SharedMoments.take_total
    monkeypatch.setattr(
        SharedMoments, "take_total", lambda self, opened, whole: (found.append(whole), real(self, opened, whole))[1]
    )
    return found


def run(post):
    return run_exchange(post, post.folder.path, "001", 60.0, 60.0)


def plain(post, but=()):
    return sum(post.parts[name][-1] for name in SITES if name not in but)


def paid(post):
    return {len(post.lines(name, "charged")) for name in SITES}


def test_the_total_is_the_plain_sum_and_each_site_is_asked_once(five, totals):
    five.before = lambda name, asked: five.again(name)
    assert run(five)["status"] == "released"
    np.testing.assert_array_equal(totals[0], plain(five))
    assert sorted(five.letters) == sorted([*((name, KEYS) for name in SITES), (five.second, MASKS)])
    assert paid(five) == {1}
    [line] = five.lines(five.second, "told the sum of masks")
    assert (line["counted"], line["of"]) == (5, 5)
    assert str(progress(five.folder, "001")).startswith(
        "the second server 'ombud' has told the masks of the secure sum"
    )
    journals = five.folder.exchange("001").parent / JOURNALS
    assert five.sites[five.second].journal.holds((journals / five.second).read_text())
    assert max(len(letter["question"]) for letter in five.letters.values()) <= five.agreement.longest_question
    ledger = (five.folder.release("001") / "world.json").read_text()
    assert "two servers that do not collude, in letters between real parties" in ledger


def test_a_site_may_be_away_once_it_has_sent_its_part_or_before(five, totals):
    five.conduct["south"] = "silent"
    five.before = lambda name, asked: five.conduct.update(west="away") if name == five.second else None
    assert run(five)["status"] == "released"
    np.testing.assert_array_equal(totals[0], plain(five, but=["south"]))


@pytest.mark.parametrize("conduct", ["silent", "away"])
def test_a_second_server_that_is_away_is_asked_again_later_and_no_site_is(five, totals, conduct):
    five.conduct[five.second] = conduct
    with pytest.raises(QuorumError, match=r"server 'ombud' has not told the sum of the masks .*collect again"):
        run(five)
    assert over(five.folder.exchange("001")) is None
    assert last_sum(five.folder.exchange("001")).lacking(5) == [(5, True)]
    assert str(progress(five.folder, "001")).startswith("the second server 'ombud' has not told the masks")
    assert not five.folder.release("001").exists()
    asked = {name: letter for (name, _), letter in five.letters.items() if name in SITES}
    five.conduct.clear()
    five._out.clear()
    five.letters.clear()
    assert run(five)["status"] == "released"
    assert [*five.letters] == [(five.second, MASKS)]
    assert len(asked) == 5
    np.testing.assert_array_equal(totals[0], plain(five))
    assert paid(five) == {1}


def test_a_refusal_is_told_by_name(five):
    five.sites[five.second].approved = _denied
    with pytest.raises(QuorumError, match=r"'ombud' has not told the sum of the masks \(it refused; its own log"):
        run(five)


def _denied(head):
    raise InputError("ada has denied it")


def test_below_a_quorum_it_goes_on_with_the_same_uploads(five, totals):
    five.conduct.update(south="silent", west="silent")
    with pytest.raises(QuorumError, match="collect again once more sites are there"):
        run(five)
    assert (five.second, MASKS) not in five.letters
    first = {name: five.replies[name, KEYS] for name in ("north", "east", "centre")}
    five.conduct.clear()
    five._out.clear()
    five.letters.clear()
    assert run(five)["status"] == "released"
    assert sorted(name for name, query in five.letters if query == KEYS) == ["south", "west"]
    assert {name: five.replies[name, KEYS] for name in first} == first
    np.testing.assert_array_equal(totals[0], plain(five))
    assert paid(five) == {1}


def test_a_coordinator_that_is_killed_anywhere_goes_on_with_one_list(five, totals, monkeypatch):
    """After a site's part came, before the list is closed, before the second server is asked, and after it has told."""
    five.conduct["south"] = "silent"
    pending = ["take", "close", "receipts", "total"]

    def dying(what, real):
        def act(self, *given):
            if pending[:1] == [what]:
                del pending[0]
                raise KeyboardInterrupt
            return real(self, *given)

        return act

    for name in pending:
        monkeypatch.setattr(AddingServer, name, dying(name, getattr(AddingServer, name)))
    for left in (3, 2, 1, 0):
        with pytest.raises(KeyboardInterrupt):
            run(five)
        assert len(pending) == left
        five._out.clear()
    five.conduct.clear()  # it comes too late: the list was closed
    asked = len(five.letters)
    assert run(five)["status"] == "released"
    assert len(five.letters) == asked
    np.testing.assert_array_equal(totals[0], plain(five, but=["south"]))
    assert {len(five.lines(name, "charged")) for name in SITES if name != "south"} == {1}
    assert len(five.lines(five.second, "told the sum of masks")) == 1
    assert not any(five.lines(name, "refused") for name in five.keys)


@pytest.mark.parametrize("told", [lambda body: SumAnswer(body[:-1]), lambda body: _Nothing()], ids=["short", "nothing"])
def test_what_is_no_sum_of_masks_is_refused(five, monkeypatch, told):
    monkeypatch.setattr("parties.helper_server.SumAnswer", told)
    with pytest.raises(InputError, match=r"'ombud' has told no sum of masks of .* --new-exchange"):
        run(five)


class _Nothing:
    """An answer without records."""

    def packet(self):
        return padded_answer(b"", 0)
