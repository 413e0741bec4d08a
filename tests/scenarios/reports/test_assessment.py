"""Verdicts on releases whose worth is known, and the words for them.

What would help, on curves whose answer is known.
"""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.verdict_rows import SPLITS, around, beside, rows

from federation.mechanisms.noise import gaussian
from scenarios.reports.assessment import Known, Point, in_words, remedies, verdicts
from scenarios.scores.results import NOBODY


def one(release, metric="accuracy", **baselines):
    [found] = verdicts([*rows("soft_vote", metric, release, 1.0), *beside(metric=metric, **baselines)])
    return found


def test_a_release_that_beats_the_constant_answer_every_time_is_useful_and_keeps_its_share():
    found = one([[0.69, 0.71], [0.7, 0.7], [0.71, 0.69], [0.68, 0.7], [0.7, 0.72]])
    assert found.finding == "useful"
    assert found.gain == pytest.approx(0.2, abs=0.001)
    assert found.kept == pytest.approx(0.5, abs=0.003)
    low, high = found.interval
    assert low < found.gain < high
    assert (found.constant, found.pooled, found.individual) == (0.5, 0.9, 0.6)
    assert found.remarks == ()


def test_a_release_that_nobody_should_count_on_is_no_better():
    for release in (
        [0.5] * SPLITS,
        [0.49, 0.52, 0.5, 0.48, 0.51],  # about as good
        [0.51, 0.515, 0.51, 0.512, 0.511],  # surely better, by less than anybody notices
        [[0.9, 0.5]] * 4 + [[0.8, 0.5]],  # better in the mean, and in every second release only
        [0.3, 0.31, 0.32, 0.3, 0.29],  # surely worse
    ):
        assert one(release).finding == "no better"


def test_few_or_contradicting_splits_tell_nothing_and_of_errors_less_is_better():
    assert one([0.8], splits=1).finding == "cannot be told"
    assert one([0.8], splits=1).interval is None
    assert one([0.4, 0.9, 0.5, 0.8, 0.45]).finding == "cannot be told"
    assert one([0.2, 0.9, 0.5, 0.7, 0.3], pooled=0.51).finding == "no better"
    assert one([5.0, 5.1, 4.9, 5.0, 5.0], metric="mse", constant=10.0, pooled=2.0, individual=None).finding == "useful"
    assert one([9.95, 9.99, 9.9, 9.97, 10.0], metric="mse", constant=10.0, pooled=2.0).finding == "no better"


def test_splits_without_a_constant_answer_are_left_out():
    release, baselines = rows("soft_vote", "accuracy", [0.7] * SPLITS, 1.0), beside()
    early = [row for row in baselines if row["split"] < 3]
    [found] = verdicts([*release, *early])
    assert found.splits == 3
    assert verdicts([*(row for row in release if row["split"] > 2), *early]) == []
    assert verdicts([*release, *beside(constant=None)]) == []


@pytest.mark.parametrize(
    ("release", "baselines", "remark"),
    [
        ([[0.9, 0.5]] * 4 + [[0.8, 0.5]], {}, "50 % of single releases"),
        ([0.7, 0.7, 0.71, 0.69, 0.7], {"individual": 0.8}, "nobody gains by taking part"),
        ([0.95, 0.951, 0.949, 0.95, 0.95], {}, "better than all rows pooled"),
    ],
)
def test_what_single_releases_parties_and_pooled_rows_reach_is_remarked_on(release, baselines, remark):
    assert any(remark in text for text in one(release, **baselines).remarks)
    assert one([0.51, 0.515, 0.51, 0.512, 0.511]).remarks == ()


def uneven(accuracy, balanced, auc=0.5):
    """A release and the constant answer where 97 % of rows are of one class."""
    found = rows("soft_vote", "auc", around(auc), 1.0)
    for metric, value, always in (("accuracy", accuracy, 0.97), ("balanced_accuracy", balanced, 0.5)):
        found += rows("soft_vote", metric, around(value), 1.0)
        found += rows("constant", metric, [always] * SPLITS)
        found += rows("pooled", metric, [0.98 if metric == "accuracy" else 0.8] * SPLITS)
    return found


def test_rare_classes_are_judged_by_balanced_accuracy():
    [hidden] = verdicts(uneven(0.972, 0.5))
    assert (hidden.metric, hidden.finding) == ("balanced_accuracy", "no better")
    [honest] = verdicts(uneven(0.8, 0.7))
    assert honest.finding == "useful"
    assert any("0.800 is below the 0.970" in remark for remark in honest.remarks)
    [ordering] = verdicts(uneven(0.97, 0.5, auc=0.85))
    assert any("orders rows" in remark for remark in ordering.remarks)
    assert ordering.ranking.mean == pytest.approx(0.85)
    assert (ordering.ranking.pooled, ordering.ranking.individual) == (None, None)
    assert one(around(0.7)).ranking is None  # classes are about even


