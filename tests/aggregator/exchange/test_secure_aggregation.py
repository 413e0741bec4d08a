"""Secure sums between sites: the plain total, whatever ends in between; below a quorum nothing.

Sums with a second server by letters: the plain total, one list, and nobody asked or charged twice.
"""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from support.summing_sites import town

from aggregator.collectors.collectors import Secure
from aggregator.exchange import secure_aggregation as sums
from aggregator.exchange.app import run_exchange
from aggregator.exchange.exchange import JOURNALS, Spent
from aggregator.exchange.secure_aggregation import last_sum, over
from aggregator.secure_aggregation.server import AddingServer, MaskedSum
from federation.contract.errors import InputError, QuorumError
from federation.secure_aggregation.messages import AGREE, KEYS, MASKED, SHARES, UNMASK
from federation.signed_messages.aggregation_messages import MASKS, SumAnswer
from federation.signed_messages.messages import padded_answer
from parties.secure_aggregation.party import Record
from scenarios.deployment.collecting import progress

QUERIES = (KEYS, SHARES, MASKED, AGREE, UNMASK)
SITES = ("north", "south", "west", "east", "centre")


@pytest.fixture
def three(tmp_path, monkeypatch, flower_process):
    return town(tmp_path, monkeypatch)


@pytest.fixture
def totals(monkeypatch):
    """What collectors take."""
    found, real = [], Secure.take_total

    def take(self, opened, whole):
        found.append((opened, whole))
        real(self, opened, whole)

    monkeypatch.setattr(Secure, "take_total", take)
    return found


def run(post, number="001"):
    return run_exchange(post, post.folder.path, number, 60.0, 60.0)


def plain(post, names):
    return sum(post.parts[name][-1] for name in names)


def well(post):
    """The same sites, from now on all there; letters are counted anew."""
    post.conduct.clear()
    post._out.clear()
    post.letters.clear()
    return post


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
    folder = three.folder.exchange("001").parent / JOURNALS
    assert sorted(path.name for path in folder.iterdir()) == sorted(three.keys)
    assert all(three.sites[name].journal.holds((folder / name).read_text()) for name in three.keys)


def test_a_server_that_is_believed_asks_four_queries_and_gets_the_plain_total(
    tmp_path, monkeypatch, flower_process, totals
):
    believed = town(tmp_path, monkeypatch, servers="one_semi_honest")  # to follow the protocol
    believed.before = lambda name, asked: believed.again(name)
    assert run(believed)["status"] == "released"
    np.testing.assert_array_equal(totals[0][1], plain(believed, believed.keys))
    asked = [query for query in QUERIES if query != AGREE]
    assert sorted(believed.letters) == sorted((name, query) for name in believed.keys for query in asked)
    assert all(len(believed.lines(name, "charged")) == 1 for name in believed.keys)
    assert str(progress(believed.folder, "001")).startswith("3 of 3 sites answered query 4 of 4 of the secure sum")
    ledger = (believed.folder.release("001") / "world.json").read_text()
    assert "one server that follows the protocol and only looks, in letters between real parties" in ledger


def test_sums_of_several_rounds_are_one_release_that_is_paid_for_once(tmp_path, monkeypatch, flower_process):
    post = town(tmp_path, monkeypatch, kind="error_marginals", options={"rounds": 2})
    assert run(post)["status"] == "released"
    for name in post.keys:
        events = [line["event"] for line in post.sites[name].journal.lines]
        assert [events.count(event) for event in ("begun", "charged", "answered in a secure sum")] == [2, 1, 10]
        assert events.index("charged") == 3
    assert last_sum(post.folder.exchange("001")).folder.name == "00001"
    assert max(len(letter["question"]) for letter in post.letters.values()) <= post.agreement.longest_question


def test_sites_that_are_killed_between_all_queries_go_on(three, totals):
    three.before = lambda name, asked: three.again(name)
    assert run(three)["status"] == "released"
    np.testing.assert_array_equal(totals[0][1], plain(three, three.keys))
    assert all(len(three.lines(name, "charged")) == 1 for name in three.keys)


