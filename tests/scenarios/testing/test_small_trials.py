"""Small trials of checks are equal in every process; the auditor's own pair of neighbours differs in one unit."""

from dataclasses import replace

import numpy as np
import pytest
from support.questions import PRIVATE, QUESTIONS
from support.refusals import refused

from aggregator.contract.protocol import Requires
from aggregator.contract.registry import protocol
from aggregator.contract.worst_case import PrivateWorstCase, Rows
from federation.contract.guarantee import Unit
from federation.contract.query import PrivateQuestion, Submission
from federation.engines.codec import decode_submission, encode_question
from federation.engines.nodes import Placement
from parties.party_data.cohort import DroppedOut, Tampering
from scenarios.testing import CheckFailed
from scenarios.testing import small_trials as small
from scenarios.testing.checks import Checked, _generic_audit

LAST = small.PARTIES - 1


def held(requires, party=0, mode="honest"):
    return small.provider(requires, mode).call().holdings(party)


def test_parties_hold_both_classes_in_every_bag_or_real_labels_in_the_range_that_the_plan_declares(tmp_path):
    found = held(Requires(bags=True))
    assert found.rows.shape == (small.ROWS, small.COLUMNS)
    assert found.class_codes(2).tolist() == found.labels.tolist()
    shares = [found.labels[found.bags == bag].mean() for bag in range(small.bags(Requires(bags=True)))]
    assert len(shares) == len(set(shares)) == 2
    assert all(0 < share < 1 for share in shares)
    assert set(held(Requires()).bags.tolist()) == {0}
    labels = held(Requires(labels="real")).labels
    assert 0 < labels.min() < labels.max() < 1
    plan = small.plan(protocol("label_sums"), "label_sums", {}, tmp_path)
    assert (plan.public.label_range, plan.task.classes) == ((0.0, 1.0), ())


def test_rows_are_equal_wherever_they_are_made_differ_between_parties_and_only_the_last_one_drops_out():
    first, again, other = held(Requires()), held(Requires()), held(Requires(), 1)
    assert first.rows.tobytes() == again.rows.tobytes()
    assert not np.isin(first.rows, other.rows).any()
    assert not np.isin(first.rows, small.public_table().rows).any()
    assert len(held(Requires(), LAST - 1, "dropped").rows) == small.ROWS
    with pytest.raises(DroppedOut):
        held(Requires(), LAST, "dropped")


def sent(mode, parties=(LAST - 1, LAST)):
    """What becomes of honest answers, a float and a count of each party."""
    arrays = {"sum": np.ones((len(parties), 2)), "count": np.full(len(parties), 3, np.int64)}
    provider = small.provider(Requires(), mode).call()
    assert isinstance(provider, Tampering)
    honest = Submission("x", np.array(parties), arrays)
    return honest, provider.sent(None, honest)


@pytest.mark.parametrize(("mode", "number"), [("nan", np.nan), ("huge", 1e300)])
def test_the_last_party_sends_what_nobody_can_use(mode, number):
    honest, found = sent(mode)
    np.testing.assert_array_equal(found.arrays["sum"], [[1, 1], [number, number]])
    assert found.arrays["count"].tolist() == [3, np.iinfo(np.int64).max]
    assert honest.arrays["sum"].tolist() == [[1, 1], [1, 1]]  # which is left as it was


def test_the_last_party_answers_twice():
    _, found = sent("twice")
    assert found.parties.tolist() == [LAST - 1, LAST, LAST]
    assert {name: len(array) for name, array in found.arrays.items()} == {"sum": 3, "count": 3}


@pytest.mark.parametrize(
    ("mode", "parties"),
    [("honest", (LAST - 1, LAST)), ("dropped", (LAST - 1, LAST)), *((one, (0, 1)) for one in ("nan", "huge", "twice"))],
)
def test_who_answers_honestly_and_nodes_without_the_last_party_send_what_they_are_asked(mode, parties):
    honest, found = sent(mode, parties)
    assert found is honest


def ask(grid, *questions):
    """The replies of a node with one party."""
    found = protocol("label_sums")
    grid.assign(Placement(1, 1, small.provider(found.requires), small.SEED))
    messages = [grid.create_message(encode_question(one), f"query.{one.kind}", 1, group_id="") for one in questions]
    return sorted(grid.send_and_receive(messages), key=lambda reply: int(reply.metadata.reply_to_message_id))


def test_sites_answer_with_noise_of_no_seed_note_what_they_charge_and_answer_nothing_twice():
    question = QUESTIONS["label_sums"]
    sent = set()
    for _ in range(2):
        grid = small.SitesGrid()
        [reply] = ask(grid, question)
        sent.add(decode_submission(reply.content, question.fields()).arrays["moment"].tobytes())
        assert [(cost.kind, cost.release) for cost in grid.costs[0]] == [("label_sums", "a release")]
        assert (grid.paid(0), grid.paid(1)) == (pytest.approx(1.0), 0.0)
    assert len(sent) == 2
    question, grid = QUESTIONS["label_sums"], small.SitesGrid()
    seeded, first, again = ask(grid, replace(question, seeded=True), question, question)
    assert "noise has no seed" in seeded.error.reason
    assert not first.has_error()
    assert "query 0 of a release was answered before" in again.error.reason
    assert grid.paid(0) == pytest.approx(1.0)


