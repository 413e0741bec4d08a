"""What honest sums X'y with noise reach, in any shape of rows: against draws, directions, and what is sent instead."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.collectors import labels as label_sum_range
from aggregator.collectors.labels import LabelSumAnswers, LabelSumRange, _gauges
from federation.contract.query import ReleaseId, Submission
from federation.contract.randomness import NoiseBits
from federation.features.feature_map import FeatureMap
from federation.queries.labels import LabelledRows, LabelSumsNoise, LabelSumsQuestion

SIZE, WIDTH = 40, 4
ROWS = np.random.default_rng(2).normal(size=(SIZE, WIDTH)) * [1.0, 5.0, 0.1, 1.0]
ROWS[:, 3] = 1.0  # as of a constant column


def question(noise="gaussian", shape="optimal"):
    rows = LabelledRows(FeatureMap(WIDTH, ()), -1.0, 5.0, 50)
    return LabelSumsQuestion(LabelSumsNoise(noise, 1.0, 1e-5), rows, shape, release=ReleaseId("sums"))


def sent(asked, moments):
    mechanism = asked.mechanism(ROWS)
    return {
        "size": np.array([float(SIZE)]),
        "gram": (ROWS.T @ ROWS)[None],
        "row_sum": ROWS.sum(axis=0)[None],
        "covariance": mechanism.covariance()[None],
        "moment": np.asarray(moments)[None],
    }


def longest(shape, direction):
    """The labels that take X'y furthest in a direction."""
    return np.where(ROWS @ direction > 0, 5.0, -1.0)


@pytest.mark.parametrize("noise", ["gaussian", "pure"])
@pytest.mark.parametrize("shape", ["optimal", "whitened", "isotropic"])
def test_no_honest_sum_is_changed(noise, shape):
    asked = question(noise, shape)
    mechanism = asked.mechanism(ROWS)
    for key in range(4):
        labels = longest(shape, np.random.default_rng(key).normal(size=WIDTH))
        moments = mechanism.release(ROWS, labels, NoiseBits(key, "sums"), 500)
        kept, changed = LabelSumRange(asked).bounded(sent(asked, moments))
        np.testing.assert_array_equal(kept[0], moments)
        assert not changed.any()


def test_honest_sums_are_changed_as_often_as_may_be_at_most(monkeypatch):
    monkeypatch.setattr(label_sum_range, "BEYOND", 0.2)
    asked = question()
    moments = asked.mechanism(ROWS).release(ROWS, longest("optimal", np.eye(WIDTH)[1]), NoiseBits(1, "sums"), 3000)
    kept, changed = LabelSumRange(asked).bounded(sent(asked, moments))
    assert changed.all()
    share = (kept[0] != moments).any(axis=1).mean()
    assert 0.0 < share <= 0.2


def test_a_longer_sum_is_scaled_to_the_range_and_stays_there():
    asked = question()
    middle = 2.0 * ROWS.sum(axis=0)
    moments = middle + 1e6 * np.random.default_rng(1).normal(size=(5, WIDTH))
    honest = LabelSumRange(asked)
    kept, changed = honest.bounded(sent(asked, moments))
    assert changed.all()
    deviations = np.sqrt(np.diagonal(asked.mechanism(ROWS).covariance()))
    largest = 3.0 * np.abs(ROWS).sum(axis=0) + 8 * deviations
    assert (np.abs(kept[0] - middle) <= 1.5 * largest).all()
    again, changed = honest.bounded(sent(asked, kept[0]))
    np.testing.assert_allclose(again, kept, rtol=1e-9)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 5))
def test_gauges_are_those_of_support_functions(key, width):
    """The largest over directions of v'm over how far the sum of the ellipsoids reaches there; near it on the grid."""
    random = np.random.default_rng(key)
    first, second = (random.normal(size=(width, width + 1)) for _ in range(2))
    shapes = [one @ one.T for one in (first, second)]
    vectors = random.normal(size=(3, width))
    directions = random.normal(size=(4000, width))
    reach = sum(np.sqrt(np.einsum("ij,jk,ik->i", directions, shape, directions)) for shape in shapes)
    below = ((directions @ vectors.T) / reach[:, None]).max(axis=0)  # never above the largest
    found = _gauges(vectors, *shapes)
    np.testing.assert_allclose(_gauges(vectors * 7, *shapes), 7 * found, rtol=1e-9)
    assert (found >= below * (1 - 0.02)).all()
    on_border = np.array([shapes[0] @ v / np.sqrt(v @ shapes[0] @ v) + shapes[1] @ v / np.sqrt(v @ shapes[1] @ v)
                          for v in directions[:20]])  # fmt: skip
    border = _gauges(on_border, *shapes)
    assert (border <= 1 + 1e-6).all()
    assert (border >= 0.98).all()


def test_one_ellipsoid_alone_has_the_gauge_of_its_form():
    shape = np.diag([4.0, 9.0])
    np.testing.assert_allclose(
        _gauges(np.array([[2.0, 0.0], [0.0, 6.0]]), shape, np.zeros((2, 2))), [1.0, 2.0], rtol=2e-3
    )


def test_shapes_that_are_indefinite_by_rounding_cost_nobody_else_an_answer():
    """A party may send X'X and a covariance whose least eigenvalue is below 0 by what rounding is allowed."""
    asked, odd = question(), np.eye(WIDTH)
    odd[0, 1] = odd[1, 0] = 1 + 3e-9
    assert np.linalg.eigvalsh(odd)[0] < -2e-9
    good = sent(asked, asked.mechanism(ROWS).release(ROWS, np.zeros(SIZE), NoiseBits(1, "sums"), 1))
    zeros = {"moment": np.full((1, 1, WIDTH), 20.0), "row_sum": np.zeros((1, WIDTH))}
    bad = {**zeros, "size": np.array([float(SIZE)]), "gram": 10 * odd[None], "covariance": 1e-2 * odd[None]}

    def alone(arrays):
        only = LabelSumAnswers(asked, 1, asked.promise())
        assert only.add(Submission(asked.kind, np.array([0]), arrays, asked.promise())) == {}
        return only.total("moment")

    answers = LabelSumAnswers(asked, 2, asked.promise())
    arrays = {name: np.concatenate([good[name], bad[name]]) for name in good}
    assert answers.add(Submission(asked.kind, np.array([0, 1]), arrays, asked.promise())) == {}
    assert np.isfinite(answers.total("moment")).all()
    np.testing.assert_allclose(answers.total("moment") - alone(bad), good["moment"][0], rtol=1e-9)