@pytest.mark.parametrize("servers", ["one", pytest.param("one_semi_honest", marks=pytest.mark.slow)])
def test_a_coordinator_that_is_interrupted_in_all_queries_goes_on_and_nobody_computes_or_pays_twice(
    tmp_path, flower_process, totals, monkeypatch, servers
):
    """Each time the second of three answers has come."""
    three, queries = town(tmp_path, monkeypatch, servers=servers), QUERIES if servers == "one" else (0, 1, 2, 4)
    take, pending = MaskedSum.take, [*queries]

    def interrupted(self, party, answer):
        if pending[:1] == [self.query] and party == 1:
            del pending[0]
            raise KeyboardInterrupt
        take(self, party, answer)

    monkeypatch.setattr(MaskedSum, "take", interrupted)
    for _ in queries:
        with pytest.raises(KeyboardInterrupt):
            run(three)
        three._out.clear()
    assert run(three)["status"] == "released"
    np.testing.assert_array_equal(totals[0][1], plain(three, three.keys))
    assert all(len(three.parts[name]) == len(three.lines(name, "charged")) == 1 for name in three.keys)
    assert not any(three.lines(name, "refused") for name in three.keys)


@pytest.mark.parametrize("query", [pytest.param(SHARES, marks=pytest.mark.slow), AGREE])
def test_below_a_quorum_nothing_is_released_and_sites_destroy_their_secrets(three, query):
    three.before = lambda name, asked: three.conduct.update(south="silent") if (name, asked) == ("south", query) else 0
    with pytest.raises(QuorumError):
        run(three)
    folder = three.folder.exchange("001")
    assert over(folder)["masked"] is (query >= MASKED)
    assert not three.folder.release("001").exists()
    for name in ("north", "west"):
        [path] = three.memory(name)
        assert Record.read(path.read_bytes()).root == b""
    ledger = Spent.load(three.folder.ledger)
    assert bool(ledger.charged) is (query >= MASKED)  # what nobody has paid for is not set aside any longer
    three.before = lambda name, asked: None
    with pytest.raises(QuorumError, match="--new-exchange"):
        run(well(three))
    assert not three.letters
    if query < MASKED:
        assert run(three, "002")["status"] == "released"


def test_before_keys_are_there_it_is_not_over(three, totals):
    three.conduct["south"] = "silent"
    with pytest.raises(QuorumError):
        run(three)
    assert over(three.folder.exchange("001")) is None
    assert run(well(three))["status"] == "released"
    np.testing.assert_array_equal(totals[0][1], plain(three, three.keys))


@pytest.mark.parametrize("query", [MASKED, *(pytest.param(query, marks=pytest.mark.slow) for query in (KEYS, UNMASK))])
def test_a_site_that_falls_silent_is_absent_for_the_rest(tmp_path, monkeypatch, flower_process, totals, query):
    five = town(tmp_path, monkeypatch, SITES, parties={"quorum": 0.8})
    five.before = lambda name, asked: five.conduct.update(south="silent") if (name, asked) == ("south", query) else 0
    assert run(five)["status"] == "released"
    there = [name for name in five.keys if name != "south" or query > MASKED]  # what it had sent is in the sum
    [(opened, whole)] = totals
    np.testing.assert_array_equal(whole, plain(five, there))
    assert len(opened.parties) == len(there)
    assert max(asked for name, asked in five.letters if name == "south") < query if query else True
    world = json.loads((five.folder.release("001") / "world.json").read_text())
    assert world["failures"] == {"no usable answer": 1}


@pytest.mark.parametrize("said", [
    "another site's answer", pytest.param("a size beyond what was agreed on", marks=pytest.mark.slow),
    pytest.param("no answer", marks=pytest.mark.slow),
])  # fmt: skip
def test_a_hostile_site_is_left_out_and_costs_nobody_anything(tmp_path, monkeypatch, flower_process, totals, said):
    five = town(tmp_path, monkeypatch, SITES, parties={"quorum": 0.8})
    read = sums.read_opened

    def changed(opened, question):
        found = read(opened, question)
        if found.parties.tolist() != [1]:
            return found
        if said == "no answer":
            raise IndexError
        if said == "another site's answer":
            return replace(found, parties=np.array([2]))
        return replace(found, arrays={"size": np.array([1e9])})

    monkeypatch.setattr(sums, "read_opened", changed)
    assert run(five)["status"] == "released"
    np.testing.assert_array_equal(totals[0][1], plain(five, [name for name in five.keys if name != "south"]))