@given(
    st.lists(st.floats(0.0, 1.0), min_size=2, max_size=8),
    st.floats(0.05, 0.95),
    st.sampled_from(["accuracy", "mse"]),
)
def test_gains_are_paired_within_splits_and_never_useful_below_the_constant_answer(release, constant, metric):
    found = one(release, metric=metric, constant=constant, splits=len(release))
    sign = 1 if metric == "accuracy" else -1
    assert found.gain == pytest.approx(sign * (np.mean(release) - constant), abs=1e-9)
    if found.gain <= 0:
        assert found.finding != "useful"
    assert found.to_dict()["finding"] == found.finding


def test_settings_of_a_sweep_have_verdicts_of_their_own():
    known = []
    for count, value in (("10", 0.5), ("1000", 0.8)):
        world = [*rows("soft_vote", "accuracy", [value] * SPLITS, 1.0), *beside()]
        known += [{**row, "parties.count": count} for row in world]
    told = [("parties.count = 10", "no better"), ("parties.count = 1000", "useful")]
    assert [(one.setting, one.finding) for one in verdicts(known)] == told


def test_what_is_lost_is_lost_to_the_protocol_or_to_its_noise():
    found = one(around(0.6), pooled=0.9, noise_free=0.7)
    assert (found.noise_free, found.without_noise) == (0.7, "useful")
    assert found.lost.to_protocol == pytest.approx(0.5)
    assert found.lost.to_noise == pytest.approx(0.25)
    assert found.lost.to_protocol + found.lost.to_noise == pytest.approx(1 - found.kept)
    low, high = found.lost.noise_interval
    assert low < 0.25 < high
    better = one(around(0.6), pooled=0.9, noise_free=1.0)
    assert better.lost.to_protocol == pytest.approx(-0.25)
    assert one(around(0.6)).lost is None
    assert one(around(0.6), pooled=0.5, noise_free=0.5).lost is None  # there is nothing to be lost
    assert one([0.6], noise_free=0.7, splits=1).lost.noise_interval is None
    errors = one([5.0] * SPLITS, metric="mse", constant=10.0, pooled=2.0, individual=None, noise_free=4.0)
    assert (errors.lost.to_protocol, errors.lost.to_noise) == (pytest.approx(0.25), pytest.approx(0.125))
    known = [*rows("soft_vote", "accuracy", around(0.7), 1.0), *beside(noise_free=0.8)]
    [other] = verdicts(known, Known("soft_vote-gaussian"))  # a reference of another variant is not this one's
    assert (other.noise_free, other.without_noise, other.lost) == (None, None, None)
    [own] = verdicts(known, Known("soft_vote"))
    assert own.noise_free == 0.8


def rivals(*others, adjacencies=()):
    known = [*rows("soft_vote", "accuracy", around(0.6), 1.0), *beside()]
    for name, mean, more in others:
        rival = rows("rival", "accuracy", around(mean), 1.0, **more)
        known += [{**row, "variant": name, "default": 0} for row in rival]
    [found] = verdicts(known, Known(adjacencies=dict(adjacencies)))
    return [(rival.variant, rival.differs) for rival in found.rivals]


def test_the_best_variants_that_are_surely_ahead_are_named_with_what_their_guarantees_differ_in():
    assert rivals(("behind", 0.55, {}), ("equal", 0.6, {})) == []
    assert rivals(("a", 0.65, {}), ("b", 0.7, {})) == [("b", ())]
    assert rivals(("a", 0.65, {}), ("b", 0.7, {"delta": 1e-6})) == [("a", ()), ("b", ("delta",))]
    assert rivals(("a", 0.7, {}), ("b", 0.65, {"delta": 1e-6})) == [("a", ())]
    assert rivals(("a", 0.7, {"unit": "label"})) == [("a", ("unit",))]
    assert rivals(("a", 0.7, {"unit": NOBODY})) == []
    told = {"soft_vote": "replace", "a": "add_remove"}
    assert rivals(("a", 0.7, {}), adjacencies=told) == [("a", ("adjacency",))]
    assert rivals(("a", 0.7, {}), adjacencies=dict.fromkeys(told, "replace")) == [("a", ())]


