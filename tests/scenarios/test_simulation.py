from dataclasses import asdict, replace

import numpy as np
import pytest

from federation.features import fit
from federation.messages import IndividualQuestion, Training, VotesQuestion
from parties import individual, votes
from parties.holdings import Cohort, DroppedOut
from scenarios.conduct import Conduct
from scenarios.simulation import SplitSpec, split

CLASSIFIER = {"name": "logistic", "parameters": {"regularisation": 1e-3}}


@pytest.fixture
def spec():
    return SplitSpec("digits", None, None, None, None, 200, 0.2, 50, 5, "iid", 1, 0)


def provider(spec, **conduct):
    return spec.reference("SimulatedParties", conduct=asdict(Conduct(**conduct))).call()


def answer(spec, conduct, kind="votes", first=0, count=50):
    """The answers of a cohort, as its node sends them, and the same by party."""
    public = spec.reference("public_rows").call()
    feature_map = fit([{"whiten": 8}, "unit_norm"], public.rows)
    training = Training(feature_map, 10, CLASSIFIER, spec.split)
    reference = spec.reference("SimulatedParties", conduct=asdict(conduct)).to_json()
    cohort = Cohort(reference, first, count, seed=1)
    if kind == "votes":
        question = VotesQuestion(training, feature_map.transform(public.rows[:60]))
        honest = votes.answer(cohort, question)
    else:
        question = IndividualQuestion(training, 50)
        honest = individual.answer(cohort, question)
    sent = cohort.provider.sent(question, honest)
    name = "votes" if kind == "votes" else "accuracy"
    return sent, dict(zip(sent.parties.tolist(), sent.arrays[name].tolist(), strict=True))


def test_parties_hold_the_rows_of_the_cut(spec):
    world = split(spec)
    provider = spec.reference("SimulatedParties").call()
    holdings = provider.holdings(7)
    indices = world.cut.party(7)
    np.testing.assert_array_equal(holdings.rows, world.table.rows(indices))
    np.testing.assert_array_equal(holdings.labels, world.table.labels[indices])


def test_public_private_and_test_rows_are_disjoint(spec):
    world = split(spec)
    parts = [world.cut.auxiliary, world.cut.test, world.cut.order]
    assert len(np.unique(np.concatenate(parts))) == sum(map(len, parts))
    np.testing.assert_array_equal(spec.reference("public_rows").call().rows, world.table.rows(world.cut.auxiliary))
    rows, labels = spec.reference("SimulatedParties").call().evaluation()
    assert len(rows) == len(labels) == len(world.cut.test)


def test_public_rows_carry_no_labels(spec):
    assert set(vars(spec.reference("public_rows").call())) == {"rows", "columns", "text_columns"}


@pytest.mark.parametrize("partition", [{"dirichlet": 0.3}, {"quantity": 1.0}])
def test_skewed_parties(spec, partition):
    skewed = replace(spec, partition=partition)
    assert split(skewed).cut.parties == 50
    assert len(provider(skewed).holdings(0).labels) == len(split(skewed).cut.party(0))


def test_attackers_hold_the_same_rows_under_other_labels(spec):
    honest, hostile = provider(spec), provider(spec, hostile=0.2, seed=1)
    chosen = Conduct(hostile=0.2, seed=1).attackers(50)
    assert chosen.sum() == 10
    for party in range(50):
        a, b = honest.holdings(party), hostile.holdings(party)
        np.testing.assert_array_equal(a.rows, b.rows)
        np.testing.assert_array_equal((a.labels + chosen[party]) % 10, b.labels)


def test_dropped_parties_fail_alike_in_every_cohort_and_cost_no_other_its_vote(spec):
    conduct = Conduct(dropout=0.3, seed=1)
    absent = {party for party in range(50) if conduct.drops_out(party)}
    assert 5 < len(absent) < 25
    with pytest.raises(DroppedOut):
        provider(spec, dropout=0.3, seed=1).holdings(min(absent))
    _, everybody = answer(spec, Conduct())
    submission, whole = answer(spec, conduct)
    assert submission.failures == dict.fromkeys(absent, "dropped out")
    assert whole == {party: cast for party, cast in everybody.items() if party not in absent}
    assert whole == answer(spec, conduct, first=0, count=25)[1] | answer(spec, conduct, first=25, count=25)[1]


def test_tampering_replaces_the_answers_of_attackers_only(spec):
    _, honest = answer(spec, Conduct())
    conduct = Conduct(hostile=0.2, kind="malformed", seed=1)
    _, sent = answer(spec, conduct)
    attackers = conduct.attackers(50)
    # Of the 16 codes in 4 bits, 10 are classes.
    assert sent == {party: [15] * 60 if attackers[party] else cast for party, cast in honest.items()}
    _, part = answer(spec, conduct, first=20, count=10)
    assert part == {party: sent[party] for party in range(20, 30)}


def test_scores_that_the_simulation_asks_for_are_true(spec):
    _, sent = answer(spec, Conduct(hostile=1.0, kind="malformed", seed=1), "individual")
    assert sent == answer(spec, Conduct(), "individual")[1]
