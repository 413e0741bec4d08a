"""Audits of what parties send about their bags: claims of whole answers stand, and mistaken parties are refuted.

Of bags that are the same at all parties: six parties of whom four are a quorum, and one may collude, so that three
shares are the whole noise.
"""

import copy
from dataclasses import dataclass, replace

import numpy as np
import pytest
from support.worst_pairs import audited, mistake_mechanism, pair_of

from aggregator.contract.worst_case import PARTIES, Rows
from aggregator.protocols.class_ratio.worst_case import WorstCommon
from aggregator.trial.plan import PublicNumbers
from federation.contract.guarantee import Unit
from federation.mechanisms.counts.additive import AdditiveCounts
from federation.mechanisms.noise.additive import calibrate
from federation.mechanisms.sums.shared_sums import SharedBagNoise
from parties.responses import bags as bag_responses
from parties.responses.bags import bags_of
from scenarios.audits.auditor import cohort

pytestmark = pytest.mark.slow  # by default `test_audits` checks each claim, and that half of its noise is caught

RUNS = 60_000
CLASSES = 3
ROW = {"noise": "gaussian", "protect": "row", "submit": "embedding", "estimator": "whitened"}
TIGHT = {
    "auto": {},
    "gaussian": {"noise": "gaussian"},
    "laplace": {"noise": "laplace"},
    "pure": {"noise": "pure"},
    "independent_laplace": {"noise": "independent_laplace"},
    "published_laplace": {"noise": "published_laplace"},
    "dirichlet_floor": {"noise": "dirichlet_floor", "floor": 20},
    "dirichlet_shifted": {"noise": "dirichlet_shifted", "pseudo_count": 20},
    "row": ROW,
    "row, little for labels": {**ROW, "label_share": 0.05},
    "row, most for labels": {**ROW, "label_share": 0.95},
}
LOOSE = {"published_gaussian": {"noise": "published_gaussian"}, "laplace_prior": {"noise": "laplace_prior"}}
SOME = ("auto", "gaussian", "dirichlet_floor")  # one of each family of laws; of the others the slow tests
COUNTS = [
    pytest.param(name, marks=() if name in SOME else pytest.mark.slow) for name in TIGHT if not name.startswith("row")
]
TIGHT_IN_TWO_BAGS = ("auto", "laplace", "pure")


def pair(name, rows_per_person=0, units=1):
    public = PublicNumbers(0.01, classes=CLASSES, rows_per_person=rows_per_person)
    return pair_of("class_ratio", (TIGHT | LOOSE)[name], public, units)


def counted(worst):
    """What the party of either side holds, as its bags."""
    found = []
    for there in (False, True):
        with cohort(worst.held(there), 1) as node:
            found.append(bags_of(node, 0, worst.question.bags))
    return found


@pytest.mark.parametrize("name", LOOSE)
def test_loose_claims_stand_too_and_two_changes_need_twice_the_noise(name):
    assert 0 < audited(pair(name), RUNS).lower_bound <= 1.0
    assert not audited(pair(name, units=2), RUNS).passed


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("bags", [1, 2])
def test_a_person_who_changes_everywhere_is_protected(name, bags):
    """It is in one bag more than count, and twice in each."""
    worst = pair(name, rows_per_person=bags)
    before, after = (held.counts for held in counted(worst))
    assert np.abs(before - after).sum(axis=1).tolist() == [2] * bags + [0]
    result = audited(worst, RUNS)
    least = 0.5 if bags == 1 or name in TIGHT_IN_TWO_BAGS else 0.25  # else two bags lose less than the sum of claims
    assert least < result.lower_bound <= 1.0


def test_neighbours_differ_in_one_unit_and_nothing_public():
    for name, unit in (("gaussian", Unit.LABEL), ("row", Unit.ROW)):
        worst = pair(name)
        answers = [answer for there in (False, True) for answer in worst.answers(there, "form", 1)]
        assert {answer.guarantee.unit for answer in answers} == {unit}
        np.testing.assert_array_equal(*(answer.arrays["sizes"] for answer in answers))
        held = [rows for there in (False, True) for rows in worst.held(there)]
        changed = (held[0].labels != held[1].labels) | (held[0].rows != held[1].rows).ravel()
        assert changed.sum() == 1
        assert (held[0].rows != held[1].rows).sum() == (unit is Unit.ROW)
    before, after = (worst.question.feature_map.transform(rows.rows).sum(axis=0) for rows in held)
    assert 2 - 1e-3 < np.linalg.norm(before - after) <= 2


