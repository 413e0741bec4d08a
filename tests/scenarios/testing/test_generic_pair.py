"""The pair of neighbours that an auditor makes by itself: one unit of one row differs; claims are held against it."""

from dataclasses import replace

import numpy as np
import pytest
from support.questions import PRIVATE

from aggregator.contract.registry import protocol
from aggregator.contract.worst_case import PrivateWorstCase, Rows
from federation.contract.errors import InputError
from federation.contract.guarantee import Unit
from federation.contract.query import PrivateQuestion, Submission
from scenarios.testing import CheckFailed
from scenarios.testing.checks import Checked, _generic_audit
from scenarios.testing.small_trials import GenericPair, other_label


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
    with pytest.raises(CheckFailed, match=r"at least is spent, 0\.100 is claimed"):
        _generic_audit(Checked(protocol(kind), kind, {}))


class Own(PrivateWorstCase):
    """A protocol's own pair: rows with these labels on one side, and labels that are further away on the other."""

    def __init__(self, rows, labels, further):
        super().__init__("an own pair", np.zeros((0, 2)), 10)
        for name, value in (("rows", rows), ("labels", labels), ("further", further)):
            object.__setattr__(self, name, np.array(value))

    def side(self, there, question, runs):
        return (Rows(self.rows, self.further if there else self.labels), Rows(self.rows, self.labels))

    def statistic(self, question):
        raise AssertionError("the auditor's pair has a statistic of its own")


@pytest.mark.parametrize(
    ("labels", "further", "found"),
    [([0, 1, 2], [0, 1, 2], 2), ([2, 1], [0, 1], 0), ([0.5], [0.5, -7.0, 3.0], -7.0), ([1, 1], [1, 1], 1)],
)
def test_the_other_label_is_the_furthest_that_occurs(labels, further, found):
    assert other_label(np.array(labels), np.array(further)) == found


def pair(unit, rows=((1.0, -2.0), (3.0, 4.0)), labels=(0, 1), further=(3, 1), **fields):
    own = Own(np.reshape(rows, (-1, 2)), labels, further)
    return GenericPair("a generic pair", own.public, own.runs, own=own, unit=unit, **fields)


def sides(found):
    return [found.side(there, PRIVATE[0], 1) for there in (False, True)]


@pytest.mark.parametrize("unit", [Unit.LABEL, Unit.PERSON])
def test_one_label_changes_and_no_row_where_labels_are_protected(unit):
    [here], [there] = sides(pair(unit))
    np.testing.assert_array_equal(here.rows, there.rows)
    assert (here.labels.tolist(), there.labels.tolist()) == ([0, 1], [3, 1])


@pytest.mark.parametrize("unit", [Unit.ROW, Unit.PARTY])
def test_a_whole_row_becomes_its_opposite_where_rows_are_protected(unit):
    [here], [there] = sides(pair(unit))
    assert here.rows.tolist() == [[1, -2], [3, 4]]
    assert there.rows.tolist() == [[-1, 2], [3, 4]]
    assert there.labels.tolist() == [3, 1]


def test_a_row_of_zeros_has_an_opposite_too():
    _, [there] = sides(pair(Unit.ROW, rows=((0.0, 0.0), (3.0, 4.0))))
    assert there.rows.tolist() == [[1, 0], [3, 4]]


def test_the_protocols_own_pair_stays_as_it_is():
    found = pair(Unit.ROW)
    sides(found)
    assert found.own.rows.tolist() == [[1, -2], [3, 4]]
    assert found.own.labels.tolist() == [0, 1]


def test_without_a_row_there_is_nothing_to_change():
    with pytest.raises(InputError, match="holds no row that could change"):
        sides(pair(Unit.LABEL, rows=(), labels=(), further=()))


def test_every_run_is_a_party_whose_whole_answer_is_seen():
    found = pair(Unit.LABEL, direction=np.array([1.0, 0.0, -1.0]))
    question = PRIVATE[0]
    assert found.parties(question, 7) == 7
    assert [asked.draws for asked in found.asked(replace(question, draws=3), 7)] == [1]
    arrays = {"sums": np.array([[[1, 2]], [[3, 4]]]), "size": np.array([5, 6])}
    seen = found.seen([Submission("x", np.arange(2), arrays)])
    assert seen["numbers"].tolist() == [[1, 2, 5], [3, 4, 6]]
    assert found.statistic(question)(seen).tolist() == [-4, -3]
    assert pair(Unit.LABEL).statistic(question)(seen) is seen["numbers"]  # of training runs
