"""What is expected of a release, in a word and beside the constant answer.

The share of rows that is told wrongly, by the size of the noise.
"""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm
from support.voting import ensemble, instance

from aggregator.contract.expectations import (
    Expected,
    diagnose,
    excess_risk_bound,
    expected_accuracy,
    expected_agreement,
    expected_of_means,
)
from aggregator.contract.session import LinearScores, Perturbable
from aggregator.protocols.soft_vote.soft_vote import SoftVote
from aggregator.trial.plan import PublicNumbers
from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.noise.additive import calibrate
from federation.numerics.rows import contrasts

SIZES = {"features": 10, "regularisation": 0.1, "parties": 100, "epsilon": 1.0, "rows": 1000, "best_norm": 1.0}


def test_the_bound_of_theorem_4_is_its_three_terms_and_falls_with_all_that_helps():
    sizes = {"features": 10, "regularisation": 0.5, "parties": 20, "epsilon": 2.0, "rows": 100, "best_norm": 3.0}
    found = excess_risk_bound(**sizes, noise_failure=0.1, sample_failure=0.2)
    noise = 4 * 10**2 * 0.75 * math.log(100) ** 2 / (0.5**2 * 20**2 * 2**2)
    assert found == pytest.approx(noise + 16 * (32 + math.log(5)) / 50 + 0.25 * 9)
    published = {"features": 300, "regularisation": 1e-4, "parties": 1000, "epsilon": 10.0, "rows": 1352}
    assert excess_risk_bound(**published, best_norm=10.0) == pytest.approx(6.8e6, rel=0.01)  # vacuous: ln 2 is useless
    whole = excess_risk_bound(**SIZES)
    for name, factor in (("parties", 10), ("epsilon", 10), ("rows", 10), ("features", 0.5), ("best_norm", 0.5)):
        assert excess_risk_bound(**{**SIZES, name: type(SIZES[name])(SIZES[name] * factor)}) < whole
    for change in ({"parties": 0}, {"epsilon": math.inf}, {"noise_failure": 0.0}, {"best_norm": -1.0}):
        with pytest.raises(InputError, match=next(iter(change))):
            excess_risk_bound(**{**SIZES, **change})


