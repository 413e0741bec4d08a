import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
from support.two_class_cohorts import deployed
from support.two_class_questions import marginals, unseeded
from support.worlds import SYNTHETIC

from federation.contract.errors import BudgetExceededError, InputError, QuorumError
from federation.contract.guarantee import Adjacency, Guarantee, Unit
from federation.contract.question import ReleaseId
from federation.grids.launch import open_grid, run_server_app
from federation.grids.nodes import Placement
from federation.mechanisms.moments.calibrated_moments import calibrate as sum_noise
from parties.guard.allowance import Allowance
from parties.guard.answering import answered

A, B, C = (ReleaseId(name) for name in ("a", "b", "c"))


def spend(allowance, party, guarantee, release):
    """Of one party, which raises its refusal."""
    for refusal in allowance.spend([party], guarantee, release).values():
        raise refusal


def pure(epsilon, unit=Unit.LABEL):
    return Guarantee(epsilon, 0.0, unit, Adjacency.REPLACE, "lattice_laplace")


def test_a_party_answers_while_its_allowance_lasts(tmp_path):
    allowance = Allowance(tmp_path / "spent.json", 1.0, 0.0)
    spend(allowance, 0, pure(0.5), A)
    spend(allowance, 0, pure(0.5), B)
    with pytest.raises(BudgetExceededError, match=r"spend epsilon=1\.5, .* \(2 releases are in "):
        spend(allowance, 0, pure(0.5), C)
    assert len(json.loads((tmp_path / "spent.json").read_text())["0"]) == 2


def test_what_was_spent_is_remembered_by_another_process_and_per_party(tmp_path):
    spend(Allowance(tmp_path / "spent.json", 1.0, 0.0), 3, pure(1.0), A)
    again = Allowance(tmp_path / "spent.json", 1.0, 0.0)
    spend(again, 4, pure(1.0), A)
    with pytest.raises(BudgetExceededError):
        spend(again, 3, pure(0.1), B)


def test_releases_for_different_units_have_no_total(tmp_path):
    allowance = Allowance(tmp_path / "spent.json", 9.0, 0.0)
    spend(allowance, 0, pure(1.0, Unit.ROW), A)
    with pytest.raises(InputError, match="unit"):
        spend(allowance, 0, pure(1.0), B)
    spend(allowance, 0, pure(1.0, Unit.ROW), B)  # the refused one left no trace


def test_every_exchange_is_paid_for_by_itself(tmp_path):
    """A query of one that began is free, the same query of another is not."""
    allowance = Allowance(tmp_path / "spent.json", 2.0, 0.0)
    for name, query in (("first", 0), ("second", 1), ("first", 1), ("second", 0)):
        spend(allowance, 0, pure(1.0), ReleaseId(name, 2, query))
    with pytest.raises(BudgetExceededError):
        spend(allowance, 0, pure(1.0), ReleaseId("third", 2, 0))
    spent = json.loads((tmp_path / "spent.json").read_text())["0"]
    assert [(record["release"], record["answered"]) for record in spent] == [("first", [0, 1]), ("second", [1, 0])]


def test_the_same_query_in_an_exchange_with_another_guarantee_is_refused(tmp_path):
    allowance = Allowance(tmp_path / "spent.json", 9.0, 0.0)
    spend(allowance, 0, pure(1.0), ReleaseId("one", 3, 0))
    with pytest.raises(InputError, match="began with another guarantee"):
        spend(allowance, 0, pure(8.0), ReleaseId("one", 3, 1))
    with pytest.raises(InputError, match="query 0 of this release was answered before"):
        spend(allowance, 0, pure(1.0), ReleaseId("one", 3, 0))


def test_gaussian_releases_are_composed_at_the_delta_of_the_allowance(tmp_path):
    allowance = Allowance(tmp_path / "spent.json", 1.6, 1e-6)
    noise = sum_noise("gaussian", dimension=3, epsilon=1.0, delta=1e-6, rows=10)
    for release in (A, B):  # by adding up, epsilon would be 2 and delta 2e-6
        spend(allowance, 0, noise.guarantee(), release)
    with pytest.raises(BudgetExceededError):
        spend(allowance, 0, noise.guarantee(), C)


