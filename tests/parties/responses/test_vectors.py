"""What a party adds to a sum of vectors: the trusted answer in the ball, computed once, with a share of the noise."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from support.questions import QUESTIONS
from support.synthetic import Parties

from aggregator.protocols.parameter_average import ParameterAverage
from aggregator.trial.feature_fitting import fit
from aggregator.trial.public_rows import PublicRows
from federation.contract.errors import InputError
from federation.contract.plugins import Reference
from federation.contract.query import ReleaseId, check_submission
from federation.contract.randomness import NoiseBits
from federation.features.feature_map import Ball
from federation.numerics.rows import contrasts
from federation.queries.votes import Training, VectorNoise
from parties.guard.answering import answered
from parties.party_data.cohort import Cohort, DroppedOut, Holdings
from parties.responses import vectors as parameters
from parties.responses import votes as statistic

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
    nobody = parameters.respond_parameters(cohort(0, 2, broken=[0, 1]), asked)
    check_submission(asked, nobody)
    assert nobody.arrays["parameters"].shape == (0, 2, 3)


@pytest.mark.parametrize("stages", [({"whiten": 3},), ("scale", "constant")])
def test_long_rows_are_served_too(public, stages):
    asked = question(public, stages=stages)
    submission = parameters.respond_parameters(cohort(), asked)
    assert not submission.failures
    assert not asked.fields()["parameters"].invalid(submission.arrays["parameters"]).any()


@pytest.mark.parametrize(
    "classifier",
    [
        {"name": "GaussianNB", "parameters": {}},
        {"name": "logistic", "parameters": [LAM]},
        {"name": "logistic", "parameters": {"regularisation": "1"}},
    ],
)
def test_only_a_logistic_regression_is_asked_for_its_parameters(public, classifier):
    asked = question(public)
    with pytest.raises(InputError):
        parameters.respond_parameters(cohort(), replace(asked, training=replace(asked.training, classifier=classifier)))


MAP = fit(["standardise", "unit_norm"], np.random.default_rng(0).normal(size=(60, 4)))
KINDS = {  # the module and the function of the trusted response
    "statistic_sum": (statistic, "respond_statistic"),
    "parameter_sum": (parameters, "respond_parameters"),
}


class Unwilling:
    """Party 1 stays away, party 2 holds nothing; the others hold classes of their own."""

    def holdings(self, party):
        if party == 1:
            raise DroppedOut
        rows = np.random.default_rng(party).normal(size=(0 if party == 2 else 6, 4))
        return Holdings(party, rows, np.arange(len(rows)) % 3)


def vector_sums_question(kind, noise="pure", **changes):
    found = QUESTIONS[kind]
    training = replace(found.asked.training, feature_map=MAP)
    rows = np.random.default_rng(1).normal(size=(30, 4))
    parts = {"rows": rows, "coordinates": rows[:, :2]} if kind == "statistic_sum" else {}
    asked = replace(found.asked, training=training, **parts)
    known = {"noise": VectorNoise(noise, 1.0, 1e-6 if noise == "gaussian" else 0.0), "seeded": True, **changes}
    return replace(found, asked=asked, **known)


def exact(kind, asked):
    """The trusted answers (P, D) by party."""
    found = getattr(*KINDS[kind])(cohort(), asked)
    [array] = found.arrays.values()
    return array.reshape(len(array), -1)[np.argsort(found.parties)]


@pytest.fixture(autouse=True)
def _fresh():
    parameters._latest.clear()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ball", [Ball(0.1), Ball(1.0, scaled=True)])
def test_without_noise_it_is_the_trusted_answer_in_the_ball(kind, ball):
    asked = vector_sums_question(kind, "off", ball=ball, draws=2)
    found = answered(cohort(), asked)
    check_submission(asked, found)
    expected = ball.of(exact(kind, asked.asked))
    for draw in range(2):
        np.testing.assert_array_equal(found.arrays["vectors"][:, draw], expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("noise", ["pure", "gaussian"])
def test_with_noise_it_is_that_and_the_partys_own_share(kind, noise):
    asked = vector_sums_question(kind, noise, draws=3)
    found = answered(cohort(), asked)
    assert found.guarantee is None  # of one share nothing is promised
    for party, vector in enumerate(exact(kind, asked.asked)):
        own = asked.mechanism().release(vector, NoiseBits(1, asked.release.key, party), 3)
        np.testing.assert_array_equal(found.arrays["vectors"][party], own)
    steps = found.arrays["vectors"] / asked.steps["vectors"]
    assert (steps == np.rint(steps)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_questions_of_equal_training_are_answered_by_vectors_that_are_computed_once(kind, monkeypatch):
    calls, place = [], KINDS[kind]
    computed = getattr(*place)

    def counted(node, asked):
        calls.append(node.first)
        return computed(node, asked)

    monkeypatch.setattr(*place, counted)
    first = vector_sums_question(kind)
    others = [replace(first, noise=VectorNoise("pure", float(e)), release=ReleaseId(f"{e}")) for e in (2, 3)]
    for asked in (first, *others):
        answered(cohort(), asked)
    assert calls == [0]
    between = replace(first.asked, training=replace(first.asked.training, trial=1))
    answered(cohort(), replace(first, asked=between))
    assert len(calls) == 2
    answered(replace(cohort(), first=5), first)
    assert len(calls) == 3
    assert len(parameters._latest) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_parties_that_cannot_answer_say_why_and_cost_no_other(kind):
    found = answered(cohort(0, 4, f"{__name__}:Unwilling"), vector_sums_question(kind))
    assert found.parties.tolist() == [0, 3]
    assert found.failures[1] == "dropped out"
    assert found.failures[2].startswith("InputError: party 2 holds no rows")


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_number_is_the_zero_vector(kind, monkeypatch):
    asked = vector_sums_question(kind, "off")
    broken = getattr(*KINDS[kind])(cohort(), asked.asked)
    [array] = broken.arrays.values()
    array[broken.parties == 2, 0, 0] = np.inf
    monkeypatch.setattr(*KINDS[kind], lambda node, asked: broken)
    vectors = answered(cohort(), asked).arrays["vectors"]
    assert np.isfinite(vectors).all()
    assert not vectors[2].any()
    assert vectors[1].any()