def test_bags_have_noise_of_their_own():
    sent = pair("gaussian", rows_per_person=1).seen(False, "independent", RUNS)["counts"]
    correlation = np.corrcoef(sent[:, 0, 0], sent[:, 1, 0])[0, 1]
    assert abs(correlation) < 5 / RUNS**0.5


@pytest.mark.parametrize("name", COUNTS)
def test_parties_with_half_the_noise_are_refuted(name, monkeypatch):
    def halved(question):
        mechanism = question.mechanism()
        if isinstance(mechanism, AdditiveCounts):
            return replace(mechanism, scale=mechanism.scale / 2)
        twin = copy.copy(mechanism)
        object.__setattr__(twin, "sigma", 4 * mechanism.sigma)  # half the standard deviation
        return twin

    mistake_mechanism(monkeypatch, halved)
    assert not audited(pair(name), RUNS).passed


@pytest.mark.parametrize("name", ["laplace", "pure", "independent_laplace", "gaussian", "dirichlet_shifted"])
def test_parties_that_do_not_compose_a_persons_bags_are_refuted(name, monkeypatch):
    def once(question):
        return replace(question, bags=replace(question.bags, rows_per_person=1)).mechanism()

    mistake_mechanism(monkeypatch, once)
    assert not audited(pair(name, rows_per_person=3), RUNS).passed


@pytest.mark.parametrize(("name", "bags"), [("pure", 1), ("pure", 2), ("gaussian", 1)])
def test_parties_that_count_every_row_of_a_person_are_refuted(name, bags, monkeypatch):
    monkeypatch.setattr("parties.responses.bags.kept_rows", lambda owner, *_: np.arange(len(owner)))
    assert not audited(pair(name, rows_per_person=bags), RUNS).passed


def joint(changed):
    """The joint mechanism with another idea of what one replaced row moves, as a function of the label weight."""

    def mistaken(question):
        return calibrate(
            "gaussian",
            sensitivity=changed(question.label_weight),
            dimension=question.mechanism().dimension,
            epsilon=question.noise.epsilon,
            delta=question.noise.delta,
        )

    return mistaken


@pytest.mark.parametrize(
    ("name", "sensitivity"),
    [
        ("row", lambda weight: (2 * weight**2 + 1) ** 0.5),  # rows that are added, not replaced
        ("row, little for labels", lambda weight: (2 * weight**2 + 1) ** 0.5),
        ("row", lambda weight: 2.0),  # labels for free
        ("row, most for labels", lambda weight: (weight**2 + 4) ** 0.5),  # one class moves, not two
    ],
)
def test_parties_that_mistake_what_a_row_moves_are_refuted(name, sensitivity, monkeypatch):
    mistake_mechanism(monkeypatch, joint(sensitivity))
    assert not audited(pair(name), 4 * RUNS).passed


def test_parties_whose_rows_are_longer_than_one_are_refuted(monkeypatch):
    real = bag_responses.private_features
    longer = lambda *arguments: (2**0.5 * tile for tile in real(*arguments))  # noqa: E731
    monkeypatch.setattr(bag_responses, "private_features", longer)
    assert not audited(pair("row, little for labels"), RUNS).passed


COMMON_RUNS = 20_000
COMMON_ROW = {"trust": "secure", "noise": "gaussian", "protect": "row", "submit": "embedding", "estimator": "whitened"}
COMMON = {
    "gaussian": {"trust": "secure", "noise": "gaussian"},
    "pure": {"trust": "secure", "noise": "pure"},
    "row": COMMON_ROW,
    "row, most for labels": {**COMMON_ROW, "label_share": 0.95},
}


def common_pair(name, persons=0, units=1):
    return pair_of("class_ratio", COMMON[name], PublicNumbers(0.01, classes=2, rows_per_person=persons), units)


both = pytest.mark.parametrize("name", ["gaussian", "pure"])