@pytest.mark.parametrize("deltas", [(1.01e-6,), (2e-6,), (1e-5,), (0.6e-6, 0.6e-6), (1e-6, 1e-8), (0.4e-6,) * 3])
def test_delta_is_part_of_the_allowance(tmp_path, deltas):
    """Whatever epsilon would be left, and however little delta is above."""
    allowance = Allowance(tmp_path / "spent.json", 9.0, 1e-6)
    *before, last = (Guarantee(0.1, delta, Unit.LABEL, Adjacency.REPLACE, "sampled") for delta in deltas)
    for number, release in enumerate(before):
        spend(allowance, 0, release, ReleaseId(str(number)))
    with pytest.raises(BudgetExceededError, match="its allowance is epsilon=9, delta=1e-06"):
        spend(allowance, 0, last, C)


def test_all_of_an_allowance_may_be_spent_and_one_of_nothing_pays_for_nothing(tmp_path):
    allowance = Allowance(tmp_path / "spent.json", 0.3, 3e-6)
    for release in (A, B, C):  # whose sums are above, by rounding
        spend(allowance, 0, Guarantee(0.1, 1e-6, Unit.LABEL, Adjacency.REPLACE, "sampled"), release)
    nothing = Allowance(tmp_path / "nothing.json", 0.0, 0.0)
    with pytest.raises(BudgetExceededError):
        spend(nothing, 0, pure(1e-9), A)


@pytest.mark.parametrize("text", ["", "{}", '{"ledger": "a", "epsilon": "x", "delta": 0}', "[1]"])
def test_an_allowance_that_cannot_be_read_is_refused(text):
    with pytest.raises(InputError, match="allowance"):
        Allowance.from_json(text)


def test_an_allowance_is_read_from_a_nodes_configuration(tmp_path):
    text = json.dumps({"ledger": str(tmp_path / "spent.json"), "epsilon": 2, "delta": 1e-6})
    assert Allowance.from_json(text) == Allowance(tmp_path / "spent.json", 2.0, 1e-6)
    trusting = json.dumps({**json.loads(text), "trusted_answers": 3})
    assert Allowance.from_json(trusting) == Allowance(tmp_path / "spent.json", 2.0, 1e-6, 3)


def test_answers_on_trust_are_counted_for_each_party_and_kept(tmp_path):
    allowance = Allowance(tmp_path / "spent.json", 1.0, 0.0, 2)
    allowance.trust([0, 1], "votes")
    Allowance(tmp_path / "spent.json", 1.0, 0.0, 2).trust([1], "statistic")
    before = allowance.ledger.read_text()
    assert json.loads(before) == {"0": [{"trusted": "votes"}], "1": [{"trusted": "votes"}, {"trusted": "statistic"}]}
    with pytest.raises(BudgetExceededError, match=r'has given 2 of 2 answers without noise.*raise "trusted_answers"'):
        allowance.trust([0, 1], "votes")
    assert allowance.ledger.read_text() == before  # nor has the party that may have paid
    allowance.trust([0, 2], "votes")
    Allowance(tmp_path / "spent.json", 1.0, 0.0, 3).trust([0, 1], "votes")


def test_answers_on_trust_and_releases_do_not_count_as_each_other(tmp_path):
    allowance = Allowance(tmp_path / "spent.json", 1.0, 0.0, 1)
    spend(allowance, 0, pure(0.5), A)
    allowance.trust([0], "votes")
    spend(allowance, 0, pure(0.5), B)
    with pytest.raises(BudgetExceededError, match="without noise"):
        allowance.trust([0], "votes")
    with pytest.raises(BudgetExceededError, match="2 releases are in"):
        spend(allowance, 0, pure(0.5), C)


