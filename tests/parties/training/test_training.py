from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from support.training_parties import make_training

from aggregator.trial.feature_fitting import fit
from federation.contract.plugins import Reference
from federation.queries.votes import IndividualQuestion, Training, VotesQuestion
from parties.party_data.cohort import Cohort
from parties.responses import votes as individual
from parties.responses import votes as voting
from parties.training import training as module
from parties.training.classifiers import EstimatorGroup
from parties.training.linear import LinearGroup
from parties.training.training import trained

LOGISTIC = {"name": "logistic", "parameters": {"regularisation": 1e-3}}
FOREST = {"name": "RandomForestClassifier", "parameters": {"n_estimators": 2}}
TREE = {"name": "DecisionTreeClassifier", "parameters": {}}


def mixture(members, weights):
    return {"name": "mixture", "parameters": {"members": members, "weights": weights}}


def cohort(first, count, seed=1, **arguments):
    return Cohort(Reference("support.synthetic:Parties", arguments).to_json(), first, count, seed)


@pytest.fixture
def training(public):
    return Training(fit([{"whiten": 3}, "unit_norm"], public.rows), 3, mixture([LOGISTIC, FOREST, TREE], [2, 1, 1]), 0)


def kinds(outcome):
    """Which classifier each party has trained, where it has seen more than one class."""
    found = {}
    for group in outcome.groups:
        if isinstance(group, LinearGroup | EstimatorGroup):
            name = "logistic" if isinstance(group, LinearGroup) else type(group.estimator).__name__
            found |= dict.fromkeys(group.parties.tolist(), name)
    return found


def votes(outcome, rows):
    return {
        p: one for group in outcome.groups for p, one in zip(group.parties.tolist(), group.votes(rows), strict=True)
    }


@pytest.mark.parametrize("size", [1, 7])
def test_a_partys_member_and_votes_do_not_depend_on_its_cohort(public, training, size):
    rows = training.feature_map.transform(public.rows)
    whole = trained(cohort(0, 28), training)
    expected, members = votes(whole, rows), kinds(whole)
    assert len(expected) == 28
    assert len(set(members.values())) == 3
    for first in range(0, 28, size):
        part = trained(cohort(first, size), training)
        assert kinds(part).items() <= members.items()
        for party, one in votes(part, rows).items():
            np.testing.assert_array_equal(one, expected[party])


def test_members_are_drawn_by_their_weights(training):
    heavy = replace(training, classifier=mixture([LOGISTIC, TREE], [30.0, 10.0]))
    counts = Counter(kinds(trained(cohort(0, 400), heavy)).values())
    share = counts["logistic"] / counts.total()
    assert abs(share - 0.75) < 4 * np.sqrt(0.75 * 0.25 / counts.total())


def test_other_trials_draw_other_members(training):
    first, second = (kinds(trained(cohort(0, 40), replace(training, trial=trial))) for trial in (0, 1))
    assert first != second


def test_without_a_seed_a_party_keeps_its_member(training):
    first = kinds(trained(cohort(0, 40, seed=None), training))
    assert first == kinds(trained(cohort(0, 40, seed=None, small=[]), training))


def test_a_mixture_with_one_member_is_that_member(public, training):
    rows = training.feature_map.transform(public.rows)
    for member in (LOGISTIC, FOREST):
        alone = votes(trained(cohort(0, 10), replace(training, classifier=member)), rows)
        mixed = votes(trained(cohort(0, 10), replace(training, classifier=mixture([member], [3]))), rows)
        for party, one in alone.items():
            np.testing.assert_array_equal(one, mixed[party])


def test_a_failing_member_costs_the_parties_that_drew_it(training):
    broken = {"name": "SVC", "parameters": {"kernel": "none"}}
    outcome = trained(cohort(0, 30), replace(training, classifier=mixture([LOGISTIC, broken], [1, 1])))
    served = sorted(party for group in outcome.groups for party in group.parties.tolist())
    assert sorted([*served, *outcome.failures]) == list(range(30))
    assert all("kernel" in reason for reason in outcome.failures.values())
    assert 0 < len(outcome.failures) < 30


def test_only_the_latest_cohort_is_kept(training):
    first = trained(cohort(0, 3), training)
    assert trained(cohort(0, 3), training) is first
    trained(cohort(3, 3), training)
    assert trained(cohort(0, 3), training) is not first


@pytest.fixture
def loads(monkeypatch):
    """How many parties were loaded at a time."""
    counts = []
    original = module.load
    monkeypatch.setattr(module, "load", lambda cohort, *rest: counts.append(cohort.count) or original(cohort, *rest))
    return counts


@pytest.mark.parametrize("broken", [[], [3, 9]])
def test_nodes_in_company_are_trained_once_and_answer_as_they_would_alone(public, broken, loads):
    asked = make_training(public, trial=78)
    rows = asked.feature_map.transform(public.rows)
    alone = {first: trained(cohort(first, 2, broken=broken), asked) for first in range(2, 14, 2)}
    loads.clear()
    for first, expected in alone.items():
        found = trained(replace(cohort(first, 2, broken=broken), company=range(2, 14)), asked)
        assert found.failures == expected.failures
        assert found.failures.keys() == set(broken) & {first, first + 1}
        both = votes(found, rows), votes(expected, rows)
        assert both[0].keys() == both[1].keys() == {first, first + 1} - set(broken)
        assert all((one == both[1][party]).all() for party, one in both[0].items())
    assert loads == [2, 12]  # the first node, to see how much it holds, and all of them


def test_nodes_in_company_are_trained_once_for_every_training_that_they_are_asked_about(public, loads):
    several = [make_training(public, trial=trial) for trial in (81, 82, 83)]
    for first in (0, 2, 4):
        for asked in several:
            found = trained(replace(cohort(first, 2), company=range(6)), asked)
            assert votes(found, asked.feature_map.transform(public.rows)).keys() == {first, first + 1}
    assert loads == [2, 6, 6, 6]


def test_nodes_that_hold_much_are_trained_by_themselves_and_once(public, loads, monkeypatch):
    monkeypatch.setattr(module, "_SMALL", 2)
    for first in (0, 0, 2):
        trained(replace(cohort(first, 2), company=range(4)), make_training(public, trial=79))
    assert loads == [2, 2]


def test_classifiers_that_are_trained_one_by_one_gain_nothing_from_company(training, loads):
    for first in (0, 2):
        trained(replace(cohort(first, 2), company=range(4)), replace(training, classifier=TREE))
    assert loads == [2, 2]


def test_all_questions_of_a_world_share_one_training(public, monkeypatch):
    asked = make_training(public, trial=77)
    calls = []
    original = module.load
    monkeypatch.setattr(module, "load", lambda *arguments: calls.append(1) or original(*arguments))
    voting.respond_votes(cohort(0, 5), VotesQuestion(asked, asked.feature_map.transform(public.rows)))
    individual.respond_individual(cohort(0, 5), IndividualQuestion(asked, 3))
    assert len(calls) == 1
    voting.respond_votes(
        cohort(0, 5), VotesQuestion(make_training(public, trial=78), asked.feature_map.transform(public.rows))
    )
    assert len(calls) == 2
