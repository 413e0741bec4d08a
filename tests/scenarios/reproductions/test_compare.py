"""Cells and claims are compared with scipy and by simulation, and need a reason where they differ."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from support.toy_paper import CLAIM, HIGHER, OTHER, WIDE, printed, toy_item, toy_kept, toy_paper

from scenarios.reproductions.compare import cells, claim_lines, claims, lines, paired, unexplained, used
from scenarios.reproductions.paper import EXACT, Claim, Kept, Reason

LOW = 0.73  # the mean of WIDE


def compared(item, kept=None):
    return {(cell.setting, cell.series): cell for cell in cells(toy_paper(item), item, kept or toy_kept())}


def test_a_value_beyond_our_interval_needs_a_reason_which_other_data_is_by_itself(monkeypatch):
    printed(monkeypatch, low=LOW + 0.03, high=0.5)
    found = compared(toy_item())
    assert found["one", "low"].inside is True
    assert found["one", "high"].inside is False
    assert unexplained(found.values()) == ["one, high: the paper's 0.5 is outside of our interval"]
    assert unexplained(compared(toy_item(reasons=(OTHER,))).values()) != []  # it is about the other series
    assert unexplained(compared(toy_item(reasons=(Reason("misprint", "so it is"),))).values()) == []
    printed(monkeypatch, low=0.1)
    cell = compared(toy_item(), toy_kept(data={"one": "measured on toys"}))["one", "low"]
    assert [(one.kind, one.text) for one in cell.reasons] == [("other data", "measured on toys")]


def test_what_was_computed_must_be_what_is_printed_to_its_last_digit(monkeypatch):
    for value, inside in ((0.7005, True), (0.6995, True), (0.7011, False)):
        printed(monkeypatch, low=value)
        assert compared(toy_item(), toy_kept(low_published={EXACT: 0.7}))["one", "low"].inside is inside
        few = toy_kept(low_published={0: 0.7, 1: 0.7})
        assert compared(toy_item(), few)["one", "low"].inside is None  # two splits tell nothing


def test_what_one_side_lacks_is_neither_inside_nor_outside(monkeypatch):
    printed(monkeypatch, low=0.1)
    found = compared(toy_item(), toy_kept(high_published=WIDE, high_default=HIGHER))
    assert found["one", "low"].inside is None
    assert found["one", "low"].ours is None
    assert found["one", "high"].paper is None
    assert found["one", "high"].difference.difference == pytest.approx(0.115)
    assert unexplained(found.values()) == []


def test_cells_come_in_the_order_of_parts_series_and_axis():
    item = toy_item(axis="k", at=("2", "10"))
    first, second = toy_kept(x="10"), toy_kept(x="2")
    kept = type(first)([*first.observations, *second.observations], first.record)
    found = [(cell.series, cell.x) for cell in cells(toy_paper(item), item, kept)]
    assert found == [("high", "2"), ("high", "10"), ("low", "2"), ("low", "10")]


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (CLAIM, "holds"),
        (Claim("low is higher", "low", "high", ("one",)), "does not hold"),
        (Claim("there is none", "high", "low", ("one",), seen=False), "does not hold"),
        (Claim("both are alike", "low", "low", ("one",), seen=False), "no difference seen"),
        (Claim("high is higher than itself", "high", "high", ("one",)), "cannot be told"),
    ],
)
def test_claims_are_tested_on_the_same_splits(claim, verdict):
    item = toy_item(claims=(claim,))
    [tested] = claims(item, toy_kept())
    assert tested.verdict == verdict
    assert bool(unexplained([tested])) is (verdict == "does not hold")
    explained = toy_item(claims=(claim,), reasons=(Reason("other choice", "we know why"),))
    assert unexplained(claims(explained, toy_kept())) == []


def test_a_claim_may_be_about_places_of_the_axis_and_about_another_setting():
    places = [*toy_kept(x="2").observations, *toy_kept(x="10", high_published=WIDE, low_published=HIGHER).observations]
    item = toy_item(axis="k", at=("2", "10"))
    for at, verdict in ((("2",), "holds"), (("10",), "does not hold"), ((), "cannot be told")):
        claim = Claim("high is higher", "high", "low", ("one",), at=at)
        [tested] = claims(replace(item, claims=(claim,)), Kept(places, toy_kept().record))
        assert tested.verdict == verdict
    fallen = Claim("it falls", "high", "high", ("one",), at=("2",), from_at=("10",))
    [tested] = claims(replace(item, claims=(fallen,)), Kept(places, toy_kept().record))
    assert (tested.verdict, round(tested.found.difference, 3)) == ("holds", 0.115)
    elsewhere = [replace(one, setting="two") for one in toy_kept(high_published=WIDE).observations]
    both = Kept([*toy_kept().observations, *elsewhere], toy_kept().record)
    claim = Claim("one is higher than two", "high", "high", ("one",), against="two")
    [tested] = claims(toy_item(claims=(claim,)), both)
    assert (tested.setting, tested.verdict) == ("one", "holds")
    everywhere = Claim("high is higher", "high", "low")  # it is tested where both series were measured
    assert [one.setting for one in claims(toy_item(claims=(everywhere,)), toy_kept())] == ["one"]


def by_split(values):
    return dict(enumerate(values))


def test_a_paired_difference_is_what_scipy_says_of_common_splits_of_which_few_tell_no_interval():
    random = np.random.default_rng(3)
    one, other = random.normal(0.8, 0.05, 9), random.normal(0.75, 0.05, 9)
    found = paired(by_split(one), by_split(other))
    expected = stats.ttest_rel(one, other).confidence_interval(0.95)
    assert found.interval == pytest.approx((expected.low, expected.high))
    assert found.p == pytest.approx(stats.wilcoxon(one, other).pvalue)
    assert found.difference == pytest.approx((one - other).mean())
    found = paired({0: 1.0, 1: 2.0, 5: 9.0}, {0: 0.5, 1: 1.0, 2: 7.0})
    assert (found.difference, found.interval, found.p, found.splits, found.surely) == (0.75, None, None, 2, 0)
    assert paired({0: 1.0}, {1: 1.0}) is None
    equal = paired(by_split([0.5] * 4), by_split([0.5] * 4))
    assert (equal.difference, equal.p, equal.surely) == (0.0, None, 0)
    for sign in (1, -1):
        assert paired(by_split([sign * v for v in (1.0, 1.1, 0.9, 1.05)]), by_split([0.0] * 4)).surely == sign


def test_a_line_has_the_papers_value_ours_and_why(monkeypatch):
    printed(monkeypatch, low=0.5, high=0.84)
    item = toy_item(reasons=(OTHER,), claims=(CLAIM,))
    compared, tested = cells(toy_paper(item), item, toy_kept()), claims(item, toy_kept())
    reasons = used(compared, tested)
    assert reasons == [OTHER]
    high, low = lines(item, compared, reasons)
    assert high["paper"] == "0.840 ± 0.020"
    assert high["inside"] == "yes"
    assert high["why"] == ""
    assert high["our default"] == "0.730 [0.689, 0.771]"
    assert high["default less published"].startswith("-0.115 [-0.136, -0.094], p = ")
    assert (low["inside"], low["our default"], low["why"]) == ("no", "-", "1")
    [claim] = claim_lines(item, tested, reasons)
    assert claim["verdict"] == "holds"
    assert claim["difference"].startswith("+0.115 [+0.094, +0.136]")


def test_the_axis_has_a_column_of_its_name_and_columns_that_are_empty_everywhere_are_left_out():
    item = toy_item(axis="round")
    [line] = lines(item, cells(toy_paper(item), item, toy_kept(x="3", high_published=HIGHER)), ())
    assert line["round"] == "3"
    item = toy_item()
    for line in lines(item, cells(toy_paper(item), item, toy_kept()), ()):
        assert not {"paper", "inside", "why"} & line.keys()
    assert claim_lines(item, [], ()) == []
