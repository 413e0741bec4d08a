"""What a party adds to bags that are the same at all: shares for every bag, and sums that are exact without them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.questions import QUESTIONS, WAVES

from federation.contract.plugins import Reference
from federation.contract.query import check_submission
from federation.contract.randomness import NoiseBits
from federation.features.feature_map import with_fourier
from federation.queries.bags import SUM_STEP, Bags, TotalsNoise
from parties.guard.answering import answered
from parties.party_data.cohort import Cohort, Holdings

PARTIES = 4
COUNTS, ROWS = (replace(QUESTIONS[kind], seeded=True, bags=Bags(5, 3)) for kind in ("count_totals", "embedding_totals"))
ROWS = replace(ROWS, label_weight=1.5)
LABELS = replace(ROWS, protect="label", label_weight=0.0)
each = pytest.mark.parametrize("question", [COUNTS, LABELS, ROWS], ids=["counts", "labels", "rows"])


class SomeBags:
    """Party k has rows of the bags k and k + 1 of five, and none has any of the last. Persons have two rows each."""

    def __init__(self, persons: bool = False, odd: bool = False) -> None:
        self._persons, self._odd = persons, odd

    def holdings(self, party: int) -> Holdings:
        random = np.random.default_rng(party)
        rows, bags = random.normal(size=(8, 3)), np.repeat([party % 3, party % 3 + 1], 4)
        if self._odd:
            rows[0, 0] = np.inf
        return Holdings(party, rows, np.arange(8) % 3, bags, np.arange(8) // 2 if self._persons else None)


def cohort(**arguments):
    return Cohort(Reference(f"{__name__}:SomeBags", arguments).to_json(), 0, PARTIES, seed=1)


def off(question):
    return replace(question, noise=TotalsNoise("off"))


def held(**arguments):
    return [SomeBags(**arguments).holdings(party) for party in range(PARTIES)]


def exact(question):
    """Sizes, counts and sums of all parties together, by rows one after the other."""
    sizes, counts, sums = np.zeros(5), np.zeros((5, 3)), np.zeros((5, WAVES.dimension))
    for one in held():
        for row, label, bag in zip(WAVES.transform(one.rows), one.labels, one.bags, strict=True):
            sizes[bag] += 1
            counts[bag, label] += 1
            sums[bag] += row
    weight = question.label_weight if question is ROWS else 1.0
    return {"sizes": sizes, "counts": weight * counts, "sums": sums}


@each
def test_without_noise_answers_add_up_to_the_bags_of_all(question):
    found = answered(cohort(), off(question))
    check_submission(off(question), found)
    assert not found.failures
    expected = exact(question)
    for name, array in found.arrays.items():
        total = array.sum(axis=0)
        np.testing.assert_allclose(total.reshape(expected[name].shape), expected[name], atol=PARTIES * SUM_STEP)


@each
def test_without_noise_all_draws_are_alike(question):
    several = replace(off(question), draws=3)
    one, three = (answered(cohort(), asked).arrays["counts"] for asked in (off(question), several))
    np.testing.assert_array_equal(three, np.repeat(one, 3, axis=1))
    assert three.shape == (PARTIES, *several.fields()["counts"].shape)


@each
def test_every_bag_has_a_share_of_noise_and_the_sum_is_exact_but_for_shares(question):
    found, bare = answered(cohort(), question), answered(cohort(), off(question))
    assert found.guarantee is None  # a share hides nothing by itself
    numbers = {name: array for name, array in found.arrays.items() if name in ("counts", "sums")}
    hidden = {"counts"} if question is not ROWS else {"counts", "sums"}
    for party in range(PARTIES):
        values = np.concatenate([bare.arrays[name][party].reshape(5, -1) for name in sorted(hidden)], axis=1)
        expected = question.mechanism().release(
            values.ravel(), NoiseBits(1, question.release.key, party), question.draws
        )
        sent = np.concatenate([numbers[name][party].reshape(5, -1) for name in sorted(hidden)], axis=1)
        np.testing.assert_array_equal(sent.ravel(), expected[0])
    of_nobody = found.arrays["counts"][:, :, 4]
    assert of_nobody.any()
    for name in found.arrays.keys() - hidden:
        np.testing.assert_array_equal(found.arrays[name], bare.arrays[name])


def test_all_is_whole_steps():
    for question in (COUNTS, LABELS, ROWS):
        for name, step in question.steps.items():
            steps = answered(cohort(), question).arrays[name] / step
            np.testing.assert_array_equal(steps, np.rint(steps))


def test_of_a_persons_rows_so_many_count_as_are_declared():
    """Four persons of two rows in one bag each: one of them counts."""
    found = answered(cohort(persons=True), replace(off(COUNTS), bags=Bags(5, 3, rows_per_person=1)))
    assert found.arrays["sizes"].sum(axis=1).tolist() == [4.0] * PARTIES
    assert found.arrays["counts"].sum(axis=(1, 2, 3)).tolist() == [4.0] * PARTIES
    assert "persons" in str(answered(cohort(persons=True), COUNTS).failures)


def test_a_row_that_is_no_number_tells_of_itself_only_where_features_are_public():
    assert set(answered(cohort(odd=True), LABELS).failures) == set(range(PARTIES))
    assert not answered(cohort(odd=True), ROWS).failures


def test_a_bag_that_is_not_declared_tells_of_its_row_only_where_bags_are_public():
    """Party 2 has rows of the bags 2 and 3, of which two are declared."""
    fewer = {"bags": Bags(2, 3)}
    assert "declared are 2 bags" in str(answered(cohort(), replace(LABELS, **fewer)).failures[2])
    found = answered(cohort(), replace(off(ROWS), **fewer))
    assert not found.failures
    assert found.arrays["counts"][2, 0].sum(axis=1).tolist() == [0.0, 8.0 * ROWS.label_weight]


def test_rows_of_unbounded_norm_are_refused_where_they_are_protected():
    plain = replace(off(ROWS), feature_map=QUESTIONS["rows"].feature_map)
    with pytest.raises(Exception, match="random Fourier features"):
        answered(cohort(), plain)


def test_waves_behind_other_features_are_bounded_too():
    behind = replace(off(ROWS), feature_map=with_fourier(QUESTIONS["rows"].feature_map, 0.5, 8, 1))
    assert not answered(cohort(), behind).failures


def test_more_rows_than_the_rounding_is_charged_for_are_refused(monkeypatch):
    monkeypatch.setattr("parties.responses.bags.largest_bag", lambda tile: 7)
    assert "divide the party" in str(answered(cohort(), ROWS).failures)
