"""Audits of bags that are the same at all parties: claims of sums stand, and mistaken parties are refuted.

Six parties of whom four are a quorum, and one may collude: three shares are the whole noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from support.worst_pairs import audited, mistake_mechanism, pair_of

from aggregator.contract.worst_case import PARTIES, Rows
from aggregator.protocols.class_ratio.worst_case import WorstCommon
from aggregator.trial.plan import PublicNumbers
from federation.mechanisms.noise.additive import calibrate
from federation.mechanisms.sums.shared_sums import SharedBagNoise

RUNS = 20_000
ROW = {"trust": "secure", "noise": "gaussian", "protect": "row", "submit": "embedding", "estimator": "whitened"}
TIGHT = {
    "gaussian": {"trust": "secure", "noise": "gaussian"},
    "pure": {"trust": "secure", "noise": "pure"},
    "row": ROW,
    "row, most for labels": {**ROW, "label_share": 0.95},
}


def pair(name, persons=0, units=1):
    return pair_of("class_ratio", TIGHT[name], PublicNumbers(0.01, classes=2, rows_per_person=persons), units)


both = pytest.mark.parametrize("name", ["gaussian", "pure"])


@both
def test_a_person_who_changes_in_two_bags_is_protected(name):
    assert 0.5 < audited(pair(name, persons=2), RUNS).lower_bound <= 1.0


@pytest.mark.parametrize("name", TIGHT)
def test_noise_that_counts_on_all_parties_is_refuted_where_a_quorum_answers_and_one_colludes(name, monkeypatch):
    def of_all(question):
        return replace(question.mechanism(), contributors=PARTIES)

    mistake_mechanism(monkeypatch, of_all)
    assert not audited(pair(name), RUNS).passed


@both
def test_parties_that_count_every_row_of_a_person_are_refuted(name, monkeypatch):
    monkeypatch.setattr("parties.responses.bags.kept_rows", lambda owner, *_: np.arange(len(owner)))
    assert not audited(pair(name, persons=1), RUNS).passed


def test_parties_that_forget_that_a_person_is_in_several_bags_are_refuted(monkeypatch):
    def once(question):
        return replace(question, bags=replace(question.bags, rows_per_person=1)).mechanism()

    mistake_mechanism(monkeypatch, once)
    assert not audited(pair("gaussian", persons=3), RUNS).passed


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
    """A pair whose row moves between bags, where labels have most of the budget."""
    one = pair("row, most for labels")
    return replace(one, worst=Moving(**vars(one.worst)))


def test_a_row_that_moves_to_another_bag_is_protected():
    assert 0.5 < audited(moving(), RUNS).lower_bound <= 1.0


def test_parties_that_count_a_moving_row_once_are_refuted(monkeypatch):
    """As if it left one bag, and came to none: half of the squares of what it really moves."""

    def once(question):
        dimension, aim = question.mechanism().additive.dimension, question.noise.target
        moved = (question.label_weight**2 + 1) ** 0.5
        additive = calibrate("gaussian", sensitivity=moved, dimension=dimension, **aim)
        return SharedBagNoise(additive, question.contributors)

    mistake_mechanism(monkeypatch, once)
    assert not audited(moving(), 4 * RUNS).passed


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
    one = pair(name)
    return replace(one, worst=Alone(**vars(one.worst)))


@both
def test_the_label_of_a_row_whose_bag_others_do_not_have_is_protected_as_well(name):
    assert 0.5 < audited(alone(name), RUNS).lower_bound <= 1.0


@both
def test_parties_that_add_no_share_to_bags_that_they_do_not_have_are_refuted(name, monkeypatch):
    real = SharedBagNoise.release

    def own_only(noise, values, bits, draws=1):
        bags = np.repeat(np.reshape(values, (-1, 2)).any(axis=1), 2)
        return np.where(bags, real(noise, values, bits, draws), 0.0)

    monkeypatch.setattr(SharedBagNoise, "release", own_only)
    assert not audited(alone(name), RUNS).passed
