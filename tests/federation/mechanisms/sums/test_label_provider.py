"""The message of a labels provider: what is in it, what it promises, and what is refused."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from aggregator.learners.mean_operators.classifiers import MeanOperatorClassifier
from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.sums.label_provider import release_moment
from federation.numerics.rows import within_norm


@pytest.fixture(scope="module")
def tumours():
    rows, labels = load_breast_cancer(return_X_y=True)
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    rows = np.column_stack([rows, np.ones(len(rows))])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True), labels


def test_a_learner_with_the_rows_needs_nothing_else(tumours):
    rows, labels = tumours
    message = release_moment(rows, labels, epsilon=1, delta=1e-6, bits=NoiseBits(1, "test"))
    learned = MeanOperatorClassifier().fit_moment(rows, message.moment, message.noise_variance)
    assert np.mean(learned.predict(rows) == labels) > 0.9
    assert (message.guarantee.unit, message.guarantee.epsilon) == ("label", 1)
    # Without bits of one's own no two messages have the same noise.
    first, second = (release_moment(rows, labels, epsilon=1).moment for _ in range(2))
    assert (first != second).any()


def test_the_noise_on_the_mean_has_the_variance_that_is_told(tumours):
    rows, labels = tumours
    exact = (2 * labels - 1) @ rows / len(rows)
    bits = NoiseBits(2, "test")
    squares = [np.sum((release_moment(rows, labels, epsilon=0.5, bits=bits).moment - exact) ** 2) for _ in range(300)]
    told = release_moment(rows, labels, epsilon=0.5).noise_variance
    assert np.mean(squares) == pytest.approx(told, rel=0.15)


def test_a_bound_in_l1_makes_for_less_noise(tumours):
    rows, labels = tumours
    known = {"epsilon": 1, "noise": "laplace", "long_rows": "cut"}
    wide, narrow = (release_moment(rows, labels, **known, l1_bound=bound) for bound in (None, 2.0))
    assert narrow.noise.parameters["l1_bound"] == 2.0
    assert narrow.noise_variance == pytest.approx(wide.noise_variance * 4 / rows.shape[1], rel=1e-3)


def test_rows_that_are_a_little_too_long_are_refused_but_for_rounding(tumours):
    rows, labels = tumours
    release_moment(rows * (1 + 1e-12), labels, epsilon=1)
    with pytest.raises(InputError, match=r"rows.*1.*0"):
        release_moment(rows * (1 + 1e-6), labels, epsilon=1)


@pytest.mark.parametrize(("l1_bound", "noise"), [(None, "pure"), (2.0, "laplace")])
def test_rows_over_the_bound_are_refused_unless_they_may_be_cut(tumours, l1_bound, noise):
    rows, labels = tumours
    scaled, known = rows * 3, {"epsilon": 1, "l1_bound": l1_bound}
    with pytest.raises(InputError, match=r"0.*3.*long_rows.*cut"):
        release_moment(scaled, labels, **known)
    one, other = (
        release_moment(given, labels, **known, noise=noise, long_rows="cut", bits=NoiseBits(3, "test")).moment
        for given in (scaled, within_norm(scaled, l1_bound))
    )
    np.testing.assert_allclose(one, other, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"labels": np.array([0, 2])}, r"labels.*0.*1.*2"),
        ({"labels": np.array([0])}, "labels"),
        ({"rows": np.array([[np.nan], [0.1]])}, "finite"),
        ({"long_rows": "drop"}, "long_rows"),
        *(({"l1_bound": bound}, "l1_bound") for bound in (0.0, -1.0)),
        ({"epsilon": 0.0}, "epsilon"),
        ({"noise": "gaussian"}, "delta"),
    ],
)
def test_bad_input_is_refused(change, words):
    with pytest.raises(InputError, match=words):
        release_moment(**{"rows": np.array([[0.5], [0.1]]), "labels": np.array([0, 1]), "epsilon": 1.0} | change)
