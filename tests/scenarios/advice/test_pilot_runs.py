"""How candidates stand, and measurements within a time: real runs that are kept at once and ended by the clock."""

import json
import math
import time

import pytest
from scipy.stats import ttest_rel
from support.refusals import refused

from scenarios.advice.pilot_runs import (
    BALANCED,
    NON_PRIVATE,
    Bench,
    Deadline,
    OutOfTimeError,
    Standing,
    Values,
    better_half,
    choice,
    interval,
    standings,
    verdict,
)
from scenarios.scores.scoring import ACCURACY, MSE


def test_distances_are_paired_by_split_more_splits_come_first_and_fewer_than_three_give_no_interval():
    values = {"a": {0: [0.8, 0.9], 1: [0.7], 2: [0.9]}, "b": {0: [0.84], 1: [0.6], 2: [0.85]}}
    best, other = standings(values, ACCURACY)
    assert (best.name, best.behind, best.interval) == ("a", 0.0, None)
    expected = ttest_rel([0.85, 0.7, 0.9], [0.84, 0.6, 0.85]).confidence_interval(0.95)
    assert other.behind == pytest.approx((0.01 + 0.1 + 0.05) / 3)
    assert other.interval == pytest.approx((expected.low, expected.high))
    values = {"a": {0: [3.0], 1: [5.0]}, "b": {0: [1.0]}, "c": {0: [2.0], 1: [3.0]}}
    assert [(one.name, one.behind) for one in standings(values, MSE)] == [("c", 0.0), ("a", 1.5), ("b", -1.0)]
    assert [interval([0.1] * count) for count in (0, 1, 2)] == [None] * 3


def test_the_better_half_and_the_first_go_on_and_a_tie_goes_to_the_first_by_public_numbers():
    values = {name: value for value, name in enumerate("abcdef")}
    assert better_half(values, "f", ACCURACY) == ["f", "e", "d"]
    assert better_half(values, "a", ACCURACY) == ["f", "e", "d", "a"]
    assert better_half({"a": 1.0, "b": 2.0}, "a", MSE) == ["a", "b"]
    found = [Standing("a", 0.9, 3, 0.0, None), Standing("b", 0.895, 3, 0.005, None), Standing("c", 0.8, 3, 0.1, None)]
    assert [choice(found, first, ACCURACY) for first in "abcd"] == ["a", "b", "a", "a"]
    fewer = [found[0], Standing("b", 0.895, 1, 0.005, None)]
    assert choice(fewer, "b", ACCURACY) == "a"
    errors = [Standing("a", 10.0, 3, 0.0, None), Standing("b", 10.4, 3, 0.4, None), Standing("c", 10.9, 3, 0.9, None)]
    assert [choice(errors, first, MSE) for first in "bc"] == ["b", "a"]


@pytest.mark.parametrize(
    ("best", "balanced", "finding"),
    [
        ({0: [0.8], 1: [0.82]}, None, "useful"),
        ({0: [0.8], 1: [0.82]}, 0.51, "as the constant"),
        ({0: [0.55], 1: [0.67]}, None, "as the constant"),
        ({0: [0.4], 1: [0.45]}, None, "below the constant"),
        ({0: [0.6, 0.64]}, 0.7, "as the constant"),
    ],
)
def test_the_verdict_is_beside_the_constant_answer(best, balanced, finding):
    constant, pooled = dict.fromkeys(best, 0.61), dict.fromkeys(best, 0.91)
    assert verdict(best, constant, pooled, ACCURACY, balanced).finding == finding


def test_what_is_kept_is_a_share_of_what_the_pooled_rows_gain():
    found = verdict({0: [80.0]}, {0: 112.0}, {0: 64.0}, MSE, None)
    assert found.kept == pytest.approx(32 / 48)
    assert verdict({0: [80.0]}, {0: 64.0}, {0: 64.0}, MSE, None).kept is None


SCENARIO = {"data": {"source": "breast_cancer"}, "parties": {"count": 5}, "privacy": {"epsilon": 1}}
ENTRIES = [{"kind": "mean_operator"}, {"kind": "constant"}, {"kind": "pooled"}]


def bench(file=None, private=True, **changes):
    return Bench({**SCENARIO, **changes}, None, ACCURACY.name, file, private)


def test_it_measures_what_a_run_does_and_keeps_it(tmp_path, monkeypatch):
    file = tmp_path / "a.pilot.json"
    found = bench(file).measured(ENTRIES, 0, 2, [1.0, 3.0], Deadline(60))
    assert set(found) == {(0, 1.0), (0, 3.0), (1, math.inf), (2, math.inf)}
    assert len(found[0, 1.0].values) == 2
    assert found[2, math.inf].mean > found[1, math.inf].mean
    assert found[0, 3.0].balanced is not None
    kept = json.loads(file.read_text())
    assert kept["note"] == NON_PRIVATE
    again = bench(file)
    monkeypatch.setattr(again, "_run", None)  # nothing is run for what is known
    assert again.measured(ENTRIES, 0, 2, [1.0, 3.0], Deadline(60)) == found
    with pytest.raises(TypeError):
        again.measured(ENTRIES, 1, 2, [1.0, 3.0], Deadline(60))


def test_public_rows_are_not_marked_and_a_protocol_that_fails_gives_nothing(tmp_path):
    file = tmp_path / "a.json"
    secure = {"kind": "mean_operator", "trust": "secure"}
    # Of two parties one may collude, so that nobody is left to share a noise.
    assert bench(file, False, parties={"count": 2}).measured([secure], 0, 1, [1.0], Deadline(60)) == {}
    assert "NON-PRIVATE" not in file.read_text()


def test_the_clock_ends_what_takes_too_long():
    started = time.monotonic()
    with pytest.raises(OutOfTimeError), Deadline(0.05).kept():
        time.sleep(60)
    assert time.monotonic() - started < 30
    with pytest.raises(OutOfTimeError), Deadline(0.0).kept():
        pytest.fail("it is over before it begins")
    with Deadline(30).kept():
        pass


def test_other_files_are_refused_and_values_are_means(tmp_path):
    (tmp_path / "a.json").write_text("[]")
    refused(None, bench, tmp_path / "a.json")
    assert Values("accuracy", (0.5, 0.7)).mean == pytest.approx(0.6)
    assert BALANCED == "balanced_accuracy"
