"""The worst pair of bags that are the same at all parties: neighbours at one of them, and totals told apart exactly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.questions import QUESTIONS
from support.worst_pairs import pair_of, without_noise

from aggregator.contract.worst_case import PARTIES
from aggregator.trial.plan import PublicNumbers
from federation.contract.errors import InputError

EMBEDDED = {"trust": "secure", "submit": "embedding", "estimator": "whitened"}
OPTIONS = {
    "rows": {"trust": "secure"},
    "embedding": EMBEDDED,
    "private rows": {**EMBEDDED, "protect": "row", "noise": "gaussian"},
}


def bags(name="rows", persons=0, units=1, **more):
    public = PublicNumbers(1e-3, classes=3, rows_per_person=persons)
    return pair_of("class_ratio", {**OPTIONS[name], **more}, public, units)


@pytest.mark.parametrize("name", OPTIONS)
def test_one_row_of_the_first_party_changes_and_nothing_public(name):
    pair = bags(name)
    before, after = pair.held(False), pair.held(True)
    assert len(before) == len(after) == pair.question.contributors == 3
    changed = [(one.labels != other.labels).sum() for one, other in zip(before, after, strict=True)]
    assert changed == [1, 0, 0]
    moved = [(one.rows != other.rows).sum() for one, other in zip(before, after, strict=True)]
    assert moved == [int(name == "private rows"), 0, 0]
    assert pair.worst.world["parties"] == PARTIES
    assert "3 of 6 parties, whose answers are seen in one sum only, one row or label changes" in pair.worst.described


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize(("name", "persons"), [("rows", 0), ("rows", 2), ("embedding", 1), ("private rows", 0)])
def test_its_totals_are_those_that_parties_answer_without_noise(name, persons, there):
    pair = bags(name, persons)
    seen = without_noise(pair, 2, there)["totals"]
    np.testing.assert_allclose(seen, np.tile(pair.worst._centre(there, pair.question), (2, 1)), atol=1e-6)
    known = pair.worst.knowing(lambda side: without_noise(pair, 1, side))
    np.testing.assert_array_equal(known._centre(there, pair.question), seen[0])


@pytest.mark.parametrize(("persons", "moved"), [(0, 2), (2, 4)])
def test_a_person_changes_in_every_bag_that_counts(persons, moved):
    pair = bags(persons=persons, noise="pure")
    here, there = (pair.worst._centre(side, pair.question) for side in (False, True))
    assert np.abs(here - there).sum() == moved == pair.question.mechanism().additive.sensitivity


def test_in_place_of_a_second_change_half_of_the_shares_are_missing():
    pair = bags(units=2)
    assert pair.worst.missing
    assert len(pair.held(False)) == 1


def test_it_is_for_totals_only():
    pair = bags()
    with pytest.raises(InputError, match="for their totals, got 'counts'"):
        replace(pair, question=QUESTIONS["counts"]).held(False)
