"""Verdicts on releases whose worth is known, and the words for them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.reports.verdicts import constant_answer, told, verdicts
from scenarios.scores.metrics import CONSTANT_CLASS
from scenarios.scores.results import NOBODY

SPLITS = 5


def rows(protocol, metric, by_split, epsilon=np.inf, **others):
    """Rows of results.csv: one for each split and draw."""
    private = np.isfinite(epsilon)
    known = {
        "scenario": "test", "protocol": protocol, "variant": protocol, "default": int(private), "epsilon": epsilon,
        "delta": 0.0, "unit": "party" if private else NOBODY, "metric": metric, **others,
    }  # fmt: skip
    return [
        {**known, "split": split, "noise": draw, "value": float(value)}
        for split, values in enumerate(by_split)
        for draw, value in enumerate(np.atleast_1d(values))
    ]


def beside(constant=0.5, pooled=0.9, individual=0.6, metric="accuracy", splits=SPLITS):
    known = {"constant": constant, "pooled": pooled, "individual": individual}
    return [row for name, value in known.items() if value is not None for row in rows(name, metric, [value] * splits)]


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


@pytest.mark.parametrize(
    "release",
    [
        [0.5] * SPLITS,
        [0.49, 0.52, 0.5, 0.48, 0.51],  # about as good
        [0.51, 0.515, 0.51, 0.512, 0.511],  # surely better, by less than anybody notices
        [[0.9, 0.5]] * 4 + [[0.8, 0.5]],  # better in the mean, and in every second release only
        [0.3, 0.31, 0.32, 0.3, 0.29],  # surely worse
    ],
)
def test_a_release_that_nobody_should_count_on_is_no_better(release):
    assert one(release).finding == "no better"


def test_where_pooled_rows_gain_nothing_there_is_nothing_to_gain():
    assert one([0.2, 0.9, 0.5, 0.7, 0.3], pooled=0.51).finding == "no better"


def test_few_or_contradicting_splits_tell_nothing():
    assert one([0.8], splits=1).finding == "cannot be told"
    assert one([0.8], splits=1).interval is None
    assert one([0.4, 0.9, 0.5, 0.8, 0.45]).finding == "cannot be told"


def test_splits_without_a_constant_answer_are_left_out():
    release = rows("soft_vote", "accuracy", [0.7] * SPLITS, 1.0)
    baselines = beside()
    [found] = verdicts([*release, *(row for row in baselines if row["split"] < 3)])
    assert found.splits == 3
    assert (
        verdicts([*(row for row in release if row["split"] > 2), *(row for row in baselines if row["split"] < 3)]) == []
    )


def test_what_only_some_releases_reach_is_said():
    unsure = one([[0.9, 0.5]] * 4 + [[0.8, 0.5]])
    assert [remark for remark in unsure.remarks if "50 % of single releases" in remark]
    assert one([0.51, 0.515, 0.51, 0.512, 0.511]).remarks == ()


def test_of_errors_less_is_better():
    assert one([5.0, 5.1, 4.9, 5.0, 5.0], metric="mse", constant=10.0, pooled=2.0, individual=None).finding == "useful"
    assert one([9.95, 9.99, 9.9, 9.97, 10.0], metric="mse", constant=10.0, pooled=2.0).finding == "no better"


def test_without_a_constant_answer_there_is_no_verdict():
    found = verdicts([*rows("soft_vote", "accuracy", [0.7] * SPLITS, 1.0), *beside(constant=None)])
    assert found == []


def uneven(accuracy, balanced, auc=0.5):
    """A release and the constant answer where 97 % of rows are of one class."""
    found = rows("soft_vote", "auc", [auc + shift for shift in (-0.01, 0.0, 0.01, 0.0, 0.0)], 1.0)
    for metric, value, always in (("accuracy", accuracy, 0.97), ("balanced_accuracy", balanced, 0.5)):
        found += rows("soft_vote", metric, [value + shift for shift in (-0.01, 0.0, 0.01, 0.0, 0.0)], 1.0)
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


def test_what_single_parties_and_pooled_rows_reach_is_remarked_on():
    alone = one([0.7, 0.7, 0.71, 0.69, 0.7], individual=0.8)
    assert [remark for remark in alone.remarks if "nobody gains by taking part" in remark]
    ahead = one([0.95, 0.951, 0.949, 0.95, 0.95])
    assert [remark for remark in ahead.remarks if "better than all rows pooled" in remark]


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


def test_every_epsilon_has_a_verdict_and_equal_ones_share_a_sentence():
    known = beside()
    for epsilon, value in ((0.1, 0.5), (1.0, 0.7), (3.0, 0.8)):
        known += rows("soft_vote", "accuracy", [value + shift for shift in (0.0, 0.001, 0.0, -0.001, 0.0)], epsilon)
    found = verdicts(known)
    assert [(one.epsilon, one.finding) for one in found] == [(0.1, "no better"), (1.0, "useful"), (3.0, "useful")]
    sentences = told(found, "always saying “no”")
    assert [finding for finding, _ in sentences] == ["no better", "useful"]
    assert "no better than always saying “no” at ε = 0.1" in sentences[0][1]
    assert "at ε = 1 and 3" in sentences[1][1]
    assert "50 and 75 % of that gain are kept" in sentences[1][1]


def test_one_split_is_said_to_tell_nothing():
    [(finding, sentence)] = told([one([0.8], splits=1)], "always saying “no”")
    assert finding == "cannot be told"
    assert "raise trials.splits" in sentence


def test_settings_of_a_sweep_have_verdicts_of_their_own():
    known = []
    for count, value in (("10", 0.5), ("1000", 0.8)):
        world = [*rows("soft_vote", "accuracy", [value] * SPLITS, 1.0), *beside()]
        known += [{**row, "parties.count": count} for row in world]
    assert [(one.setting, one.finding) for one in verdicts(known)] == [
        ("parties.count = 10", "no better"),
        ("parties.count = 1000", "useful"),
    ]


def test_the_constant_answer_is_named_by_its_class():
    said = rows("constant", CONSTANT_CLASS, [1.0, 1.0, 0.0])
    assert constant_answer(said, ["yes", "no"]) == "always saying “no”"
    assert constant_answer(said, []) == "always saying one class"
    assert "mean label" in constant_answer(rows("constant", "mse", [1.0]), [])
    assert "class shares" in constant_answer(rows("constant", "l1", [1.0]), ["a", "b"])