def test_an_allowance_trusts_nobody_unless_it_says_so(tmp_path):
    allowance = Allowance(tmp_path / "spent.json", 1e9, 0.5)
    with pytest.raises(InputError, match='with one as often as "trusted_answers" in it says'):
        allowance.trust([0], "votes")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", ["-1", "1.0", "true", "NaN", "Infinity", '"1"', "null"])
def test_answers_on_trust_are_a_whole_number(tmp_path, number):
    text = f'{{"ledger": "{tmp_path}/a", "epsilon": 1, "delta": 0, "trusted_answers": {number}}}'
    with pytest.raises(InputError, match="trusted_answers of an allowance must be a whole number from 0"):
        Allowance.from_json(text)


def test_of_nodes_that_trust_at_once_as_many_answer_as_may(tmp_path):
    allowance = Allowance(tmp_path / "spent.json", 1.0, 0.0, 5)
    with ThreadPoolExecutor(8) as pool:
        given = [pool.submit(allowance.trust, [0], "votes") for _ in range(30)]
    assert sum(one.exception() is None for one in given) == 5


@pytest.mark.parametrize(("epsilon", "delta"), [("NaN", 0), (-1, 0), (1, "NaN"), (1, 1), (1, -1e-9)])
def test_an_allowance_is_a_number_that_can_be_exceeded(tmp_path, epsilon, delta):
    with pytest.raises(InputError, match="epsilon from 0"):
        Allowance.from_json(f'{{"ledger": "{tmp_path}/a", "epsilon": {epsilon}, "delta": {delta}}}')


