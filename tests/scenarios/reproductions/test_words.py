"""Cells and claims in words."""

from support.toy_paper import CLAIM, HIGHER, OTHER, printed, toy_item, toy_kept, toy_paper

from scenarios.reproductions.compare import cells, claim_lines, claims, lines, used


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


def test_the_axis_has_a_column_of_its_name():
    item = toy_item(axis="round")
    [line] = lines(item, cells(toy_paper(item), item, toy_kept(x="3", high_published=HIGHER)), ())
    assert line["round"] == "3"


def test_columns_that_are_empty_everywhere_are_left_out():
    item = toy_item()
    for line in lines(item, cells(toy_paper(item), item, toy_kept()), ()):
        assert not {"paper", "inside", "why"} & line.keys()
    assert claim_lines(item, [], ()) == []
