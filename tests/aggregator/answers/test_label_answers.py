import numpy as np
import pytest

from aggregator.answers.label_answers import LabelAnswers
from federation.contract.question import ReleaseId
from federation.contract.randomness import NoiseBits
from federation.contract.submission import Submission
from federation.features.feature_map import FeatureMap
from federation.mechanisms.labels.shaped_gaussian import fit_shape
from federation.questions.labels import LabelledRows, LabelSumsNoise, LabelSumsQuestion


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
    question = LabelSumsQuestion(known, declared, shape, release=ReleaseId("a release"), draws=50, seeded=True)
    mechanism = question.mechanism(rows)
    moment = mechanism.release(rows, labels, NoiseBits(1, "test"), 50)
    assert fit_shape(rows, shape).transform.shape[1] < 8
    arrays = {"size": np.array([400.0]), "gram": (rows.T @ rows)[None], "moment": moment[None]}
    arrays |= {"row_sum": rows.sum(axis=0)[None], "covariance": mechanism.covariance()[None]}
    answers = LabelAnswers(question, 1, question.promise())
    assert answers.add(Submission("label_sums", np.array([0]), arrays, question.promise())) == {}
    assert answers.answered == 1