def test_a_plan_has_what_replaces_its_fields_and_can_be_run(tmp_path):
    found, grid = protocol("label_sums"), small.CountingGrid()
    plan = small.plan(found, "label_sums", {"noise": "pure"}, tmp_path / "new", epsilons=(2.0,), parties_per_node=3)
    assert (plan.releases.epsilons, plan.variants[0].options) == ((2.0,), {"noise": "pure"})
    release = small.run(plan, Placement(plan.terms.parties, 3, small.provider(found.requires), small.SEED), grid)
    assert release.exists()
    assert grid.asked == 2  # of each node one question


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["private_labels", "mean_operator", "class_ratio"]
)  # one query of an exchange tells less
def test_a_pair_of_our_own_finds_a_claim_that_is_a_tenth_of_the_truth(kind, monkeypatch):
    """Whatever pair the protocol supplies, the claim is audited on one that the auditor makes.

    That the honest claim stands on it is among the checks of every protocol (`test_checks`).
    """
    honest = PrivateQuestion._guaranteed

    def understated(self, declared, calibrated):
        return replace(honest(self, declared, calibrated), epsilon=0.1)

    monkeypatch.setattr(PrivateQuestion, "_guaranteed", understated)
    with pytest.raises(CheckFailed, match=r"0\.100"):
        _generic_audit(Checked(protocol(kind), kind, {}))


class Own(PrivateWorstCase):
    """A protocol's own pair: rows with these labels on one side, and labels that are further away on the other."""

    def __init__(self, rows, labels, further):
        super().__init__("an own pair", np.zeros((0, 2)), 10)
        for name, value in (("rows", rows), ("labels", labels), ("further", further)):
            object.__setattr__(self, name, np.array(value))

    def side(self, there, question, runs):
        return (Rows(self.rows, self.further if there else self.labels), Rows(self.rows, self.labels))

    def statistic(self, question, exact):
        raise AssertionError("the auditor's pair has a statistic of its own")


@pytest.mark.parametrize(
    ("labels", "further", "found"),
    [([0, 1, 2], [0, 1, 2], 2), ([2, 1], [0, 1], 0), ([0.5], [0.5, -7.0, 3.0], -7.0), ([1, 1], [1, 1], 1)],
)
def test_the_other_label_is_the_furthest_that_occurs(labels, further, found):
    assert small.other_label(np.array(labels), np.array(further)) == found


def pair(unit, rows=((1.0, -2.0), (3.0, 4.0)), labels=(0, 1), further=(3, 1), **fields):
    own = Own(np.reshape(rows, (-1, 2)), labels, further)
    return small.GenericPair("a generic pair", own.public, own.runs, own=own, unit=unit, **fields)


def sides(found):
    return [found.side(there, PRIVATE[0], 1) for there in (False, True)]


@pytest.mark.parametrize("unit", [Unit.LABEL, Unit.PERSON])
def test_one_label_changes_and_no_row_where_labels_are_protected(unit):
    [here], [there] = sides(pair(unit))
    np.testing.assert_array_equal(here.rows, there.rows)
    assert (here.labels.tolist(), there.labels.tolist()) == ([0, 1], [3, 1])


@pytest.mark.parametrize("unit", [Unit.ROW, Unit.PARTY])
def test_a_whole_row_becomes_its_opposite_where_rows_are_protected(unit):
    found = pair(unit)
    [here], [there] = sides(found)
    assert here.rows.tolist() == found.own.rows.tolist() == [[1, -2], [3, 4]]  # the protocol's own stays as it is
    assert there.rows.tolist() == [[-1, 2], [3, 4]]
    assert there.labels.tolist() == [3, 1]
    assert found.own.labels.tolist() == [0, 1]
    _, [opposite] = sides(pair(unit, rows=((0.0, 0.0), (3.0, 4.0))))  # a row of zeros has one, too
    assert opposite.rows.tolist() == [[1, 0], [3, 4]]
    refused(None, sides, pair(unit, rows=(), labels=(), further=()))


def test_every_run_is_a_party_whose_whole_answer_is_seen():
    found = pair(Unit.LABEL, direction=np.array([1.0, 0.0, -1.0]))
    question = PRIVATE[0]
    assert found.parties(question, 7) == 7
    assert [asked.draws for asked in found.asked(replace(question, draws=3), 7)] == [1]
    arrays = {"sums": np.array([[[1, 2]], [[3, 4]]]), "size": np.array([5, 6])}
    seen = found.seen([Submission("x", np.arange(2), arrays)])
    assert seen["numbers"].tolist() == [[1, 2, 5], [3, 4, 6]]
    assert found.statistic(question, pytest.fail)(seen).tolist() == [-4, -3]
    assert pair(Unit.LABEL).statistic(question, pytest.fail)(seen) is seen["numbers"]  # of training runs
