"""Estimators as models in QuaPy's evaluation: by its way of calling them, and by QuaPy itself where it is installed."""

from __future__ import annotations

import numpy as np
import pytest
from support.mixtures import Mixtures, skewed

from aggregator.learners.class_ratios.bag_classifier import BagClassifier, BagClassifierEM
from aggregator.learners.class_ratios.mmd import MMD
from aggregator.learners.class_ratios.proportion_svm import ProportionSVM

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


def test_samples_go_in_one_by_one_and_prevalences_come_out(model, world):
    """QuaPy iterates over a protocol's (instances, prevalence) and stacks what `predict` gives for the instances."""
    rng = np.random.default_rng(1)
    prevalences = rng.dirichlet(np.ones(3), 5)
    estimates = [model.predict(world.rows(true, 100, rng)) for true in prevalences]
    stacked = np.asarray(estimates)
    assert stacked.shape == prevalences.shape
    assert stacked.sum(axis=1) == pytest.approx(1)
    assert np.abs(stacked - prevalences).mean() < 0.1
    assert not hasattr(model, "classify")  # which QuaPy would call once for all samples


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
