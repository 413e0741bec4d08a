"""Audits of what parties send about their bags: claims of whole answers stand, and mistaken parties are refuted.

Of bags that are the same at all parties: six parties of whom four are a quorum, and one may collude, so that three
shares are the whole noise.
"""

import copy
from dataclasses import dataclass, replace

import numpy as np
import pytest
from support.claims import BAGS, CLAIMS
from support.worst_pairs import audited, mistake_mechanism, pair_of

from aggregator.contract.worst_case import PARTIES, Rows
from aggregator.protocols.class_ratio.worst_case import WorstCommon
from federation.mechanisms.counts.additive import AdditiveCounts
from federation.mechanisms.noise.additive import calibrate
from federation.mechanisms.sums.shared_sums import SharedBagNoise
from parties.responses import bags as bag_responses

pytestmark = pytest.mark.slow  # by default `test_audits` checks each claim, and that half of its noise is caught

RUNS = 60_000
COUNTS = [name for name in CLAIMS if name.startswith("counts")]
TIGHT_IN_TWO_BAGS = ("counts, auto", "counts, laplace", "counts, pure")


def pair(name, rows_per_person=0):
    """That of a claim, also where a person has rows in several bags."""
    claim = CLAIMS[name]
    return replace(claim, public=replace(claim.public, rows_per_person=rows_per_person)).pair()


@pytest.mark.parametrize("noise", ["published_gaussian", "laplace_prior"])
def test_loose_claims_stand_too_and_two_changes_need_twice_the_noise(noise):
    once, twice = (pair_of("class_ratio", {"noise": noise}, BAGS, units) for units in (1, 2))
    assert 0 < audited(once, RUNS).lower_bound <= 1.0
    assert not audited(twice, RUNS).passed


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("bags", [1, 2])
def test_a_person_who_changes_everywhere_is_protected(name, bags):
    """It is in one bag more than count, and twice in each."""
    result = audited(pair(name, rows_per_person=bags), RUNS)
    least = 0.5 if bags == 1 or name in TIGHT_IN_TWO_BAGS else 0.25  # else two bags lose less than the sum of claims
    assert least < result.lower_bound <= 1.0


def test_bags_have_noise_of_their_own():
    sent = pair("counts, gaussian", rows_per_person=1).seen(False, "independent", RUNS)["counts"]
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


@pytest.mark.parametrize(("name", "bags"), [("counts, pure", 1), ("counts, pure", 2), ("counts, gaussian", 1)])
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
        ("bags", lambda weight: (2 * weight**2 + 1) ** 0.5),  # rows that are added, not replaced
        ("bags, little for labels", lambda weight: (2 * weight**2 + 1) ** 0.5),
        ("bags", lambda weight: 2.0),  # labels for free
        ("bags, most for labels", lambda weight: (weight**2 + 4) ** 0.5),  # one class moves, not two
    ],
)
def test_parties_that_mistake_what_a_row_moves_are_refuted(name, sensitivity, monkeypatch):
    mistake_mechanism(monkeypatch, joint(sensitivity))
    assert not audited(pair(name), 4 * RUNS).passed


def test_parties_whose_rows_are_longer_than_one_are_refuted(monkeypatch):
    real = bag_responses.private_features
    longer = lambda *arguments: (2**0.5 * tile for tile in real(*arguments))  # noqa: E731
    monkeypatch.setattr(bag_responses, "private_features", longer)
    assert not audited(pair("bags, little for labels"), RUNS).passed


COMMON_RUNS = 20_000
both = pytest.mark.parametrize("name", ["common counts, gaussian", "common counts, pure"])


@both
def test_a_person_who_changes_in_two_common_bags_is_protected_and_parties_that_count_all_its_rows_are_refuted(
    name, monkeypatch
):
    assert 0.5 < audited(pair(name, rows_per_person=2), COMMON_RUNS).lower_bound <= 1.0
    monkeypatch.setattr("parties.responses.bags.kept_rows", lambda owner, *_: np.arange(len(owner)))
    assert not audited(pair(name, rows_per_person=1), COMMON_RUNS).passed


@pytest.mark.parametrize("name", [name for name in CLAIMS if name.startswith("common")])
def test_noise_that_counts_on_all_parties_is_refuted_where_a_quorum_answers_and_one_colludes(name, monkeypatch):
    def of_all(question):
        return replace(question.mechanism(), contributors=PARTIES)

    mistake_mechanism(monkeypatch, of_all)
    assert not audited(pair(name), COMMON_RUNS).passed


@pytest.mark.parametrize("noise", ["laplace", "pure", "independent_laplace", "gaussian", "dirichlet_shifted", "common"])
def test_parties_that_do_not_compose_a_persons_bags_are_refuted(noise, monkeypatch):
    def once(question):
        return replace(question, bags=replace(question.bags, rows_per_person=1)).mechanism()

    mistake_mechanism(monkeypatch, once)
    name = "common counts, gaussian" if noise == "common" else f"counts, {noise}"
    assert not audited(pair(name, rows_per_person=3), RUNS).passed


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
    one = pair("common bags, most for labels")
    return replace(one, worst=Moving(**vars(one.worst)))


def test_a_row_that_moves_to_another_bag_is_protected_and_parties_that_count_it_once_are_refuted(monkeypatch):
    assert 0.5 < audited(moving(), COMMON_RUNS).lower_bound <= 1.0

    def once(question):  # as if it left one bag, and came to none: half of the squares of what it really moves
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
    one = pair(name)
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
