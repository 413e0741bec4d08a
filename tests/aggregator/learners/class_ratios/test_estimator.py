"""What every estimator of class ratios is: fitted on checked bags, stored whole, and at home in quapy."""

import json
from dataclasses import dataclass

import numpy as np
import pytest
from support.mixtures import Mixtures, skewed

from aggregator.learners.class_ratios.bag_classifier import BagClassifier, BagClassifierEM
from aggregator.learners.class_ratios.estimator import RatioEstimator
from aggregator.learners.class_ratios.kernel_means import MMD
from aggregator.learners.class_ratios.proportion_svm import ProportionSVM
from federation.contract.errors import InputError

MODELS = [BagClassifier, BagClassifierEM, ProportionSVM, MMD]
pytestmark = pytest.mark.filterwarnings("ignore:bag_classifier_em takes", "ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def world():
    return Mixtures(3, distance=5.0)


@pytest.fixture(scope="module", params=MODELS, ids=lambda model: model.name)
def model(request, world):
    """Fitted on six bags."""
    shares = np.concatenate([skewed(3, 0.1)] * 2)
    return request.param().fit(world.bags(shares, 100, np.random.default_rng(0)), shares)


def test_samples_go_in_one_by_one_and_it_is_fitted_on_what_was_checked(model, world):
    """QuaPy iterates over a protocol's (instances, prevalence) and stacks what `predict` gives for the instances."""
    rng = np.random.default_rng(1)
    prevalences = rng.dirichlet(np.ones(3), 5)
    estimates = [model.predict(world.rows(true, 100, rng)) for true in prevalences]
    stacked = np.asarray(estimates)
    assert stacked.shape == prevalences.shape
    assert stacked.sum(axis=1) == pytest.approx(1)
    assert np.abs(stacked - prevalences).mean() < 0.1
    assert not hasattr(model, "classify")  # which QuaPy would call once for all samples
    found = Constant()
    assert found.fit([[[1, 2], [3, 4]], [[5, 6]]], [[1, 0], [0, 1]]) is found
    assert (found.bags_, found.noise) == (2, None)
    np.testing.assert_array_equal(found.predict([[1, 2]]), [0.5, 0.5])
    assert found.embedded.dtype == np.float64


def test_quapy_evaluates_them_under_both_of_its_protocols(model, world):
    quapy = pytest.importorskip("quapy")
    from quapy.protocol import APP, UPP

    rng = np.random.default_rng(2)
    rows, labels = np.concatenate([world.rows(np.eye(3)[y], 200, rng) for y in range(3)]), np.repeat(np.arange(3), 200)
    collection = quapy.data.LabelledCollection(rows, labels)
    for protocol in (
        UPP(collection, sample_size=100, repeats=5, random_state=0),
        APP(collection, sample_size=100, n_prevalences=3, repeats=1, random_state=0),
    ):
        assert quapy.evaluation.evaluate(model, protocol, "mae") < 0.1
        report = quapy.evaluation.evaluation_report(model, protocol, error_metrics=["mae", "ae"])
        assert len(report) == protocol.total()
    samples = [collection.sampling(50, 0.2, 0.3, 0.5, random_state=0)]
    assert quapy.evaluation.evaluate_on_samples(model, samples, "mae") < 0.1


@dataclass(eq=False, repr=False)
class Constant(RatioEstimator):
    """Says of every set the mean of the proportions that it was fitted on."""

    name = "constant"
    fitted = ("shares_", "bags_", "unused_")

    seed: int = 0

    def _fit(self, bags, proportions, noise):
        self.shares_, self.bags_, self.unused_ = proportions.mean(axis=0), len(bags), None
        self.noise = noise

    def embed(self, rows):
        self.embedded = rows
        return self.shares_

    def embedding_key(self):
        return "one"


BAGS, SHARES = [np.ones((3, 2)), np.zeros((4, 2))], np.array([[0.75, 0.25], [0.25, 0.75]])


@pytest.mark.parametrize(("bags", "shares", "options", "words"), [
    (BAGS, SHARES[:1], {}, "proportions"), (BAGS, 2 * SHARES, {}, "proportions"),
    ([BAGS[0], np.full((2, 2), np.nan)], SHARES, {}, "1"), (BAGS, SHARES, {"seed": -1}, "seed"),
    (BAGS, SHARES, {"seed": 0.5}, "seed"),
])  # fmt: skip
def test_what_cannot_be_used_is_refused_before_anything_is_learned(bags, shares, options, words):
    found = Constant(**options)
    with pytest.raises(InputError, match=words):
        found.fit(bags, shares)
    assert not hasattr(found, "shares_")


def test_parameters_and_what_is_fitted_are_all_that_is_stored_and_a_subclass_must_learn():
    found = Constant(seed=np.int64(7)).fit(BAGS, SHARES)
    description, arrays = found.to_arrays()
    assert json.loads(json.dumps(description)) == {
        "estimator": "constant", "parameters": {"seed": 7}, "values": {"bags_": 2, "unused_": None},
    }  # fmt: skip
    assert list(arrays) == ["shares_"]
    again = Constant.from_arrays(description, {**arrays, "stranger": np.ones(1)})
    np.testing.assert_array_equal(again.predict(BAGS[0]), found.predict(BAGS[0]))
    assert not hasattr(again, "stranger")

    class Idle(Constant):
        _fit = RatioEstimator._fit

    with pytest.raises(NotImplementedError, match="Idle must define _fit or fit"):
        Idle().fit(BAGS, SHARES)
