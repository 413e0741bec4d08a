"""Means, quantiles and intervals against closed forms and scipy; the table as a person sees it."""

import io
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from scipy import stats

from scenarios.summary import Spread, broken, epsilons, name_width, student_interval, summarise, tables


def row(variant="soft_vote", epsilon=1.0, split=0, noise=0, value=0.5, metric="accuracy", **more):
    base = {
        "scenario": "s", "protocol": variant.split("-")[0], "variant": variant, "default": 0, "epsilon": epsilon,
        "delta": 0.0, "unit": "none" if math.isinf(epsilon) else "party", "split": split, "noise": noise,
        "metric": metric, "value": value,
    }  # fmt: skip
    return base | more


def shown(summaries, width):
    console = Console(file=io.StringIO(), width=width)
    console.print(*tables(summaries))
    return console.file.getvalue()


def test_closed_form_of_two_splits_with_two_draws():
    spread = Spread.of({0: [0.1, 0.3], 1: [0.5, 0.7]})
    assert spread.mean == pytest.approx(0.4)
    assert spread.deviation == pytest.approx(math.sqrt((0.09 + 0.01 + 0.01 + 0.09) / 3))
    assert (spread.low, spread.high) == pytest.approx((0.13, 0.67))  # linear between .1 .3 .5 .7 at 0.15 and 2.85
    assert (spread.releases, spread.splits) == (4, 2)
    # Means of the splits .2 and .6: standard error .2, and Student's t with one degree of freedom is tan(.475 pi).
    reach = math.tan(0.475 * math.pi) * 0.2
    assert spread.interval == pytest.approx((0.4 - reach, 0.4 + reach))


def test_one_split_has_no_interval_and_one_release_no_deviation():
    assert Spread.of({3: [0.2, 0.4]}).interval is None
    single = Spread.of({3: [0.25]})
    assert single.deviation is None
    assert single.text("accuracy") == "0.250"


def test_text_is_mean_and_deviation():
    assert Spread.of({0: [0.825, 0.843]}).text("accuracy") == "0.834 ± 0.013"


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=12))
def test_interval_is_student_s(means):
    low, high = student_interval(means)
    error = np.std(means, ddof=1) / math.sqrt(len(means))
    if error < 1e-9:
        assert high - low < 1e-6
    else:
        wanted = stats.t.interval(0.95, len(means) - 1, loc=np.mean(means), scale=error)
        assert (low, high) == pytest.approx(wanted, rel=1e-9, abs=1e-12)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=5), min_size=2, max_size=5), st.integers(2, 4))
def test_more_draws_of_the_same_splits_do_not_narrow_the_interval(parts, times):
    once = Spread.of(dict(enumerate(parts)))
    often = Spread.of({i: part * times for i, part in enumerate(parts)})
    assert often.interval == pytest.approx(once.interval, abs=1e-12)
    assert min(map(min, parts)) <= once.low <= once.high <= max(map(max, parts))


def test_interval_covers_the_truth_nineteen_times_in_twenty(rng):
    splits = rng.normal(0.7, 0.05, size=(4000, 6, 1)) + rng.normal(0, 0.02, size=(4000, 6, 3))
    covered = 0
    for world in splits:
        low, high = Spread.of(dict(enumerate(world))).interval
        covered += low <= 0.7 <= high
    # A right interval leaves these limits once in 1e5 runs; one that counts draws as units covers about .77.
    assert abs(covered / 4000 - 0.95) < 4.4 * math.sqrt(0.95 * 0.05 / 4000)


