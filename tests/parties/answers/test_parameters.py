from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from support.synthetic import Parties

from aggregator.protocols.parameter_average import ParameterAverage
from aggregator.trial.feature_fitting import fit
from aggregator.trial.public_rows import PublicRows
from federation.contract.errors import InputError
from federation.contract.plugins import Reference
from federation.contract.query import check_submission
from federation.numerics.rows import contrasts
from federation.queries.votes import Training
from parties.party_data.cohort import Cohort, Holdings
from parties.responses import vectors as parameters
from parties.training import linear

LAM = 1e-2


class TwoClasses(Parties):
    """The synthetic parties with class 2 counted as class 1."""

    def holdings(self, party):
        held = super().holdings(party)
        return Holdings(party, held.rows, np.minimum(held.labels, 1))


class OneClass(Parties):
    """Parties who have seen class 1 only."""

    def holdings(self, party):
        held = super().holdings(party)
        return Holdings(party, held.rows, np.ones_like(held.labels))


def cohort(first=0, count=5, provider="support.synthetic:Parties", **arguments):
    return Cohort(Reference(provider, arguments).to_json(), first, count, seed=1)


def question(public, classes=3, stages=({"whiten": 3}, "unit_norm")):
    feature_map = fit(stages, public.rows)
    rows = PublicRows(feature_map, feature_map.transform(public.rows))
    classifier = {"name": "logistic", "parameters": {"regularisation": LAM}}
    return ParameterAverage().question(rows, Training(feature_map, classes, classifier, 0))


def risk(flat, rows, labels, classes):
    if classes == 2:
        margins = np.where(labels == 1, 1, -1) * (rows @ flat)
        return np.logaddexp(0, -margins).mean() + LAM / 2 * flat @ flat
    scores = rows @ flat.reshape(classes, -1).T
    losses = np.logaddexp.reduce(scores, axis=1) - scores[np.arange(len(rows)), labels]
    return losses.mean() + LAM / 2 * flat @ flat


@pytest.mark.parametrize(
    ("classes", "provider", "kind"),
    [(3, "support.synthetic:Parties", Parties), (2, f"{__name__}:TwoClasses", TwoClasses),
     (3, f"{__name__}:OneClass", OneClass), (2, f"{__name__}:OneClass", OneClass)],
)  # fmt: skip
def test_an_answer_is_the_minimiser_of_the_partys_own_risk_over_all_classes(public, classes, provider, kind):
    asked = question(public, classes)
    submission = parameters.respond_parameters(cohort(provider=provider), asked)
    check_submission(asked, submission)
    assert submission.parties.tolist() == [0, 1, 2, 3, 4]
    for party in range(3):
        held = kind().holdings(party)
        rows = asked.training.feature_map.transform(held.rows)
        start = np.zeros(3 if classes == 2 else 3 * classes)
        found = minimize(risk, start, (rows, held.labels, classes), method="BFGS", options={"gtol": 1e-10}).x
        sent = submission.arrays["parameters"][party]
        full = sent[0] if classes == 2 else (contrasts(classes) @ sent).ravel()
        np.testing.assert_allclose(full, found, atol=1e-5)
        assert np.linalg.norm(sent) == pytest.approx(np.linalg.norm(found), rel=1e-5)  # contrasts lose nothing


def test_parameters_are_the_same_bits_whoever_shares_the_cohort(public):
    asked = question(public)
    whole = parameters.respond_parameters(cohort(0, 8), asked)
    for party in range(8):
        alone = parameters.respond_parameters(cohort(party, 1), asked)
        assert alone.arrays["parameters"][0].tobytes() == whole.arrays["parameters"][party].tobytes()


def test_a_broken_party_is_named_and_leaves_the_others_alone(public):
    asked = question(public)
    whole = parameters.respond_parameters(cohort(0, 4), asked)
    spoilt = parameters.respond_parameters(cohort(0, 4, broken=[2]), asked)
    assert spoilt.parties.tolist() == [0, 1, 3]
    assert list(spoilt.failures) == [2]
    np.testing.assert_array_equal(spoilt.arrays["parameters"], whole.arrays["parameters"][[0, 1, 3]])


def test_when_training_them_together_fails_only_the_culprit_fails(public, monkeypatch):
    asked = question(public)
    whole = parameters.respond_parameters(cohort(0, 3), asked)
    culprit = asked.training.feature_map.transform(Parties().holdings(1).rows)[0]
    solve = linear.fit_many

    def fragile(rows, *arguments):
        if (rows == culprit).all(axis=1).any():
            raise FloatingPointError("no minimiser")
        return solve(rows, *arguments)

    monkeypatch.setattr(linear, "fit_many", fragile)
    spoilt = parameters.respond_parameters(cohort(0, 3), asked)
    assert spoilt.parties.tolist() == [0, 2]
    assert "no minimiser" in spoilt.failures[1]
    np.testing.assert_array_equal(spoilt.arrays["parameters"], whole.arrays["parameters"][[0, 2]])


def test_nobody_left_is_an_empty_answer(public):
    asked = question(public)
    submission = parameters.respond_parameters(cohort(0, 2, broken=[0, 1]), asked)
    check_submission(asked, submission)
    assert submission.arrays["parameters"].shape == (0, 2, 3)


@pytest.mark.parametrize("stages", [({"whiten": 3},), ("scale", "constant")])
def test_long_rows_are_served_too(public, stages):
    asked = question(public, stages=stages)
    submission = parameters.respond_parameters(cohort(), asked)
    assert not submission.failures
    assert not asked.fields()["parameters"].invalid(submission.arrays["parameters"]).any()


@pytest.mark.parametrize(
    ("classifier", "words"),
    [
        ({"name": "GaussianNB", "parameters": {}}, "only a logistic regression"),
        ({"name": "logistic", "parameters": [LAM]}, "must be a name with parameters"),
        ({"name": "logistic", "parameters": {"regularisation": "1"}}, "positive number"),
    ],
)
def test_only_a_logistic_regression_is_asked_for_its_parameters(public, classifier, words):
    asked = question(public)
    with pytest.raises(InputError, match=words):
        parameters.respond_parameters(cohort(), replace(asked, training=replace(asked.training, classifier=classifier)))
