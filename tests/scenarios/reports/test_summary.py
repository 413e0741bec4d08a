"""Means, quantiles and intervals against closed forms and scipy, and where releases stand.

Short names of variants: unique, and shorter by what all have or what follows from the rest.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.figure_rows import row

from scenarios.reports.summary import (
    Spread,
    broken,
    epsilons,
    is_published,
    labels,
    name_width,
    student_interval,
    summarise,
    without,
)


def test_closed_form_of_two_splits_with_two_draws():
    spread = Spread.of({0: [0.1, 0.3], 1: [0.5, 0.7]})
    assert spread.mean == pytest.approx(0.4)
    assert spread.deviation == pytest.approx(math.sqrt((0.09 + 0.01 + 0.01 + 0.09) / 3))
    assert (spread.low, spread.high) == pytest.approx((0.13, 0.67))  # linear between .1 .3 .5 .7 at 0.15 and 2.85
    assert (spread.releases, spread.splits) == (4, 2)
    # Means of the splits .2 and .6: standard error .2, and Student's t with one degree of freedom is tan(.475 pi).
    reach = math.tan(0.475 * math.pi) * 0.2
    assert spread.interval == pytest.approx((0.4 - reach, 0.4 + reach))
    assert Spread.of({3: [0.2, 0.4]}).interval is None  # of one split
    assert Spread.of({3: [0.25]}).deviation is None


@settings(derandomize=True)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=12))
def test_interval_is_student_s(means):
    low, high = student_interval(means)
    error = np.std(means, ddof=1) / math.sqrt(len(means))
    if error < 1e-9:
        assert high - low < 1e-6
    else:
        wanted = stats.t.interval(0.95, len(means) - 1, loc=np.mean(means), scale=error)
        assert (low, high) == pytest.approx(wanted, rel=1e-9, abs=1e-12)


@settings(derandomize=True)
@given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=5), min_size=2, max_size=5), st.integers(2, 4))
def test_more_draws_of_the_same_splits_do_not_narrow_the_interval(parts, times):
    once = Spread.of(dict(enumerate(parts)))
    often = Spread.of({i: part * times for i, part in enumerate(parts)})
    assert often.interval == pytest.approx(once.interval, abs=1e-12)
    assert min(map(min, parts)) <= once.low <= once.high <= max(map(max, parts))


@pytest.mark.parametrize("runs", [1000, pytest.param(4000, marks=pytest.mark.slow)])
def test_interval_covers_the_truth_nineteen_times_in_twenty(rng, runs):
    splits = rng.normal(0.7, 0.05, size=(runs, 6, 1)) + rng.normal(0, 0.02, size=(runs, 6, 3))
    covered = 0
    for world in splits:
        low, high = Spread.of(dict(enumerate(world))).interval
        covered += low <= 0.7 <= high
    # A right interval leaves these limits once in 1e5 runs; one that counts draws as units covers about .77.
    assert abs(covered / runs - 0.95) < 4.4 * math.sqrt(0.95 * 0.05 / runs)


def test_groups_by_variant_and_swept_values():
    ten, twenty = ({"parties.count": count, "protocols.regularisation": ""} for count in ("10", "20"))
    swept = ten | {"protocols.regularisation": "0.1"}
    rows = [
        row("b", 10.0, value=0.9, **ten),
        row("b", 1.0, value=0.4, **ten),
        row("b", 1.0, value=0.6, **twenty),
        row("a", 1.0, value=0.1, default=1, **swept),
        row("a", 1.0, value=0.2, metric="auc", **swept),
        row("pooled", math.inf, value=0.95, **ten),
    ]
    first, second, third, pooled = summarise(rows)
    assert [s.variant for s in (first, second, third, pooled)] == ["b", "b", "a", "pooled"]
    assert [s.place for s in (first, second)] == ["parties.count = 10", "parties.count = 20"]
    assert list(first.by_epsilon) == [1.0, 10.0]
    assert (third.swept, third.setting) == (swept, {"parties.count": "10"})
    assert third.by_epsilon[1.0].mean == 0.1
    assert [s.label for s in (third, pooled)] == ["a (default)", "pooled (NON-PRIVATE)"]
    assert [s.non_private for s in (first, pooled)] == [False, True]
    assert epsilons([first, pooled]) == [1.0, 10.0, math.inf]
    assert [s.by_epsilon[1.0].mean for s in summarise(rows, "auc")] == [0.2]
    assert summarise(rows, "mse") == []
    rows = [row(value=0.1), row(value=0.2, **{"parties.count": 10}), row(value=0.3, **{"parties.count": ""})]
    without, with_key = summarise(rows)
    assert (without.swept, without.by_epsilon[1.0].mean) == ({}, pytest.approx(0.2))
    assert (with_key.swept, with_key.by_epsilon[1.0].mean) == ({"parties.count": "10"}, 0.2)


@settings(derandomize=True)
@given(st.lists(st.text("abc1=", min_size=1, max_size=12), min_size=1, max_size=8), st.sampled_from("-_"))
def test_names_break_only_before_words(parts, joint):
    name = joint.join(parts)
    width = name_width([name])
    lines = broken(name, width)
    assert "".join(lines) == name
    assert max(map(len, lines)) <= width
    assert all(line.endswith(joint) for line in lines[:-1]) or width == 40
    assert all(line[0].isalpha() for line in lines[1:]) or width == 40


def test_a_space_after_a_full_line_takes_no_line_and_a_word_too_long_for_any_column_is_cut():
    assert broken("parties.hostile.kind = flip", 20) == ["parties.hostile.kind", "= flip"]
    assert name_width(["a-" + "b" * 90]) == 40
    assert broken("a-" + "b" * 90, 40) == ["a-", "b" * 40, "b" * 40, "b" * 10]
    assert name_width(["a-" + "b" * 30, "c"]) == 30


def test_an_epsilon_without_a_guarantee_makes_its_variant_non_private_and_what_is_is_there_at_every_epsilon():
    rows = [row("x-published", epsilon, unit="none", metric="l1", value=0.3) for epsilon in (0.5, 1.0)]
    rows += [row("x-off", math.inf, metric="l1", value=0.1), row("x", metric="l1", value=0.2)]
    claimed, off, kept = summarise(rows)
    assert [(s.non_private, s.claiming) for s in (claimed, off, kept)] == [(True, True), (True, False), (False, False)]
    assert claimed.label == "published (NON-PRIVATE)"
    assert claimed.to_dict()["non_private"]
    assert [value["epsilon"] for value in claimed.to_dict()["values"]] == [0.5, 1.0]
    [both] = summarise([row(epsilon=0.5), row(epsilon=2.0, unit="none")])
    assert (both.non_private, both.claiming) == (True, True)
    private, pooled = summarise([row(value=0.5), row("pooled", math.inf, value=0.9)])
    assert private.at(1.0).mean == 0.5
    assert private.at(2.0) is None
    assert pooled.at(2.0).mean == 0.9


def test_what_is_compared_is_the_metric_that_is_there_and_delta_that_of_the_weakest_promise():
    rows = [row(metric="l1_at_0.1", value=0.3), row(metric="l1", value=0.2), row(metric="bytes_per_party", value=9.0)]
    assert [(s.metric, s.by_epsilon[1.0].mean) for s in summarise(rows)] == [("l1", 0.2)]
    assert summarise(rows[2:]) == []
    [only] = summarise([row(epsilon=0.5), row(epsilon=2.0, delta=1e-6), row(epsilon=1.0, delta=1e-9)])
    assert only.delta == 1e-6
    record = summarise([row("pooled", math.inf)])[0].to_dict()
    assert (record["values"][0]["epsilon"], record["non_private"]) == (None, True)


def test_releases_stand_under_the_epsilon_that_they_aimed_at_and_say_what_they_keep():
    rows = [row("x", epsilon, value=0.5) for epsilon in (1.0, 5.0)]
    for aim, kept, split, value in ((1.0, 4.25, 0, 0.7), (1.0, 5.0, 1, 0.9), (5.0, 5.0 + 1e-9, 0, 0.8)):
        rows.append(row("x-published", kept, split, value=aim, metric="aimed_epsilon"))
        rows.append(row("x-published", kept, split, value=value))
    met, missed = summarise(rows)
    assert epsilons([met, missed]) == [1.0, 5.0]
    assert [met.by_epsilon[e].kept for e in (1.0, 5.0)] == [None, None]
    assert (missed.by_epsilon[1.0].mean, missed.by_epsilon[1.0].splits) == (pytest.approx(0.8), 2)
    assert [(missed.kept(e), missed.by_epsilon[e].kept) for e in (1.0, 5.0)] == [(5.0, 5.0), (5.0, None)]
    values = missed.to_dict()["values"]
    assert [(value["epsilon"], value.get("aimed_epsilon")) for value in values] == [(5.0, 1.0), (5.0, None)]
    assert met.to_dict()["values"][0].keys() == values[1].keys()
    aim = row("x", 4.0, metric="aimed_epsilon", value=1.0, **{"data.source": "a"})
    rows = [aim, *(row(v, 4.0, **{"data.source": s}) for v, s in (("x", "a"), ("x", "b"), ("y", "a")))]
    assert [list(summary.by_epsilon) for summary in summarise(rows)] == [[1.0], [4.0], [4.0]]


def test_what_is_shown_of_an_interval_lies_within_what_the_metric_can_have():
    spread = Spread.of({0: [0.1], 1: [2.0], 2: [0.3]})
    low, high = spread.interval
    for metric, ends in (("accuracy", (0, 1)), ("auc", (0, 1)), ("l1", (0, 2)), ("mse", (0, high)), ("t", (low, high))):
        assert spread.interval_of(metric) == ends
    two, one = Spread.of({0: [0.1, 0.3], 1: [0.9]}), Spread.of({0: [0.1]})
    assert two.interval is not None
    assert two.interval_of("accuracy") is None  # two splits are points
    assert two.points == pytest.approx([0.2, 0.9])
    assert one.points == Spread.of({0: [0.1], 1: [0.2], 2: [0.3]}).points == []


def test_what_all_of_a_protocol_have_is_left_out_and_published_is_said_in_every_spelling_and_place():
    whole_and_short = {
        "soft_vote": "soft_vote",
        "soft_vote-gaussian": "soft_vote gaussian",
        "soft_vote-output-published-regularisation=1e-06": "soft_vote published regularisation=1e-06",
        "soft_vote-output-published-regularisation=0.1": "soft_vote published regularisation=0.1",
        "soft_vote-output-regularisation=0.1": "soft_vote regularisation=0.1",
        "mean_operator-row": "mean_operator",
        "mean_operator-pure-row": "mean_operator pure",
        "pooled": "pooled",
    }
    protocols = {"ours": "soft_vote", **{name: name.split("-")[0] for name in whole_and_short}}
    assert labels(protocols) == {"ours": "ours", **whole_and_short}
    names = ["x", "x-a", "x-b=2-c", "constant"]  # where there is no other protocol
    assert list(labels({name: name.split("-")[0] for name in names}).values()) == ["x", "a", "c", "constant"]
    assert labels({"x-a": "x"}) == {"x-a": "x"}
    assert labels({"x": "x", "noise_free": "noise_free"}) == {"x": "x", "noise_free": "without noise"}
    assert labels({"x": "x", "x-a": "x", "a": "x"}) == {"x": "x", "x-a": "x-a", "a": "a"}  # names stay apart
    assert is_published("x-published")
    assert is_published("x-a-published_laplace-b=1")
    assert is_published("published-by-hamm")
    assert not is_published("x-unpublished")
    assert without("x-b=1e-06-c", ["b"]) == "x-c"


OPTIONS = st.lists(st.sampled_from(["a", "b", "published", "c=1", "d=1e-06"]), unique=True)


@given(st.lists(st.tuples(st.sampled_from(["x", "y"]), OPTIONS), min_size=1), st.sets(st.sampled_from("abxyc")))
def test_no_two_are_alike_and_none_is_longer(variants, chosen):
    protocols = {"-".join([kind, *sorted(options)]): kind for kind, options in variants}
    protocols |= dict.fromkeys(chosen - set(protocols), "x")
    found = labels(protocols)
    assert found.keys() == protocols.keys()
    assert len(set(found.values())) == len(found)
    assert all(len(label) <= len(name) for name, label in found.items())
    assert all(is_published(name) == ("published" in label) for name, label in found.items())
