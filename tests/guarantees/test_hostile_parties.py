"""Whatever a party does, the perturbed vector moves by no more than the sensitivity that its noise is scaled to.

The parties' own code answers, honestly or not; the answers cross the wire and reach the aggregator as they do in a run.
"""

from dataclasses import asdict
from typing import get_args

import numpy as np
import pytest

from aggregator.protocols.majority_vote import MajorityVote
from aggregator.protocols.parameter_average import ParameterAverage
from aggregator.protocols.soft_vote.soft_vote import SoftVote
from aggregator.trial.feature_fitting import fit
from aggregator.trial.public_rows import PublicRows
from federation.engines.codec import decode_submission, encode_submission
from federation.queries.votes import Training
from parties.guard.answering import answered
from parties.party_data.cohort import Cohort
from scenarios.settings.words import Kind
from scenarios.simulated.simulation import Conduct, SplitSpec

PARTIES = 12
PROTOCOLS = {  # a variant for every kind of answer and of perturbed vector
    "unit shares": SoftVote(),
    "votes to a statistic": SoftVote(submit="votes"),
    "votes to a minimiser": SoftVote(perturb="output", regularisation=1.0),
    "votes to a majority": MajorityVote(regularisation=1.0),
    "probabilities to a statistic": SoftVote(submit="votes", ballot="probabilities"),
    "shares of a statistic": SoftVote(share="raw"),
    "parameters of norm one": ParameterAverage(),
    "parameters of bounded norm": ParameterAverage(average="clipped"),
    "parameters as they are": ParameterAverage(average="plain"),
}
CLASSIFIER = {"name": "logistic", "parameters": {"regularisation": 1e-2}}
# Ten classes leave codes for classes that do not exist, two leave none.
WORLDS = {source: SplitSpec(source, None, None, None, None, 100, 0.2, PARTIES, 12, "iid", 1, 0) for source in
          ("digits", "breast_cancer")}  # fmt: skip


def perturbed(protocol, source, conduct):
    """What the aggregator is about to perturb, its sensitivity, and the parties whose answers it refused."""
    spec = WORLDS[source]
    table = spec.reference("public_rows").call()
    feature_map = fit([{"whiten": 5}, "unit_norm"], table.rows)
    public = PublicRows(feature_map, feature_map.transform(table.rows))
    training = Training(feature_map, 10 if source == "digits" else 2, CLASSIFIER, spec.split)
    question = protocol.question(public, training)
    collector = protocol.collector(public, question, PARTIES)
    reference = spec.reference("SimulatedParties", conduct=asdict(conduct)).to_json()
    cohort = Cohort(reference, 0, PARTIES, seed=1)
    submission = cohort.provider.sent(question, answered(cohort, question))
    received = decode_submission(encode_submission(submission, question.fields()), question.fields())
    refused = collector.add(received)
    ready = protocol.prepare(collector)
    return ready.value, ready.sensitivity, set(refused) | set(submission.failures)


def attacks():
    yield "dropout", Conduct(dropout=0.3, seed=1)
    for kind in get_args(Kind):
        for count in (1, 5):
            yield f"{count} {kind}", Conduct(hostile=count / PARTIES, kind=kind, seed=1)


@pytest.mark.parametrize("source", ["digits", pytest.param("breast_cancer", marks=pytest.mark.slow)])
@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_no_party_moves_the_perturbed_vector_beyond_the_sensitivity(protocol, source):
    honest, sensitivity, nobody = perturbed(protocol, source, Conduct())
    assert nobody == set()
    moved = {}
    for name, conduct in attacks():
        value, charged, _ = perturbed(protocol, source, conduct)
        assert charged == sensitivity  # never depends on what parties do
        changed = conduct.attackers(PARTIES) | [conduct.drops_out(party) for party in range(PARTIES)]
        assert changed.any()
        moved[name] = float(np.linalg.norm(value - honest)) / sensitivity
        assert moved[name] <= changed.sum() * (1 + 1e-9), name
    assert moved["5 flip"] > 0  # the attack is one


def test_what_is_out_of_form_is_refused_where_it_can_be_written_and_counts_as_a_party_that_dropped_out():
    conduct = Conduct(hostile=1 / PARTIES, kind="malformed", seed=1)
    [attacker] = np.flatnonzero(conduct.attackers(PARTIES))
    refused, _, whom = perturbed(SoftVote(submit="votes"), "digits", conduct)
    assert whom == {attacker}
    assert perturbed(SoftVote(submit="votes"), "breast_cancer", conduct)[2] == set()
    largest = Conduct(hostile=1 / PARTIES, kind="oversized", seed=1)
    assert perturbed(SoftVote(submit="votes"), "digits", largest)[2] == set()
    seed = next(s for s in range(10_000) if [Conduct(dropout=0.05, seed=s).drops_out(p) for p in range(PARTIES)]
                == [p == attacker for p in range(PARTIES)])  # fmt: skip
    dropped, _, gone = perturbed(SoftVote(submit="votes"), "digits", Conduct(dropout=0.05, seed=seed))
    assert gone == {attacker}
    np.testing.assert_array_equal(refused, dropped)
