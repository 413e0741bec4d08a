"""What is said of a ranked protocol is true of what it promises, and curves pass through what is expected."""

from dataclasses import replace

import pytest
from support.refusals import refused

from aggregator.advice import Advice, Wish, nearest, rank
from aggregator.contract.disclosure import disclosed
from aggregator.contract.protocol import Trust
from federation.contract.trust import TrustTerms
from scenarios.advice import texts as words
from scenarios.settings.guarantees import roles

LABEL = Wish("binary", "label", Trust.NONE, rows=12_000, features=50, terms=TrustTerms(100))
PARTY = replace(LABEL, protect="party", trust=Trust.AGGREGATOR, public_features=False, public_rows=900)
REAL = replace(LABEL, task="regression", label_range=(0.0, 1.0))
WISH = Wish("binary", "label", Trust.NONE, rows=900, features=20, terms=TrustTerms(9), majority=0.6)


@pytest.mark.parametrize(
    "wish",
    [
        LABEL,
        PARTY,
        replace(LABEL, trust=Trust.SECURE),
        replace(LABEL, protect="row", public_features=False, trust=Trust.SECURE),
        REAL,
        Wish("ratio", "row", Trust.NONE, False, classes=3, bags=9, bag_rows=40, terms=TrustTerms(2)),
    ],
)
def test_the_record_of_a_protocol_follows_from_its_promise_and_the_place_of_its_noise(wish):
    for one in rank(wish).ranked:
        record = words.record(one, wish)
        assert record["roles"] == roles(disclosed(one.place, "one", one.promise.sends))
        assert record["noise_added_by"] == str(one.place)
        assert record["unit"] == str(one.guarantee.unit)
        assert len(record["leaves_a_party"]) == len(one.promise.sends)


@pytest.mark.parametrize(
    ("wish", "part"),
    [(LABEL, "but for one unknown that was measured"), (PARTY, "a guess"), (REAL, "exact to first order")],
)
def test_every_formula_says_what_it_assumes_and_who_needs_public_features_is_asked_about_them(wish, part):
    advice = rank(wish)
    [first, *_] = advice.ranked
    told = words.chosen(advice, wish)
    assert part in told[0]
    assert first.expected.assuming in told[0]
    exact = any(not one.private for one in first.promise.sends)
    assert any("--features private" in line for line in told) is (exact and wish.public_features)


def test_the_same_that_leaves_a_party_is_told_once_and_a_verdict_needs_a_constant():
    advice = rank(LABEL)
    assert len(words.leaving(advice)) == 1 < len(words.rows(advice, LABEL))
    assert words.verdict(advice) == "unknown"
    assert words.verdict(rank(replace(LABEL, majority=0.5))) == "useful"
    assert words.verdict(rank(replace(LABEL, majority=0.95))) == "none"
    assert words.verdict(Advice((), ())) == "none"


@pytest.mark.slow
def test_an_epsilon_is_told_by_formula_within_a_factor_of_ten_only():
    found = words.reached(LABEL, 0.85)
    low, high = (float(found.split(before)[1].split()[0].rstrip(",")) for before in ("between epsilon ", "and "))
    assert high == pytest.approx(10 * low)
    least, most = (rank(replace(LABEL, epsilon=end)).ranked[0].expected.error for end in (high, low))
    assert least < 0.15 < most
    assert "not reached" in words.reached(LABEL, 0.95)
    refused("--accuracy", words.reached, REAL, 0.9)


def test_the_nearest_are_told_with_the_flags_that_change():
    wish = replace(PARTY, public_rows=None)
    told = words.nearest_told(nearest(wish), wish)
    assert told[0].startswith("The nearest is --")
    assert all(line.startswith("Or --") for line in told[1:])
    assert any("--public-rows FILE" in line for line in told)


@pytest.mark.slow
def test_curves_pass_through_what_is_expected_as_it_is_and_rise():
    panels = {panel.axis: panel for panel in words.prospects(WISH)}
    assert list(panels) == ["epsilon", "parties", "rows"]
    first = rank(WISH).ranked[0]
    for axis, now in (("epsilon", 1.0), ("parties", 9), ("rows", 900)):
        curve = panels[axis].curves["mean_operator"]
        assert panels[axis].now == now
        assert curve[now] == pytest.approx(1 - first.expected.error)
        assert panels[axis].constant == pytest.approx(0.6)
    rising = [list(panels[axis].curves["mean_operator"].values()) for axis in ("epsilon", "rows")]
    assert all(values == sorted(values) for values in rising)
    assert max(panels["parties"].curves["mean_operator"]) <= 900  # a row each


@pytest.mark.slow
def test_errors_are_drawn_as_they_are_and_what_has_no_formula_is_refused(tmp_path):
    real = replace(WISH, task="regression", label_range=(0.0, 1.0), majority=None)
    values = list(words.prospects(real)[0].curves["private_labels"].values())
    assert values == sorted(values, reverse=True)
    for suffix in ("svg", "png"):
        path = tmp_path / f"a.{suffix}"
        words.draw(words.prospects(real), real, path)
        assert path.stat().st_size > 1000
    assert b"mathdefault" not in (tmp_path / "a.svg").read_bytes()
    refused(None, words.draw, words.prospects(real), real, tmp_path / "a.txt")
    refused(None, words.prospects, replace(WISH, features=None))