def simulated(classes, rank, noise, epsilon, draws=120, rows=150, seed=1):
    """Predicted agreements (draws,) and measured ones, for signals that vary evenly over the coordinates."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(rows, rank)) * np.exp(random.normal(size=(rows, 1)))
    scores = LinearScores.of_features(features, contrasts(classes), np.ones(rank))
    dimension = (classes - 1) * rank
    mechanism = calibrate(noise, sensitivity=0.01, dimension=dimension, epsilon=epsilon, delta=1e-6)
    values = 0.05 * random.normal(size=(draws, dimension))
    bits = NoiseBits(seed, f"agreement {classes} {rank} {noise} {epsilon}")
    noisy = values + mechanism.release(np.zeros(dimension), bits, draws)
    before, after = (np.array([scores.of(one).argmax(axis=1) for one in values_]) for values_ in (values, noisy))
    return expected_agreement(scores, noisy, mechanism), (before == after).mean(axis=1)


@pytest.mark.parametrize("classes", [2, 3, 6])
@pytest.mark.parametrize(("noise", "epsilon"), [("gaussian", 0.3), ("gaussian", 1.0), ("gaussian", 8.0), ("pure", 8.0)])
def test_predicted_agreement_is_close_to_the_measured_one(classes, noise, epsilon):
    predicted, measured = simulated(classes, 20, noise, epsilon)
    assert measured.mean() == pytest.approx(predicted.mean(), abs=0.04)
    assert abs(predicted - measured).mean() < 0.12


def test_hardly_any_noise_leaves_every_class_and_two_classes_have_a_closed_form():
    predicted, measured = simulated(4, 30, "gaussian", 500.0)
    assert predicted.mean() > 0.98 < measured.mean()
    predicted, measured = simulated(4, 30, "gaussian", 0.01)
    assert predicted.mean() == pytest.approx(1 / 4, abs=0.08)
    assert measured.mean() == pytest.approx(1 / 4, abs=0.05)
    # One row, one coordinate: Phi(sqrt(rho) |score difference| / (deviation of the difference)).
    mechanism = calibrate("gaussian", sensitivity=0.1, dimension=1, epsilon=1.0, delta=1e-2)
    deviation = math.sqrt(mechanism.variance())
    scores = LinearScores.of_features(np.ones((1, 1)), contrasts(2), np.ones(1))
    noisy = np.array([[3 * deviation]])
    expected = norm.cdf(math.sqrt(1 - 1 / 9) * 3)
    assert expected_agreement(scores, noisy, mechanism)[0] == pytest.approx(expected, rel=1e-12)
    mechanism = calibrate("gaussian", sensitivity=0.1, dimension=6, epsilon=1.0, delta=1e-2)
    scores = LinearScores.of_features(np.ones((5, 2)), contrasts(4), np.ones(2))
    assert expected_agreement(scores, np.zeros((1, 6)), mechanism)[0] == pytest.approx(1 / 4, abs=1e-6)


VARIANTS = {
    "least squares": SoftVote(submit="votes", noise="gaussian"),
    "isotropic": SoftVote(submit="votes", noise="gaussian", shape="isotropic"),
    "output": SoftVote(noise="gaussian", perturb="output", sensitivity="public_features", regularisation=0.1),
}


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("classes", [2, 3])
def test_released_models_agree_with_the_noise_free_one_as_predicted(name, classes):
    chosen = VARIANTS[name]
    random = np.random.default_rng(classes)
    votes, rows = instance(classes, parties=200, rows=200, width=8, classes=classes)
    truth = (rows @ random.normal(size=(8, classes))).argmax(axis=1)
    votes = np.where(random.random(votes.shape) < 0.4, truth, votes)  # a common opinion among random ones
    prepared = chosen.prepare(ensemble(votes, rows, classes))
    known = {"sensitivity": prepared.sensitivity, "dimension": len(prepared.value)}
    mechanism = calibrate("gaussian", **known, epsilon=0.6, delta=1e-6)
    noisy = mechanism.release(prepared.value, NoiseBits(3, name), 40)
    predicted = expected_agreement(prepared.scores, noisy, mechanism)
    clean = (rows @ prepared.decode(prepared.value[None], mechanism)[0].T).argmax(axis=1)
    released = (prepared.decode(noisy, mechanism) @ rows.T).argmax(axis=1)
    measured = (released == clean).mean(axis=1)
    assert 0.4 < measured.mean() < 0.98
    assert predicted.mean() == pytest.approx(measured.mean(), abs=0.1)


def test_a_release_is_diagnosed_by_what_it_has():
    votes, rows = instance(3)
    world = ensemble(votes, rows, 3)
    for options, keys in (
        ({}, {"noise_to_signal", "expected_agreement"}),
        ({"perturb": "output"}, {"noise_to_signal", "expected_agreement"}),
        ({"perturb": "output", "protect": "party_and_auxiliary_row"}, {"noise_to_signal"}),
    ):
        prepared = SoftVote(**options).prepare(world)
        known = {"sensitivity": prepared.sensitivity, "dimension": len(prepared.value)}
        mechanism = calibrate("pure", **known, epsilon=1.0, delta=0.0)
        found = diagnose(prepared, mechanism, mechanism.release(prepared.value, NoiseBits(1, "d"))[0])
        assert set(found) == keys
        assert json.loads(json.dumps(found)) == found
        assert 1 / 3 - 0.01 <= found.get("expected_agreement", 1.0) <= 1
    assert not diagnose(Perturbable(np.zeros(2), 1.0, None, (), ()), mechanism, np.zeros(2))


def test_an_expectation_names_what_it_assumes_follows_the_rows_and_says_what_nobody_knows():
    known = PublicNumbers(1e-6, classes=4, attainable=0.85, majority=0.6)
    found = expected_accuracy(0.42, known, "guess", "parties agree")
    assert found.error == pytest.approx(1 - (0.25 + 0.6 / 2))
    assert found.constant == pytest.approx(0.4)
    assert found.assuming == "0.85 can be had without noise and parties agree"
    assert expected_accuracy(1.0, PublicNumbers(1e-6), "measured").constant is None
    assert Expected(0.2, 0.1, "exact", "it holds", constant=0.2).hopeless
    assert not Expected(0.19, 0.1, "exact", "it holds", constant=0.2).hopeless
    assert not Expected(5.0, 0.1, "exact", "it holds").hopeless
    words = {None: "", 0.0: "little", 0.06: "visible", 0.3: "large", 1.0: "very large"}
    assert {noise: Expected(0.1, noise, "guess", "it holds").loss for noise in words} == words
    for error, noise, constant in ((-1, None, None), (0.1, math.nan, None), (0.1, 0.1, -0.5)):
        with pytest.raises(InputError, match="0"):
            Expected(error, noise, "guess", "it holds", constant)
    known = PublicNumbers(1e-6, features=10, attainable=0.85)
    loud = {"responses": False, "shrunk": True}
    usual = expected_of_means(0.3, known, "measured", **loud)
    even = expected_of_means(0.3, replace(known, spectrum=(0.1,) * 10), "measured", **loud)
    # Where rows go in all directions alike, it does not matter in which ones classes differ.
    assert ", else 0." in usual.assuming
    assert even.assuming == "0.85 can be had without noise and classes differ as on usual tables"
    assert usual.constant is None
    with_share = expected_of_means(0.3, replace(known, majority=0.8), "guess", "so", **loud)
    assert with_share.constant == pytest.approx(0.2)
    assert with_share.error < usual.error
    assert with_share.assuming.startswith("0.85 can be had without noise, so and classes")