def test_groups_by_variant_and_swept_values():
    rows = [
        row("b", 10.0, value=0.9, **{"parties.count": "10", "protocols.regularisation": ""}),
        row("b", 1.0, value=0.4, **{"parties.count": "10", "protocols.regularisation": ""}),
        row("b", 1.0, value=0.6, **{"parties.count": "20", "protocols.regularisation": ""}),
        row("a", 1.0, value=0.1, default=1, **{"parties.count": "10", "protocols.regularisation": "0.1"}),
        row("a", 1.0, value=0.2, metric="auc", **{"parties.count": "10", "protocols.regularisation": "0.1"}),
        row("pooled", math.inf, value=0.95, **{"parties.count": "10", "protocols.regularisation": ""}),
    ]
    first, second, third, pooled = summarise(rows)
    assert [s.variant for s in (first, second, third, pooled)] == ["b", "b", "a", "pooled"]
    assert [s.place for s in (first, second)] == ["parties.count = 10", "parties.count = 20"]
    assert list(first.by_epsilon) == [1.0, 10.0]
    assert third.swept == {"parties.count": "10", "protocols.regularisation": "0.1"}
    assert third.setting == {"parties.count": "10"}
    assert third.by_epsilon[1.0].mean == 0.1
    assert third.label == "a (default)"
    assert pooled.label == "pooled (NON-PRIVATE)"
    assert pooled.non_private
    assert not first.non_private
    assert epsilons([first, pooled]) == [1.0, 10.0, math.inf]
    assert [s.by_epsilon[1.0].mean for s in summarise(rows, "auc")] == [0.2]
    assert summarise(rows, "mse") == []


def test_plain_values_have_no_infinity():
    record = summarise([row("pooled", math.inf)])[0].to_dict()
    assert record["values"][0]["epsilon"] is None
    assert record["non_private"] is True


@pytest.mark.parametrize("width", [80, 100])
def test_table_fits_the_terminal_and_says_everything(width):
    name = "soft_vote-output-published-regularisation=0.0001"
    rows = [
        row(v, e, noise=n, value=0.81 + n / 100, default=int(v == "soft_vote"))
        for v in ("soft_vote", name)
        for e in (0.1, 0.3, 1.0, 3.0, 10.0)
        for n in (0, 1)
    ]
    rows += [row("soft_vote-output-off", math.inf, value=0.957), row("individual", math.inf, value=0.3)]
    text = shown(summarise(rows), width)
    assert max(map(len, text.splitlines())) <= width
    for part in ("soft_vote (default)", "ε = 0.1", "ε = 10", "NON-PRIVATE", "0.957", "regularisation=0.0001"):
        assert part in text
    assert text.count("(NON-PRIVATE)") == 2
    assert text.count("0.815") == 10
    assert text.count("± 0.007") == 10


def test_few_epsilons_stand_on_one_line():
    assert "0.815 ± 0.007" in shown(summarise([row(value=0.81), row(noise=1, value=0.82)]), 80)


def test_table_takes_names_as_text():
    rows = [row("[red]x[/red]", **{"data.source": "[/]"})]
    text = shown(summarise(rows), 100)
    assert "[red]x[/red]" in text
    assert "data.source = [/]" in text
    assert "no results" in shown([], 100)


def test_many_epsilons_are_shown_in_blocks_that_keep_names_whole():
    name = "soft_vote-output-published-regularisation=0.0001"
    made = [row(name, 2.0**e, split, value=0.5 + 0.01 * split) for e in range(8) for split in range(3)]
    text = shown(summarise(made), 80)
    assert max(map(len, text.splitlines())) <= 80
    for part in ("soft_vote-output-", "published-", "regularisation=0.0001"):
        assert text.count(part) == 2  # once in each block


NINE = (
    "soft_vote", "soft_vote-gaussian", "soft_vote-output-published", "soft_vote-output-tight-regularisation=1e-06",
    "soft_vote-output-published-regularisation=0.0001", "majority_vote", "majority_vote-published",
    "soft_vote-output-diameter-gaussian-regularisation=0.001", "majority_vote-output_decoder_of_unusual_name=0.25",
)  # fmt: skip