def curve(diagnosed=True, unit="party"):
    known = beside()
    for epsilon, value in ((0.1, 0.5), (1.0, 0.6), (3.0, 0.8)):
        known += rows("soft_vote", "accuracy", around(value), epsilon, unit=unit)
        known += rows("soft_vote", "noise_to_signal", [1.0], epsilon, unit=unit) if diagnosed else []
    return known


def test_what_would_help_is_computed_for_every_epsilon_that_misses_something():
    low, middle, high = verdicts(curve(), Known(parties={"": 50}))
    assert [(one.goal, one.between) for one in low.remedies] == [("useful", (0.1, 1.0)), ("half", (1.0, 3.0))]
    assert low.remedies[0].parties == 500
    assert [(one.goal, one.parties) for one in middle.remedies] == [("half", 87)]  # 50 3^(1/2)
    assert high.remedies == ()
    for known in (curve(diagnosed=False), curve(unit="label")):  # parties are no remedy there
        assert [one.times for found in verdicts(known) for one in found.remedies] == [None] * 3


CURVE = {1.0: Point(False, 0.1), 3.0: Point(True, 0.3), 10.0: Point(True, 0.7)}


def of(curve, epsilon, parties=100, delta=0.0, of_mean=True):
    return {one.goal: one for one in remedies(curve, epsilon, parties=parties, delta=delta, of_mean=of_mean)}


def test_both_goals_are_looked_for_where_both_are_missed():
    found = of(CURVE, 1.0)
    assert (found["useful"].epsilon, found["useful"].between) == (3.0, (1.0, 3.0))
    assert found["half"].between == (3.0, 10.0)
    assert found["half"].epsilon == pytest.approx(math.sqrt(30))  # .5 is in the middle of .3 and .7, in log epsilon
    assert (found["useful"].parties, found["half"].parties) == (300, math.ceil(100 * math.sqrt(30)))
    assert list(of(CURVE, 3.0)) == ["half"]
    assert of(CURVE, 10.0) == {}


def test_what_the_run_never_reaches_or_does_not_keep_is_not_said_and_parties_of_a_mean_only():
    assert of({1.0: Point(False, 0.1), 3.0: Point(False, 0.3)}, 1.0) == {}
    assert of({1.0: Point(False, None), 3.0: Point(True, None)}, 1.0).keys() == {"useful"}
    curve = {1.0: Point(False, 0.1), 2.0: Point(True, 0.6), 4.0: Point(False, 0.2), 8.0: Point(True, 0.8)}
    assert of(curve, 1.0)["useful"].between == (4.0, 8.0)
    assert of(curve, 1.0)["half"].epsilon == pytest.approx(4 * math.sqrt(2))
    assert of(CURVE, 1.0, of_mean=False)["useful"].times is None
    unknown = of(CURVE, 1.0, parties=None)["useful"]
    assert (unknown.times, unknown.parties) == (3.0, None)


@given(
    st.lists(st.tuples(st.booleans(), st.floats(-1, 1)), min_size=1, max_size=6),
    st.sampled_from([0.0, 1e-6]),
    st.integers(1, 10**6),
)
def test_more_is_asked_for_never_less_and_noise_is_as_faint_as_promised(points, delta, parties):
    curve = {2.0**i: Point(useful, kept) for i, (useful, kept) in enumerate(points)}
    for epsilon, point in curve.items():
        for one in remedies(curve, epsilon, parties=parties, delta=delta, of_mean=True):
            assert not point.reaches(one.goal)
            assert epsilon <= one.between[0] < one.epsilon * (1 + 1e-9)
            assert one.epsilon <= one.between[1] * (1 + 1e-9)
            assert not curve[one.between[0]].reaches(one.goal)
            assert all(curve[other].reaches(one.goal) for other in curve if other >= one.between[1])
            strength = (lambda e: e) if delta == 0 else (lambda e: gaussian.mu(e, delta))
            assert one.parties * strength(epsilon) >= parties * strength(one.epsilon) * (1 - 1e-9)
            assert (one.parties - 1) * strength(epsilon) < parties * strength(one.epsilon)


def test_parties_are_told_in_two_digits_and_as_a_bound_where_usefulness_is_the_goal():
    longer = {0.5: Point(False, 0.0), **CURVE}
    several = [(epsilon, of(longer, epsilon, parties=1234)["useful"]) for epsilon in (0.5, 1)]
    assert re.search(r"3.*1.*0\.5.*1.*7500.*3800", in_words(several, "useful"))
    [half] = of(CURVE, 3.0, parties=None).values()
    assert re.search(r"5\.5.*3.*10.*3.*1\.8", in_words([(3.0, half)], "half"))
