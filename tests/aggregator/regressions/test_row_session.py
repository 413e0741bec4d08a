"""Sessions of row-private regressions: what is asked, what is learned, and worlds that they cannot work in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support import linear_labels
from support.synthetic import Table

from aggregator.protocols.label_sums import NoisyLabelSums
from aggregator.trial.trial import Views, World
from federation.contract.errors import InputError
from federation.contract.guarantee import Guarantee, NoGuarantee, Unit
from federation.contract.plugins import Reference
from parties.guard.answering import answered
from parties.party_data.cohort import Cohort
from scenarios.testing import small_trials as small

HELD = Reference("support.linear_labels:Parties").to_json()
PARTIES, MOST = 6, 87


def few_public_rows() -> Table:
    return Table(linear_labels.draw(99, 9)[0], ("p", "q", "r"))


def equal_public_rows() -> Table:
    return Table(np.ones((50, 3)), ("p", "q", "r"))


@pytest.fixture
def world(tmp_path):
    def make(options, public="support.linear_labels:public_table", **changes):
        fields = {
            "public": Reference(public),
            "label_range": linear_labels.RANGE,
            "largest_bag": MOST,
            "smallest_bag": 80,
            "private_rows": 501,
            "draws": 1,
            "quorum": 2 / 3,
            **changes,
        }
        plan = small.plan(NoisyLabelSums, "label_sums", {"protect": "row", **options}, tmp_path, **fields)
        return World(plan, Views(plan)).of(plan.variants[0])

    return make


def begun(world, epsilon=5.0):
    return NoisyLabelSums(**world.own.options).begin(world, epsilon, world.plan.draws)


def learned(session, parties=range(PARTIES)):
    """Its model, from the answers of some parties."""
    [asked] = session.questions()
    for party in parties:
        assert asked.collector.add(answered(Cohort(HELD, party, 1, 1), asked.question)) == {}
    session.take([asked.collector])
    return session.learn(0)


def errors(session, described):
    """Mean squared errors on new rows."""
    rows, labels = linear_labels.draw(1000, 500)
    description, arrays = described
    predicted = np.clip(session.feature_map.transform(rows) @ arrays["weights"], *description["range"])
    return float(np.square(predicted - labels).mean())


def test_without_noise_it_is_least_squares_on_all_rows_behind_its_map(world):
    session = begun(world({"noise": "off"}))
    description, arrays = learned(session)
    assert (description["learner"], description["range"]) == ("linear", [-10.0, 10.0])
    held = [linear_labels.draw(party, 80 + 7 * (party % 2)) for party in range(PARTIES)]
    rows, labels = (np.concatenate(parts) for parts in zip(*held, strict=True))
    features = session.feature_map.transform(rows)[:, :-1]
    assert np.linalg.norm(features, axis=1).max() <= 1 + 1e-12
    expected = np.linalg.lstsq(features, labels, rcond=None)[0]  # the middle of the range is 0
    np.testing.assert_allclose(arrays["weights"], np.append(expected, 0.0), atol=1e-4)
    assert isinstance(session.guarantee, NoGuarantee)


def test_the_middle_of_the_range_is_an_intercept(world):
    session = begun(world({}, label_range=(-10.0, 30.0)))
    assert learned(session)[1]["weights"][-1] == 10.0


def test_with_noise_it_learns_and_shares_of_one_noise_learn_more(world):
    found = {}
    for trust in ("none", "secure"):
        session = begun(world({"trust": trust}, draws=20), 30.0)
        learned(session)
        found[trust] = np.mean([errors(session, session.learn(draw)) for draw in range(20)])
        assert 0 < session.diagnostics()["public_share"] < 0.8
    labels = linear_labels.draw(1000, 500)[1]
    assert found["secure"] < found["none"] < labels.var() / 2


def test_shrinkage_can_be_turned_off(world):
    kept, off = (learned(begun(world({"shrink": shrink}), 1.0))[1]["weights"] for shrink in (True, False))
    assert np.linalg.norm(kept) < np.linalg.norm(off)


@pytest.mark.parametrize(("epsilon", "rows", "second"), [(0.1, 501, False), (30.0, 501, True), (0.1, 10**6, True)])
def test_x_x_is_asked_for_where_public_numbers_say_that_it_is_worth_it(world, epsilon, rows, second):
    [asked] = begun(world({}, private_rows=rows), epsilon).questions()
    assert asked.question.second == second


def test_where_the_number_of_rows_is_not_known_it_is_what_there_can_be(world):
    [asked] = begun(world({}, private_rows=0), 30.0).questions()
    assert asked.question.second


def test_what_is_asked_names_the_release(world):
    names = {begun(world(options), epsilon).source for options in ({}, {"trust": "secure"}) for epsilon in (0.1, 30.0)}
    assert len(names) == 4
    assert begun(world({})).source == begun(world({"shrink": False})).source


def test_its_guarantee_is_for_one_replaced_row(world):
    for trust, words in (("none", "trusts nobody"), ("secure", "secure summation")):
        promised = begun(world({"trust": trust})).guarantee
        assert isinstance(promised, Guarantee)
        assert (promised.unit, promised.epsilon, promised.delta) == (Unit.ROW, 5.0, 1e-3)
        assert any(words in assumption.text for assumption in promised.assumptions)


def test_noise_is_that_of_the_parties_that_answered(world):
    session = begun(world({}))
    learned(session, parties=range(4))
    [asked] = [session.answers[0]]
    assert asked.summed_variance == pytest.approx(4 * asked.question.mechanism().variance())
    shared = begun(world({"trust": "secure"}))
    learned(shared)
    assert shared.answers[0].summed_variance == pytest.approx(6 / 3 * shared.answers[0].question.mechanism().variance())


def test_shares_count_on_a_quorum_less_those_that_may_collude(world):
    for colluding, enough, most in ((0.1, 3, 1), (0.0, 4, 0), (0.4, 1, 3)):
        session = begun(world({"trust": "secure"}, colluding=colluding))
        [asked] = session.questions()
        assert asked.question.contributors == enough
        said = f"at least 4 of 6 answer, and at most {most} of them collude"
        assert any(said in assumption.text for assumption in session.guarantee.assumptions)
    with pytest.raises(InputError, match="a party that answers and colludes with nobody"):
        begun(world({"trust": "secure"}, colluding=0.6))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"label_range": None, "classes": ("a", "b")}, "needs real labels with a declared range"),
        ({"public": f"{__name__}:few_public_rows"}, "needs 10 public rows or more"),
        ({"public": f"{__name__}:equal_public_rows"}, "the 50 public rows are all equal"),
    ],
)
def test_worlds_that_it_cannot_work_in_are_refused_in_a_sentence(world, changes, words):
    with pytest.raises(InputError, match=words):
        begun(world({}, **changes))


def test_features_that_bound_norms_are_taken_as_they_are(world):
    session = begun(world({}, features=("standardise", "constant", "unit_norm")))
    assert session.feature_map.dimension == 5
    assert [step.kind for step in session.feature_map.steps] == ["affine", "append", "unit_norm", "append"]


def test_equal_variants_share_their_map(world):
    made = world({})
    first, second = (begun(made, epsilon).questions()[0].question.rows.feature_map for epsilon in (1.0, 2.0))
    assert first is second


def test_a_plan_whose_parties_hold_one_row_each_is_asked(world):
    made = world({}, largest_bag=1, smallest_bag=1, private_rows=6)
    [asked] = begun(made).questions()
    assert asked.question.rows.most == 1
    assert replace(asked.question, draws=2).fields()["sums"].shape[0] == 2