def test_nine_variants_six_epsilons_and_two_references_fit_in_two_blocks_without_broken_words():
    rows = [
        row(v, e, noise=n, value=0.81 + n / 100, **{"parties.classifier.logistic.regularisation": "0.01"})
        for v in NINE
        for e in (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
        for n in (0, 1)
    ]
    rows += [row(name, math.inf, value=0.9) for name in ("soft_vote-output-off", "pooled")]
    text = shown(summarise(rows), 80)
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("variant  ") == 2
    headers = re.findall(r"ε = \S+|(?<=  )NON-PRIVATE\n", text)
    assert headers == [*(f"ε = {e}" for e in ("0.1", "0.3", "1", "3", "10", "30")), "NON-PRIVATE\n"]
    first = [line[:22].strip() for line in text.splitlines()]
    words = {part for name in NINE for part in broken(name, 22)}
    assert words <= set(first)  # every line of a name stands as it was broken, so the terminal broke none again
    assert {"regularisation=1e-06", "majority_vote-output_", "decoder_of_unusual_"} <= words
    assert text.count("regularisation=0.0001") == 2  # once in each block


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.lists(st.text("abc1=", min_size=1, max_size=12), min_size=1, max_size=8), st.sampled_from("-_"))
def test_names_break_only_before_words(parts, joint):
    name = joint.join(parts)
    width = name_width([name])
    lines = broken(name, width)
    assert "".join(lines) == name
    assert max(map(len, lines)) <= width
    assert all(line.endswith(joint) for line in lines[:-1]) or width == 40
    assert all(line[0].isalpha() for line in lines[1:]) or width == 40


def test_a_space_after_a_full_line_takes_no_line_of_its_own():
    assert broken("parties.hostile.kind = flip", 20) == ["parties.hostile.kind", "= flip"]


def test_a_word_too_long_for_any_column_is_cut():
    assert name_width(["a-" + "b" * 90]) == 40
    assert broken("a-" + "b" * 90, 40) == ["a-", "b" * 40, "b" * 40, "b" * 10]
    assert name_width(["a-" + "b" * 30, "c"]) == 30


def test_rows_with_and_without_swept_keys_are_told_apart():
    rows = [row(value=0.1), row(value=0.2, **{"parties.count": 10}), row(value=0.3, **{"parties.count": ""})]
    assert [(s.swept, s.by_epsilon[1.0].mean) for s in summarise(rows)] == [
        ({}, pytest.approx(0.2)), ({"parties.count": "10"}, 0.2),
    ]  # fmt: skip


def test_an_epsilon_without_a_guarantee_is_claimed():
    rows = [row("x-published", epsilon, unit="none", metric="l1", value=0.3) for epsilon in (0.5, 1.0)]
    rows += [row("x-off", math.inf, metric="l1", value=0.1), row("x", metric="l1", value=0.2)]
    claimed, off, kept = summarise(rows)
    assert [(s.non_private, s.claiming) for s in (claimed, off, kept)] == [(True, True), (True, False), (False, False)]
    assert claimed.label == "x-published (NON-PRIVATE)"
    assert claimed.to_dict()["non_private"]
    assert [value["epsilon"] for value in claimed.to_dict()["values"]] == [0.5, 1.0]
    text = shown([claimed, off, kept], 80)
    assert "L1 error" in text
    assert "NON-PRIVATE under some ε: it is claimed, not kept" in text
    assert "claimed" not in shown([off, kept], 80)


def test_one_release_without_a_guarantee_makes_its_variant_non_private():
    [both] = summarise([row(epsilon=0.5), row(epsilon=2.0, unit="none")])
    assert both.non_private
    assert both.claiming


def test_what_is_compared_is_the_metric_that_is_there():
    rows = [row(metric="l1_at_0.1", value=0.3), row(metric="l1", value=0.2), row(metric="bytes_per_party", value=9.0)]
    assert [(s.metric, s.by_epsilon[1.0].mean) for s in summarise(rows)] == [("l1", 0.2)]
    assert summarise(rows[2:]) == []


def test_delta_is_that_of_the_weakest_promise():
    [only] = summarise([row(epsilon=0.5), row(epsilon=2.0, delta=1e-6), row(epsilon=1.0, delta=1e-9)])
    assert only.delta == 1e-6