@both
def test_a_person_who_changes_in_two_common_bags_is_protected_and_parties_that_count_all_its_rows_are_refuted(
    name, monkeypatch
):
    assert 0.5 < audited(common_pair(name, persons=2), COMMON_RUNS).lower_bound <= 1.0
    monkeypatch.setattr("parties.responses.bags.kept_rows", lambda owner, *_: np.arange(len(owner)))
    assert not audited(common_pair(name, persons=1), COMMON_RUNS).passed


@pytest.mark.parametrize("name", COMMON)
def test_noise_that_counts_on_all_parties_is_refuted_where_a_quorum_answers_and_one_colludes(name, monkeypatch):
    def of_all(question):
        return replace(question.mechanism(), contributors=PARTIES)

    mistake_mechanism(monkeypatch, of_all)
    assert not audited(common_pair(name), COMMON_RUNS).passed


def test_parties_that_forget_that_a_person_is_in_several_bags_are_refuted(monkeypatch):
    def once(question):
        return replace(question, bags=replace(question.bags, rows_per_person=1)).mechanism()

    mistake_mechanism(monkeypatch, once)
    assert not audited(common_pair("gaussian", persons=3), COMMON_RUNS).passed


@dataclass(frozen=True, eq=False)
class Moving(WorstCommon):
    """The row that changes keeps its label and feature, and comes to lie in the next bag."""

    def side(self, there, question, runs):
        first, *others = super().side(False, question, runs)
        bags = np.zeros(len(first.labels), dtype=np.int64)
        bags[0] = int(there)
        return (Rows(first.rows, first.labels, bags), *others)

    def _centre(self, there, question):
        labels, weight = self.side(there, question, 1)[0], question.label_weight
        totals = np.zeros((question.bags.count, question.bags.classes + question.feature_map.dimension))
        features = question.feature_map.transform(labels.rows)
        alike = super().side(False, question, 1)[1:]
        for held, numbers in ((labels, labels.bags), *((one, np.zeros(len(one.labels), int)) for one in alike)):
            for row, label, bag in zip(features, held.labels, numbers, strict=True):
                totals[bag, label] += weight
                totals[bag, question.bags.classes :] += row
        split = np.split(totals, [question.bags.classes], axis=1)
        return np.concatenate([part.ravel() for part in split])


def moving():
    """A common_pair whose row moves between bags, where labels have most of the budget."""
    one = common_pair("row, most for labels")
    return replace(one, worst=Moving(**vars(one.worst)))


def test_a_row_that_moves_to_another_bag_is_protected():
    assert 0.5 < audited(moving(), COMMON_RUNS).lower_bound <= 1.0


def test_parties_that_count_a_moving_row_once_are_refuted(monkeypatch):
    """As if it left one bag, and came to none: half of the squares of what it really moves."""

    def once(question):
        dimension, aim = question.mechanism().additive.dimension, question.noise.target
        moved = (question.label_weight**2 + 1) ** 0.5
        additive = calibrate("gaussian", sensitivity=moved, dimension=dimension, **aim)
        return SharedBagNoise(additive, question.contributors)

    mistake_mechanism(monkeypatch, once)
    assert not audited(moving(), 4 * COMMON_RUNS).passed


@dataclass(frozen=True, eq=False)
class Alone(WorstCommon):
    """Parties of whom the first alone has rows of the first bag, where a label changes."""

    def side(self, there, question, runs):
        first, *others = super().side(there, question, runs)
        return (first, *(Rows(one.rows, one.labels, np.ones(len(one.labels), np.int64)) for one in others))

    def _centre(self, there, question):
        totals = np.zeros((question.bags.count, question.bags.classes))
        for held in self.side(there, question, 1):
            np.add.at(totals, (held.bags, held.labels), 1)
        return totals.ravel()


def alone(name):
    one = common_pair(name)
    return replace(one, worst=Alone(**vars(one.worst)))


@both
def test_a_row_whose_bag_others_do_not_have_is_protected_and_parties_that_add_no_share_to_it_are_refuted(
    name, monkeypatch
):
    assert 0.5 < audited(alone(name), COMMON_RUNS).lower_bound <= 1.0
    real = SharedBagNoise.release

    def own_only(noise, values, bits, draws=1):
        bags = np.repeat(np.reshape(values, (-1, 2)).any(axis=1), 2)
        return np.where(bags, real(noise, values, bits, draws), 0.0)

    monkeypatch.setattr(SharedBagNoise, "release", own_only)
    assert not audited(alone(name), COMMON_RUNS).passed
