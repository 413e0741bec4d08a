"""Sums over public rows and real labels: what an honest party can say is taken, and added up in any order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.label_answers import PARTIES, question

from aggregator.collectors.labels import LabelSumAnswers
from aggregator.protocols.label_sums import NoisyLabelSums
from federation.contract.plugins import Reference
from federation.contract.query import ReleaseId, Submission
from federation.contract.randomness import NoiseBits
from federation.features.feature_map import FeatureMap
from federation.mechanisms.labels.shaped_gaussian import fit_shape
from federation.queries.labels import LabelledRows, LabelSumsNoise, LabelSumsQuestion
from parties.guard.answering import answered
from parties.party_data.cohort import Cohort


@pytest.mark.parametrize("shape", ["optimal", "whitened", "isotropic"])
@pytest.mark.parametrize("noise", ["gaussian", "pure"])
def test_honest_sums_of_rows_with_empty_equal_and_rare_columns_are_taken(shape, noise):
    random = np.random.default_rng(1)
    rows = random.normal(size=(400, 8))
    rows[:, 2] = 0.0  # never seen at this party
    rows[:, 3] = rows[:, 4]
    rows[:, 5] = 0.0
    rows[7, 5] = 30.0  # seen once, and then far out
    labels = random.uniform(0, 52, 400)
    declared = LabelledRows(FeatureMap(8, ()), 0.0, 52.0, 400)
    known = LabelSumsNoise(noise, 0.5, 1e-6)
    asked = LabelSumsQuestion(known, declared, shape, release=ReleaseId("a release"), draws=50, seeded=True)
    mechanism = asked.mechanism(rows)
    moment = mechanism.release(rows, labels, NoiseBits(1, "test"), 50)
    assert fit_shape(rows, shape).transform.shape[1] < 8
    arrays = {"size": np.array([400.0]), "gram": (rows.T @ rows)[None], "moment": moment[None]}
    arrays |= {"row_sum": rows.sum(axis=0)[None], "covariance": mechanism.covariance()[None]}
    answers = LabelSumAnswers(asked, 1, asked.promise())
    assert answers.add(Submission("label_sums", np.array([0]), arrays, asked.promise())) == {}
    assert answers.answered == 1


def test_the_sums_are_those_of_all_who_answered_whoever_answers_first_and_with_whom():
    asked = question(NoisyLabelSums(), draws=3)
    cohort = Cohort(Reference("support.linear_labels:Parties").to_json(), 0, PARTIES, 1)
    sent = answered(cohort, asked)
    totals = []
    for groups in ([range(PARTIES)], [[4], [0, 5], [1, 2], [3]], [[one] for one in reversed(range(PARTIES))]):
        answers = LabelSumAnswers(asked, PARTIES, asked.promise())
        for group in groups:
            chosen = np.flatnonzero(np.isin(sent.parties, list(group)))
            arrays = {name: array[chosen] for name, array in sent.arrays.items()}
            assert answers.add(replace(sent, parties=sent.parties[chosen], arrays=arrays)) == {}
        totals.append({name: answers.total(name).tobytes() for name in asked.fields()})
        for name in ("size", "gram", "row_sum", "covariance"):
            np.testing.assert_allclose(answers.total(name), sent.arrays[name].sum(axis=0), rtol=1e-12)
    assert totals[0] == totals[1] == totals[2]
