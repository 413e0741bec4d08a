"""Of all that a protocol hands over to be perturbed, nothing but the value depends on what parties answer."""

import numpy as np
import pytest

from aggregator.contract.expectations import diagnose
from aggregator.protocols.majority_vote import MajorityVote
from aggregator.protocols.parameter_average import ParameterAverage
from aggregator.protocols.soft_vote import soft_vote
from aggregator.protocols.soft_vote.soft_vote import SoftVote
from aggregator.trial.feature_fitting import fit
from aggregator.trial.public_rows import PublicRows
from federation.contract.guarantee import Adjacency
from federation.contract.query import Submission
from federation.contract.randomness import NoiseBits
from federation.mechanisms.noise.additive import calibrate
from federation.queries.votes import Training

PARTIES = 9
CLASSIFIER = {"name": "logistic", "parameters": {"regularisation": 1e-2}}
PROTOCOLS = {
    "unit shares": SoftVote(),
    "statistic": SoftVote(submit="votes"),
    "isotropic": SoftVote(submit="votes", shape="isotropic"),
    "erm": SoftVote(submit="votes", decoder="erm"),
    "output": SoftVote(perturb="output", regularisation=0.1),
    "public features": SoftVote(perturb="output", sensitivity="public_features", regularisation=0.1),
    "published": SoftVote(perturb="output", sensitivity="published", regularisation=0.1),
    "row too": SoftVote(perturb="output", protect="party_and_auxiliary_row", regularisation=0.1),
    "votes": SoftVote(perturb="votes", noise="gaussian"),
    "probabilities": SoftVote(submit="votes", ballot="probabilities"),
    "shares": SoftVote(share="raw"),
    "majority": MajorityVote(regularisation=0.1),
    "unit": ParameterAverage(),
    "clipped": ParameterAverage(average="clipped"),
    "plain": ParameterAverage(average="plain"),
}


def perturbable(chosen, classes, seed):
    """What is perturbed in a world whose public side is always the same, and whose parties are those of a seed."""
    stages = ("unit_norm",)
    rows = np.random.default_rng(0).normal(size=(14, 3))
    public = PublicRows(fit(stages, rows), fit(stages, rows).transform(rows), stages)
    question = chosen.question(public, Training(public.feature_map, classes, CLASSIFIER, 0))
    collector = chosen.collector(public, question, PARTIES)
    ((name, declared),) = question.fields().items()
    random = np.random.default_rng(seed)
    answering = np.arange(PARTIES - seed % 2)  # one party is missing in some worlds
    shape = (len(answering), *declared.shape)
    if declared.levels is None:
        answers = random.uniform(-1, 1, shape) * declared.maximum
    else:
        answers = random.integers(declared.levels if name == "votes" else 255 // classes, size=shape)
    collector.add(Submission(question.kind, answering, {name: answers.astype(declared.dtype)}))
    return chosen.prepare(collector)


def differences(chosen, classes):
    """What two worlds of different private data say of themselves besides the value, and make of equal noisy values."""
    found = []
    for seed in (2, 5):
        ready = perturbable(chosen, classes, seed)
        mechanism = calibrate(
            chosen.noise, sensitivity=ready.sensitivity, dimension=len(ready.value), epsilon=2.0, delta=1e-6
        )
        noisy = mechanism.release(np.zeros(len(ready.value)), NoiseBits(1, "equal in both worlds"), 3)
        said = (mechanism.guarantee(ready.unit, Adjacency.REPLACE, ready.assumptions), ready.checks, ready.largest_norm)
        found.append((ready.value, said, diagnose(ready, mechanism, noisy[0]), ready.decode(noisy, mechanism)))
    (value, said, diagnostics, weights), (other_value, *other) = found
    assert not np.array_equal(value, other_value)  # the worlds do differ
    made_of_noise = np.array_equal(weights, other[2])
    return {"said": said != other[0], "diagnostics": diagnostics != other[1], "weights": not made_of_noise}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_nothing_but_the_value_depends_on_the_answers(name, classes):
    assert not any(differences(PROTOCOLS[name], classes).values())


def test_a_decoder_that_sees_the_value_is_found(monkeypatch):
    honest = soft_vote.perturb_statistic

    def leaky(ensemble, coordinates, decoder):
        ready = honest(ensemble, coordinates, decoder)
        hint = 1e-9 * ready.value[0]
        object.__setattr__(ready, "decode", lambda noisy, mechanism: decoder.decode(noisy, mechanism) + hint)
        object.__setattr__(ready, "largest_norm", ready.largest_norm + hint)
        return ready

    monkeypatch.setattr(soft_vote, "perturb_statistic", leaky)
    assert all(differences(SoftVote(submit="votes"), 3).values())
