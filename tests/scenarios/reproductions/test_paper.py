"""Declarations of papers: what reasons cover, which settings and picks there are."""

from support.toy_paper import PICK, toy_item

from scenarios.reproductions.paper import Part, Reason, Series


def test_a_reason_covers_what_it_names_and_all_where_it_names_nothing():
    assert Reason("misprint", "").covers("one", "high")
    some = Reason("misprint", "", series=("high",), settings=("one", "two"))
    assert some.covers("one", "low", "high")
    assert not some.covers("one", "low")
    assert not some.covers("three", "high")


def test_settings_are_those_of_the_parts_each_once():
    assert toy_item(parts=(Part("b", "x"), Part("a", "y"), Part("b", "z"))).settings == ["b", "a"]


def test_a_series_has_the_roles_that_are_declared():
    assert Series("high", default=PICK).picks() == {"default": PICK}
    assert list(Series("high", PICK, PICK).picks()) == ["published", "default"]