def test_a_new_ledger_and_its_folder_are_on_the_disk_before_an_answer_is_given(tmp_path, monkeypatch):
    written, folders, fsync = [], [], os.fsync

    def watched(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            folders.append(descriptor)
            assert os.path.samestat(os.fstat(descriptor), os.stat(tmp_path))
            assert (tmp_path / "spent.json").exists()
        else:
            written.append(json.loads((tmp_path / "spent.json.new").read_text()))
        fsync(descriptor)

    with monkeypatch.context() as watching:
        watching.setattr(os, "fsync", watched)
        spend(Allowance(tmp_path / "spent.json", 1.0, 0.0), 0, pure(1.0), A)
    assert written == [json.loads((tmp_path / "spent.json").read_text())]
    [folder] = folders
    with pytest.raises(OSError, match="Bad file descriptor"):  # it was closed
        os.fstat(folder)


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_write_that_is_interrupted_forgets_nothing(tmp_path, monkeypatch, step):
    allowance = Allowance(tmp_path / "spent.json", 1.0, 0.0)
    spend(allowance, 0, pure(1.0), A)
    before = allowance.ledger.read_text()

    def full(*_):
        raise OSError("no space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(os, step, full)
        with pytest.raises(OSError, match="space"):
            spend(allowance, 1, pure(1.0), A)
    assert allowance.ledger.read_text() == before
    with pytest.raises(BudgetExceededError):
        spend(allowance, 0, pure(0.1), B)


UNNAMED, NAMED = '{"epsilon": 1.0}', '{"release": "a", "answered": [0]}'  # without a guarantee
BOTH = '{"trusted": "votes", "epsilon": 1.0}'


@pytest.mark.parametrize(
    "content",
    ["", '{"0": [', "null", "[]", '{"0": null}', f'{{"0": [{UNNAMED}]}}', f'{{"0": [{NAMED}, {UNNAMED}]}}',
     f'{{"0": [{NAMED}], "1": null}}', f'{{"0": [{BOTH}]}}', '{"0": [{"release": "a", "answered": 0}]}'],
)  # fmt: skip
def test_a_damaged_ledger_ends_the_answers(tmp_path, content):
    allowance = Allowance(tmp_path / "spent.json", 1.0, 0.0)
    allowance.ledger.write_text(content)
    with pytest.raises(InputError, match="restore it"):
        spend(allowance, 0, pure(0.1), A)


def test_a_link_to_a_ledger_stands_for_it(tmp_path):
    """A new file in its place would leave others, who know the ledger by its own name, with the old one."""
    (tmp_path / "link.json").symlink_to(tmp_path / "spent.json")
    spend(Allowance(tmp_path / "spent.json", 1.0, 0.0), 0, pure(0.5), A)
    spend(Allowance(tmp_path / "link.json", 1.0, 0.0), 0, pure(0.5), B)
    with pytest.raises(BudgetExceededError):
        spend(Allowance(tmp_path / "spent.json", 1.0, 0.0), 0, pure(0.5), C)


def test_a_link_into_a_folder_that_is_gone_ends_the_answers(tmp_path):
    (tmp_path / "spent.json").symlink_to(tmp_path / "gone" / "spent.json")
    with pytest.raises(OSError, match="gone"):
        spend(Allowance(tmp_path / "spent.json", 1.0, 0.0), 0, pure(0.5), A)


def test_a_ledger_does_not_depend_on_the_folder_in_which_a_node_starts():
    with pytest.raises(InputError, match="absolute"):
        Allowance.from_json('{"ledger": "spent.json", "epsilon": 1, "delta": 0}')


def test_parties_that_spend_at_once_do_not_miss_each_other(tmp_path):
    allowance = Allowance(tmp_path / "spent.json", 10.0, 0.0)
    with ThreadPoolExecutor(8) as pool:
        spent = [pool.submit(spend, allowance, 0, pure(1.0), ReleaseId(str(number))) for number in range(30)]
    assert sum(one.exception() is None for one in spent) == 10


def test_all_parties_of_a_question_pay_in_one_write_and_who_cannot_is_refused_alone(tmp_path, monkeypatch):
    allowance = Allowance(tmp_path / "spent.json", 1.0, 0.0)
    spend(allowance, 1, pure(0.5), A)
    spend(allowance, 3, pure(0.5), ReleaseId("b", 2, 1))
    spend(allowance, 4, pure(1.0, Unit.ROW), A)
    synced, fsync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(descriptor) or fsync(descriptor))
    refused = allowance.spend(range(6), pure(0.6), B)
    assert len(synced) == 2  # the ledger and its folder
    assert {party: type(refusal) for party, refusal in refused.items()} == {
        1: BudgetExceededError, 3: InputError, 4: InputError,
    }  # fmt: skip
    assert [str(refusal)[:40] for refusal in refused.values()] == [
        "this party's releases would spend epsilo", "this release began with another guarante",
        "guarantees must share one unit and adjac",
    ]  # fmt: skip
    spent = json.loads(allowance.ledger.read_text())
    assert {party: [record["release"] for record in known] for party, known in spent.items()} == {
        "0": ["b"], "1": ["a"], "2": ["b"], "3": ["b"], "4": ["a"], "5": ["b"],
    }  # fmt: skip
    assert [record["answered"] for record in spent["3"]] == [[1]]


def test_where_all_are_refused_nothing_is_written(tmp_path):
    allowance = Allowance(tmp_path / "spent.json", 1.0, 0.0)
    assert list(allowance.spend(range(3), pure(1.5), A)) == [0, 1, 2]
    assert not allowance.ledger.exists()


def test_parties_with_other_releases_are_charged_for_their_own(tmp_path):
    """What releases cost together is computed once for those who have released the same."""
    allowance = Allowance(tmp_path / "spent.json", 2.0, 0.0)
    allowance.spend(range(3), pure(0.5), A)
    spend(allowance, 1, pure(0.5), B)
    spend(allowance, 2, pure(0.1), B)
    spend(allowance, 2, pure(0.4), ReleaseId("d"))
    assert list(allowance.spend(range(4), pure(1.5), C)) == [1, 2]
    assert list(allowance.spend(range(5), pure(0.5), ReleaseId("e"))) == [0]


def test_of_parties_that_answer_one_query_at_once_one_does(tmp_path):
    allowance = Allowance(tmp_path / "spent.json", 10.0, 0.0)
    with ThreadPoolExecutor(8) as pool:
        spent = [pool.submit(spend, allowance, 0, pure(1.0), A) for _ in range(30)]
    assert sum(one.exception() is None for one in spent) == 1


def test_a_release_of_one_answer_is_answered_once(tmp_path):
    """By its name, not by what it costs: the same noise again would be averaged away, or be the same bits."""
    allowance = Allowance(tmp_path / "spent.json", 9.0, 0.0)
    spend(allowance, 0, pure(1.0), A)
    before = allowance.ledger.read_text()
    with pytest.raises(InputError, match="query 0 of this release was answered before; each is answered once"):
        spend(allowance, 0, pure(1.0), A)
    with pytest.raises(InputError, match="began with another guarantee"):
        spend(allowance, 0, pure(0.5), A)
    assert allowance.ledger.read_text() == before
    spend(allowance, 1, pure(1.0), A)  # another party has not answered it


def test_a_deployed_party_stops_when_its_allowance_is_spent(tmp_path):
    node = deployed(tmp_path, epsilon=1.2)
    exchanges = [
        replace(question, release=replace(question.release, name=name))
        for name in ("first", "second")
        for question in (unseeded(marginals(query=0)), unseeded(marginals(query=1)))
    ]
    assert [len(answered(node, question).failures) for question in exchanges] == [0, 0, 1, 1]


def test_a_party_of_a_node_that_cannot_pay_costs_no_other(tmp_path, caplog):
    node = replace(deployed(tmp_path, epsilon=1.2), count=4, first=10)
    first, second = (replace(unseeded(marginals()), release=ReleaseId(name)) for name in ("first", "second"))
    answered(replace(node, first=12, count=1), first)
    with caplog.at_level("DEBUG"):
        answer = answered(node, second)
    assert (answer.parties.tolist(), list(answer.failures)) == ([10, 11, 13], [12])
    [told] = caplog.records
    assert str(told.exc_info[1]).startswith("this party's releases would spend epsilon=2")


@pytest.mark.parametrize("noise", ["pure", "gaussian"])
def test_an_allowance_of_what_an_exchange_claims_pays_for_all_of_it(tmp_path, noise):
    node = deployed(tmp_path, epsilon=1.0, delta=1e-5)
    queries = [unseeded(marginals(noise, queries=3, query=query)) for query in range(3)]
    assert [answered(node, question).failures for question in queries] == [{}, {}, {}]
    other = replace(queries[1], noise=replace(queries[1].noise, epsilon=0.5))
    assert list(answered(node, other).failures) == [0]


def test_a_plan_whose_noise_is_the_aggregators_is_answered_as_often_as_parties_trust(make_plan, tmp_path):
    """Also by nodes that trusted whoever asked before they had an allowance; above it nothing is released."""
    ledger = tmp_path / "spent.json"

    class Deployed(Placement):
        allowance: ClassVar[dict[str, str]] = {}

        def config(self, partition):
            return {key: value for key, value in super().config(partition).items() if key != "seed"} | self.allowance

    plan = replace(make_plan(draws=1, noise_seed=None), simulation=False, parties_per_node=8)
    plan.save(tmp_path / "plan.json")

    def released():
        grid = open_grid("inline")
        grid.assign(Deployed(plan.parties, 8, SYNTHETIC, seed=1))
        run_server_app(grid, {"plan": str(tmp_path / "plan.json")})
        return json.loads((Path(plan.directory) / "world.json").read_text())["answered"]

    assert released() == plan.parties
    trusting = {"ledger": str(ledger), "epsilon": 1.0, "delta": 0.0, "trusted_answers": 1}
    Deployed.allowance = {"allowance": json.dumps(trusting)}
    assert released() == plan.parties
    asked = json.loads(ledger.read_text())
    assert set(asked) == {str(party) for party in range(plan.parties)}
    assert [record.keys() for record in asked["0"]] == [{"trusted"}]
    with pytest.raises(QuorumError, match=f"0 of {plan.parties} parties answered"):
        released()
    assert json.loads(ledger.read_text()) == asked
