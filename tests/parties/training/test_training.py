"""What parties load and train, alone and in company, and the area under the curve, beside scikit-learn's."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from support.synthetic import Parties, draw
from support.training_parties import LOGISTIC, cohort, make_training

from aggregator.trial.feature_fitting import fit
from federation.queries.votes import IndividualQuestion, Training, VotesQuestion
from parties.party_data import cohort as holdings_module
from parties.party_data.cohort import Cohort, Held, Holdings
from parties.responses import votes as voting
from parties.training import training as module
from parties.training.classifiers import EstimatorGroup
from parties.training.linear import LinearGroup
from parties.training.training import auc, load, trained

FOREST = {"name": "RandomForestClassifier", "parameters": {"n_estimators": 2}}
TREE = {"name": "DecisionTreeClassifier", "parameters": {}}


def mixture(members, weights):
    return {"name": "mixture", "parameters": {"members": members, "weights": weights}}


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


def test_members_are_drawn_by_their_weights_anew_in_other_trials_and_kept_without_a_seed(training):
    heavy = replace(training, classifier=mixture([LOGISTIC, TREE], [30.0, 10.0]))
    counts = Counter(kinds(trained(cohort(0, 400), heavy)).values())
    share = counts["logistic"] / counts.total()
    assert abs(share - 0.75) < 4 * np.sqrt(0.75 * 0.25 / counts.total())
    first, second = (kinds(trained(cohort(0, 40), replace(training, trial=trial))) for trial in (0, 1))
    assert first != second
    first = kinds(trained(cohort(0, 40, seed=None), training))
    assert first == kinds(trained(cohort(0, 40, seed=None, small=[]), training))


def test_a_mixture_with_one_member_is_that_member(public, training):
    rows = training.feature_map.transform(public.rows)
    for member in (LOGISTIC, FOREST):
        alone = votes(trained(cohort(0, 10), replace(training, classifier=member)), rows)
        mixed = votes(trained(cohort(0, 10), replace(training, classifier=mixture([member], [3]))), rows)
        for party, one in alone.items():
            np.testing.assert_array_equal(one, mixed[party])


def test_a_failing_member_costs_the_parties_that_drew_it_and_only_the_latest_cohort_is_kept(training):
    broken = {"name": "SVC", "parameters": {"kernel": "none"}}
    outcome = trained(cohort(0, 30), replace(training, classifier=mixture([LOGISTIC, broken], [1, 1])))
    served = sorted(party for group in outcome.groups for party in group.parties.tolist())
    assert sorted([*served, *outcome.failures]) == list(range(30))
    assert all("kernel" in reason for reason in outcome.failures.values())
    assert 0 < len(outcome.failures) < 30
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


@pytest.mark.parametrize(("firsts", "much"), [((0, 0, 2), True), ((0, 2), False)], ids=["much", "one by one"])
def test_nodes_that_gain_nothing_from_company_are_trained_by_themselves(
    public, training, loads, monkeypatch, firsts, much
):
    """They hold much, and are trained once, or have classifiers that are trained one by one."""
    if much:
        monkeypatch.setattr(module, "_SMALL", 2)
    for first in firsts:
        asked = make_training(public, trial=79) if much else replace(training, classifier=TREE)
        trained(replace(cohort(first, 2), company=range(4)), asked)
    assert loads == [2, 2]


def test_all_questions_of_a_world_share_one_training(public, loads):
    asked = make_training(public, trial=77)
    rows = asked.feature_map.transform(public.rows)
    voting.respond_votes(cohort(0, 5), VotesQuestion(asked, rows))
    voting.respond_individual(cohort(0, 5), IndividualQuestion(asked, 3))
    assert loads == [5]
    voting.respond_votes(cohort(0, 5), VotesQuestion(make_training(public, trial=78), rows))
    assert loads == [5, 5]


class Spoilt(Parties):
    """The synthetic parties, some with other rows and labels."""

    def __init__(self, **replaced):
        super().__init__()
        self._replaced = {int(name.removeprefix("party")): value for name, value in replaced.items()}

    def holdings(self, party):
        if party in self._replaced:
            return Holdings(party, *self._replaced[party])
        return super().holdings(party)


def loaded(monkeypatch, provider, parties=6, seed=1, stages=({"whiten": 3}, "unit_norm")):
    monkeypatch.setattr(holdings_module, "provider_of", lambda reference: provider)
    training = Training(fit(stages, draw(99, 120)[0]), 3, {}, 0)
    return load(Cohort("", 0, parties, seed), training)


def rows_of(found):
    return dict(zip(found.parties.tolist(), (rows.tobytes() for rows, _ in found.each()), strict=True))


def test_rows_are_those_of_each_party_behind_the_map_and_show_their_shape_only(monkeypatch):
    found, failures = loaded(monkeypatch, Parties())
    assert failures == {}
    assert "array" not in repr(found)
    transform = fit([{"whiten": 3}, "unit_norm"], draw(99, 120)[0]).transform
    for party, (rows, labels) in enumerate(found.each()):
        raw = Parties().holdings(party)
        np.testing.assert_array_equal(rows, transform(raw.rows))
        np.testing.assert_array_equal(labels, raw.labels)


@pytest.mark.parametrize(
    ("rows", "labels", "words"),
    [
        (np.ones((2, 5)), np.array([0, 1]), "4 columns"),
        (np.full((2, 4), 1e308), np.array([0, 1]), "finite"),
        (np.full((2, 4), np.inf), np.array([0, 1]), "infinite features"),
        (np.full((2, 4), np.nan), np.array([0, 1]), "without the stage impute must be finite"),
        (np.ones((2, 4)), np.array([0, 3]), "0..2"),
        (np.ones((2, 4)), np.array([-1, 0]), "0..2"),
        (np.ones((2, 4)), np.array([0.0, 1.0]), "class code"),
        (np.ones((2, 4)), np.array([[0], [1]]), "class code"),
        (np.empty((0, 4)), np.empty(0, int), "no rows"),
        (np.ones(2), np.array([0, 1]), ""),
    ],
    ids=["columns", "overflow", "infinite", "nan", "class", "negative", "float", "axes", "empty", "vector"],
)
def test_unusable_rows_cost_their_own_party_only_and_the_cause_stays_home(monkeypatch, rows, labels, words):
    whole, _ = loaded(monkeypatch, Parties())
    found, failures = loaded(monkeypatch, Spoilt(party2=(rows, labels)))
    assert list(failures) == [2]
    assert words in failures[2]
    expected = rows_of(whole)
    del expected[2]
    assert rows_of(found) == expected
    _, deployed = loaded(monkeypatch, Spoilt(party2=(rows, labels)), seed=None)
    assert deployed == {2: "the party could not answer"}


@pytest.mark.parametrize("kind", [np.uint8, np.uint64, np.int16])
def test_other_types_of_numbers_load_to_the_same_bits_and_change_nothing_for_the_others(monkeypatch, kind):
    held = Parties().holdings(2)
    single = held.rows.astype(np.float32)
    whole, _ = loaded(monkeypatch, Spoilt(party2=(single.astype(float), held.labels)))
    found, failures = loaded(monkeypatch, Spoilt(party2=(single, held.labels.astype(kind))))
    assert failures == {}
    assert found.labels.dtype == np.int64
    np.testing.assert_array_equal(found.labels, whole.labels)
    assert rows_of(found) == rows_of(whole)


def test_nobody_is_loaded_where_everybody_fails_and_a_provider_that_mixes_up_parties_is_refused(monkeypatch):
    found, failures = loaded(monkeypatch, Parties(broken=range(6)))
    assert sorted(failures) == list(range(6))
    assert found.rows.shape == (0, 3)
    assert list(found.each()) == []

    class Confused(Parties):
        def holdings(self, party):
            return super().holdings(party + (party == 3))

    _, failures = loaded(monkeypatch, Confused())
    assert list(failures) == [3]
    assert "rows of party 4" in failures[3]


def test_missing_cells_are_data_behind_a_map_that_imputes(monkeypatch):
    held = Parties().holdings(2)
    rows = held.rows.copy()
    rows[0, 1] = np.nan
    stages = ("impute", "standardise", "constant")
    found, failures = loaded(monkeypatch, Spoilt(party2=(rows, held.labels)), stages=stages)
    assert failures == {}
    rows[0, 1] = np.median(draw(99, 120)[0][:, 1])
    filled, _ = loaded(monkeypatch, Spoilt(party2=(rows, held.labels)), stages=stages)
    assert rows_of(found) == rows_of(filled)


class Together(Spoilt):
    """The same parties, handed over all at once."""

    def held(self, parties):
        if self._replaced.get(99):
            raise RuntimeError("nobody is there")
        each = [self.holdings(party) for party in parties]
        rows, labels = (np.concatenate([getattr(one, name) for one in each]) for name in ("rows", "labels"))
        return Held(np.array(parties), rows, labels, np.array([len(one.labels) for one in each])), {}


@pytest.fixture
def unread(monkeypatch):
    monkeypatch.setattr(module, "_latest_held", {})


def test_parties_that_are_handed_over_at_once_load_to_the_same_bits(monkeypatch, unread):
    expected, _ = loaded(monkeypatch, Parties())
    found, failures = loaded(monkeypatch, Together())
    assert module._latest_held
    assert failures == {}
    assert rows_of(found) == rows_of(expected)
    np.testing.assert_array_equal(found.labels, expected.labels)


@pytest.mark.parametrize("replaced", [(np.full((2, 4), np.inf), np.array([0, 1])), (np.ones((2, 4)), np.array([0, 3]))])
def test_an_unusable_party_among_many_is_found_one_by_one(monkeypatch, unread, replaced):
    found, failures = loaded(monkeypatch, Together(party2=replaced))
    assert list(failures) == [2]
    assert found.parties.tolist() == [0, 1, 3, 4, 5]


@pytest.mark.parametrize(("replaced", "seed"), [({"party99": True}, 1), ({}, None)], ids=["fails", "a site"])
def test_where_handing_over_fails_and_at_a_site_parties_are_asked_one_by_one(monkeypatch, unread, replaced, seed):
    found, failures = loaded(monkeypatch, Together(**replaced), seed=seed)
    assert failures == {}
    assert not module._latest_held
    assert len(found.parties) == 6


SCORES = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=12).map(np.array)


@given(SCORES, SCORES)
def test_it_is_that_of_scikit_learn_with_ties(lower, upper):
    labels = [0] * len(lower) + [1] * len(upper)
    assert auc(lower, upper) == pytest.approx(roc_auc_score(labels, [*lower, *upper]))
    assert auc(upper, lower) == pytest.approx(1 - auc(lower, upper))


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 1), st.integers(1, 4)), min_size=1, max_size=12))
def test_copies_count_as_if_scores_were_there_as_often(known):
    known = np.array([*known, (0, 0, 1), (1, 1, 2)])
    sides = [known[known[:, 1] == side] for side in (0, 1)]
    found = auc(*(side[:, 0].astype(float) for side in sides), tuple(side[:, 2] for side in sides))
    assert found == auc(*(np.repeat(side[:, 0], side[:, 2]).astype(float) for side in sides))
    assert found == pytest.approx(roc_auc_score(known[:, 1], known[:, 0], sample_weight=known[:, 2]))
