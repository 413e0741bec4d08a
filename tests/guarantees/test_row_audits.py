"""Audits of X'X, X'y and y'y over private rows: what parties send is as private as they promise, and hardly more.

Broken parties are refuted: with half the noise, with rows that are not cut, labels that are not clipped, X'X or y'y
without noise, and shares of a noise that too few add.
"""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
from support.claims import CLAIMS
from support.worst_pairs import audited, mistake_mechanism

from aggregator.contract.worst_case import Rows
from aggregator.regressions.worst_case import WorstLabelTotals, WorstRows
from federation.features.feature_map import FeatureMap
from federation.features.steps import Affine
from parties.responses import row_sums as row_moments

RUNS = 50_000


def pair(name="row sums", units=1, second=True):
    found = CLAIMS[name].pair(units)
    return replace(found, question=replace(found.question, second=second))


@pytest.mark.parametrize("name", ["row sums", "row sums, shares"])
def test_without_x_x_claims_stand_too_and_two_rows_or_half_of_the_shares_are_refuted(name):
    """With X'X: `test_audits`."""
    result = audited(pair(name, second=False), RUNS)
    assert (result.claimed, result.delta) == (1.0, 0.01)
    assert 0.5 < result.lower_bound <= 1.0
    assert not audited(pair(name, units=2, second=False), RUNS).passed


@pytest.mark.parametrize("name", ["label sums, gaussian shares", "label sums, pure shares"])
def test_shares_of_noise_on_labels_of_public_rows_that_count_on_too_many_parties_are_refuted(name, monkeypatch):
    whole, half = (CLAIMS[name].pair(units) for units in (1, 2))
    assert (whole.question.contributors, len(half.held(False))) == (3, 1)
    all_count = replace(whole.question, contributors=6)  # where three are honest
    monkeypatch.setattr(WorstLabelTotals, "added", lambda self, question: 3)  # whatever they were told
    assert not audited(replace(whole, question=all_count), RUNS).passed


@pytest.mark.parametrize("second", [True, False])
def test_half_the_noise_is_refuted(second, monkeypatch):
    def halved(question):
        mechanism = question.mechanism()
        return replace(mechanism, additive=replace(mechanism.additive, scale=mechanism.additive.scale / 2))

    mistake_mechanism(monkeypatch, halved)
    assert not audited(pair(second=second), RUNS).passed


@dataclass(frozen=True, eq=False)
class Told(WorstRows):
    """Two given rows with their labels, each at one party."""

    rows: tuple[Rows, ...] = ()

    def side(self, there, question, runs):
        return (self.rows[there],)


def told(here, there, *, longer=1.0):
    """Rows (x, y) behind a map that makes them longer and leaves cutting them to the party."""
    found = pair()
    feature_map = FeatureMap(2, (Affine(np.zeros(2), np.full(2, longer)),))
    question = replace(found.question, rows=replace(found.question.rows, feature_map=feature_map))
    held = tuple(Rows(np.array([row], dtype=float), np.array([label], dtype=float)) for row, label in (here, there))
    return replace(found, worst=Told(**vars(found.worst), rows=held), question=question)


LONG = told(([1, 0], 7.0), ([-1, 0], 7.0), longer=2.0)
LOUD = told(([1, 0], 12.0), ([1, 0], -8.0))
TURNED = told(([1, 0], 2.0), ([0, 1], 2.0))  # labels are the middle of the range: only X'X moves
SQUARE = told(([0, 0], 2.0), ([0, 0], 7.0))  # only y'y moves


@pytest.mark.parametrize(("found", "least"), [(LONG, 0.5), (LOUD, 0.5), (TURNED, 0.1), (SQUARE, 0.2)])
def test_claims_stand_for_long_rows_loud_labels_and_each_sum_by_itself(found, least):
    result = audited(found, RUNS)
    assert least < result.lower_bound <= 1.0


def test_rows_that_are_not_cut_are_refuted(monkeypatch):
    monkeypatch.setattr(row_moments, "within_norm", lambda rows: rows)
    assert not audited(LONG, RUNS // 4).passed


def test_labels_that_are_not_clipped_are_refuted(monkeypatch):
    def unclipped(cohort, party, declared):
        held = cohort.holdings(party)
        yield held.rows, (held.labels - 2.0) / 5.0

    monkeypatch.setattr(row_moments, "real_labels", unclipped)
    assert not audited(LOUD, RUNS // 4).passed


@pytest.mark.parametrize(("found", "bare"), [(TURNED, slice(0, 3)), (SQUARE, slice(-1, None))], ids=["X'X", "y'y"])
def test_a_sum_without_noise_is_refuted(found, bare, monkeypatch):
    def without(question):
        def release(total, bits, draws):
            noisy = question.mechanism().release(total, bits, draws)
            noisy[:, bare] = total[bare]
            return noisy

        return SimpleNamespace(release=release)

    mistake_mechanism(monkeypatch, without)
    assert not audited(found, RUNS // 10).passed
