"""Shrunk regressions from sums over bags: against shrinkage of the sums as rows, and against least squares."""

from __future__ import annotations

import numpy as np
import pytest
from support.linear_labels import RANGE, WEIGHTS, draw

from aggregator.learners.bag_regression.linear import BagLeastSquares
from aggregator.learners.shrinkage import shrink
from aggregator.regressions.models import FREE, constant_answer, shrunk_sums, sum_variance, variance
from federation.contract.query import ReleaseId
from federation.features.feature_map import FeatureMap
from federation.features.steps import Append, UnitNorm
from federation.queries.labels import (
    BagSums,
    BagSumsNoise,
    BagSumsQuestion,
    LabelledRows,
    WeightedSumsNoise,
    WeightedSumsQuestion,
)

SIZE = 4
WITH_CONSTANT = (Append(1.0),)
RELEASE = {"release": ReleaseId("a release"), "draws": 1, "seeded": True}


def asked(kind="gaussian", ends=RANGE, epsilon=1.0, steps=WITH_CONSTANT, bags=20):
    rows = LabelledRows(FeatureMap(3, steps), *ends, bags * SIZE)
    if kind == "secret":
        noise = WeightedSumsNoise("gaussian", epsilon, 1e-3)
        return WeightedSumsQuestion(noise, rows, BagSums(0, bags, SIZE, "gaussian", 0, 0), **RELEASE)
    return BagSumsQuestion(BagSumsNoise(kind, epsilon, 1e-3), rows, BagSums(0, bags, SIZE, "signs", SIZE, 0), **RELEASE)


def summed(question, seed=0, shift=0.0):
    """Sums of rows with a constant and of noisy labels, of as many bags as the question asks for."""
    bags = question.design.bags
    random = np.random.default_rng(seed)
    rows, labels = draw(seed, bags * SIZE)
    rows, labels = np.column_stack([rows, np.ones(len(rows))]), labels + shift
    weights = random.choice([-1.0, 1.0], size=(bags, SIZE))
    held = rows.reshape(bags, SIZE, 4)
    deviation = question.mechanism().sigma * SIZE**0.5
    sums = (weights * labels.reshape(bags, SIZE)).sum(axis=1) + deviation * random.normal(size=bags)
    return np.einsum("mk,mkd->md", weights, held), sums


@pytest.mark.parametrize("shift", [0.0, 500.0])
def test_sums_take_the_place_of_rows(shift):
    question = asked(ends=(RANGE[0] + shift, RANGE[1] + shift))
    row_sums, label_sums = summed(question, shift=shift)
    gram, constant = row_sums.T @ row_sums, np.array([0, 0, 0, 1.0])
    residuals = label_sums - row_sums @ np.linalg.lstsq(row_sums, label_sums)[0]
    noise = residuals @ residuals / (20 - 4) * gram
    known = {"ones": gram @ constant, "rows": 80, "label_range": question.rows.label_range}
    expected = shrink(gram, row_sums.T @ label_sums, noise, **known)
    np.testing.assert_allclose(shrunk_sums(row_sums, label_sums, question), expected.weights, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_it_is_closer_to_the_law_than_least_squares(epsilon):
    question, rows = asked(epsilon=epsilon), np.column_stack([draw(99, 300)[0], np.ones(300)])
    worlds = [summed(question, seed) for seed in range(20)]
    least = [BagLeastSquares().fit(*world).weights_ for world in worlds]
    shrunk = [shrunk_sums(*world, question) for world in worlds]
    before, after = (np.mean((rows @ (np.array(found) - [*WEIGHTS, 0.0]).T) ** 2) for found in (least, shrunk))
    assert after < {0.1: 0.05, 1.0: 0.5, 10.0: 1.0}[epsilon] * before


def test_fewer_bags_than_features_leave_the_middle_of_the_range_where_nothing_is_known():
    question = asked(ends=(100.0, 120.0), bags=2, epsilon=0.01)
    row_sums, label_sums = summed(question, shift=110.0)
    found = shrunk_sums(row_sums, label_sums, question)
    norms = np.linalg.norm(row_sums, axis=0)
    lacking = np.linalg.svd(row_sums / norms)[2][2:]  # directions in which there is no sum
    np.testing.assert_allclose(lacking @ (norms * found), lacking @ (norms * [0, 0, 0, 110.0]), rtol=1e-9)


def test_features_without_a_constant_are_not_shrunk():
    question = asked()
    row_sums, label_sums = summed(question)
    assert shrunk_sums(row_sums, label_sums, asked(steps=(Append(1.0), UnitNorm()))) is None
    assert constant_answer(FeatureMap(3, ())) is None
    assert constant_answer(FeatureMap(3, (Append(0.0),))) is None
    rows = FeatureMap(3, (Append(4.0),)).transform(draw(0, 5)[0])
    np.testing.assert_array_equal(rows @ constant_answer(FeatureMap(3, (Append(4.0),))), np.ones(5))


@pytest.mark.parametrize("beyond", [-1, 0])
def test_residuals_tell_of_noise_where_there_are_enough(rng, beyond):
    rows = np.column_stack([rng.normal(size=(3 + FREE + beyond, 3)), np.zeros(3 + FREE + beyond)])
    labels = rng.normal(size=len(rows))
    if beyond:
        assert variance(rows, labels, 7.0) == 7.0
    else:
        residuals = labels - rows @ np.linalg.lstsq(rows, labels)[0]
        assert variance(rows, labels, 7.0) == pytest.approx(residuals @ residuals / FREE)


@pytest.mark.parametrize("kind", ["gaussian", "laplace", "secret"])
def test_the_variance_of_a_sum_is_that_of_noise_and_of_labels_all_along_the_range(kind):
    question = asked(kind)
    mechanism = question.mechanism()
    noise = {
        "gaussian": lambda: SIZE * mechanism.sigma**2,
        "laplace": lambda: 2 * mechanism.scale**2,
        "secret": lambda: mechanism.tau**2,
    }[kind]()
    assert sum_variance(question) == pytest.approx(noise + SIZE * 20**2 / 12)