def test_how_far_a_sum_is(three):
    folder = three.folder.exchange("001")
    assert last_sum(folder) is None
    three.before = lambda name, asked: three.conduct.update(south="silent") if (name, asked) == ("south", AGREE) else 0
    with pytest.raises(QuorumError):
        run(three)
    stand = last_sum(folder)
    assert (stand.kind, stand.query) == ("mean_operator", AGREE)
    assert stand.lacking(3) == [(1, True)]
    assert re.search(r"2.*3.*4.*5.*mean_operator.*out.*south", str(progress(three.folder, "001")))


@pytest.fixture
def five(tmp_path, monkeypatch, flower_process):
    return town(tmp_path, monkeypatch, SITES, parties={"quorum": 0.8}, servers="two")


def paid(post):
    return {len(post.lines(name, "charged")) for name in SITES}


def test_the_total_is_the_plain_sum_and_each_site_is_asked_once(five, totals):
    five.before = lambda name, asked: five.again(name)
    assert run(five)["status"] == "released"
    np.testing.assert_array_equal(totals[0][1], plain(five, SITES))
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
    np.testing.assert_array_equal(totals[0][1], plain(five, [name for name in SITES if name != "south"]))


@pytest.mark.parametrize("conduct", [pytest.param("silent", marks=pytest.mark.slow), "away"])
def test_a_second_server_that_is_away_is_asked_again_later_and_no_site_is(five, totals, conduct):
    five.conduct[five.second] = conduct
    with pytest.raises(QuorumError, match="ombud"):
        run(five)
    assert over(five.folder.exchange("001")) is None
    assert last_sum(five.folder.exchange("001")).lacking(5) == [(5, True)]
    assert str(progress(five.folder, "001")).startswith("the second server 'ombud' has not told the masks")
    assert not five.folder.release("001").exists()
    asked = {name: letter for (name, _), letter in five.letters.items() if name in SITES}
    assert run(well(five))["status"] == "released"
    assert [*five.letters] == [(five.second, MASKS)]
    assert len(asked) == 5
    np.testing.assert_array_equal(totals[0][1], plain(five, SITES))
    assert paid(five) == {1}


def test_a_refusal_is_told_by_name(five):
    def denied(head):
        raise InputError("ada has denied it")

    five.sites[five.second].approved = denied
    with pytest.raises(QuorumError, match="ombud"):
        run(five)


def test_below_a_quorum_it_goes_on_with_the_same_uploads(five, totals):
    five.conduct.update(south="silent", west="silent")
    with pytest.raises(QuorumError):
        run(five)
    assert (five.second, MASKS) not in five.letters
    first = {name: five.replies[name, KEYS] for name in ("north", "east", "centre")}
    assert run(well(five))["status"] == "released"
    assert sorted(name for name, query in five.letters if query == KEYS) == ["south", "west"]
    assert {name: five.replies[name, KEYS] for name in first} == first
    np.testing.assert_array_equal(totals[0][1], plain(five, SITES))
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
    np.testing.assert_array_equal(totals[0][1], plain(five, [name for name in SITES if name != "south"]))
    assert {len(five.lines(name, "charged")) for name in SITES if name != "south"} == {1}
    assert len(five.lines(five.second, "told the sum of masks")) == 1
    assert not any(five.lines(name, "refused") for name in five.keys)


@pytest.mark.parametrize(
    "told",
    [lambda body: SumAnswer(body[:-1]), lambda body: SimpleNamespace(packet=lambda: padded_answer(b"", 0))],
    ids=["short", "without records"],
)
def test_what_is_no_sum_of_masks_is_refused(five, monkeypatch, told):
    monkeypatch.setattr("parties.helper_server.SumAnswer", told)
    with pytest.raises(InputError, match=r"ombud.*--new-exchange"):
        run(five)
