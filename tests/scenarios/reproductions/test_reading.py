"""From rows of a run to values of series: by variant, epsilon, setting and place on the axis."""

import pytest
from support.toy_paper import toy_item

from federation.contract.errors import InputError
from scenarios.reproductions.measure import observed
from scenarios.reproductions.paper import Part, Pick, Series


def row(variant, split, value, *, noise=0, epsilon=1.0, metric="accuracy", **swept):
    fixed = dict(scenario="s", protocol="soft_vote", default=0, delta=0.0, unit="party")
    return {
        **fixed, "variant": variant, "epsilon": epsilon, "split": split, "noise": noise, "metric": metric,
        "value": value, **swept,
    }  # fmt: skip


ROWS = [
    row("a", 0, 0.6),
    row("a", 0, 0.8, noise=1),
    row("a", 1, 0.9),
    row("b", 0, 0.5, epsilon=float("inf")),
    row("b", 1, 0.4, epsilon=float("inf")),
    row("b", 2, 0.3, epsilon=float("inf")),
    row("a", 0, 3.0, metric="error_at_2"),
    row("a", 0, 5.0, metric="error_at_4"),
]


def values(rows, pick, **changes):
    item = toy_item(series=(Series("high", pick),), **changes)
    return [(one.x, one.split, one.value) for one in observed(rows, item, Part("one", "quickstart"))]


def test_noise_draws_of_a_split_are_averaged():
    assert values(ROWS, Pick("a")) == [("", 0, pytest.approx(0.7)), ("", 1, 0.9)]
    assert values(ROWS, Pick("c")) == []


def test_a_value_beside_another_is_taken_split_by_split():
    assert values(ROWS, Pick("a", beside=Pick("b"))) == [("", 0, pytest.approx(0.2)), ("", 1, pytest.approx(0.5))]
    shares = Pick("a", beside=Pick("b"), of=lambda value, other: value / other)
    assert values(ROWS, shares)[1] == ("", 1, pytest.approx(2.25))


def test_the_place_on_the_axis_stands_in_names_and_settings():
    assert values(ROWS, Pick("a", "error_at_{x}"), axis="k", at=("2", "4")) == [("2", 0, 3.0), ("4", 0, 5.0)]
    rows = [row("a", 0, count / 10, epsilon=count / 1, **{"parties.count": str(count)}) for count in (1, 2)]
    swept = Pick("a", epsilon="{x}", where={"parties.count": "{x}"})
    assert values(rows, swept, axis="parties", at=("1", "2", "3")) == [("1", 0, 0.1), ("2", 0, 0.2)]


def test_an_axis_of_inverse_epsilons_begins_without_noise():
    rows = [row("a", 0, 0.2, epsilon=2.0), row("a", 0, 0.1, epsilon=10.0), row("b", 0, 0.9, epsilon=float("inf"))]
    pieces = (Series("a", Pick("a", epsilon="1/{x}")), Series("a", Pick("b", epsilon="1/{x}")))
    item = toy_item(series=pieces, axis="1/epsilon", at=("0", "0.1", "0.5"))
    found = {one.x: one.value for one in observed(rows, item, Part("one", "quickstart"))}
    assert found == {"0": 0.9, "0.1": 0.1, "0.5": 0.2}


def test_what_is_not_told_apart_is_refused():
    with pytest.raises(InputError, match=r"several epsilons, 1, 2; say in `epsilon`"):
        values([row("a", 0, 0.1), row("a", 0, 0.1, epsilon=2.0)], Pick("a"))
    with pytest.raises(InputError, match=r"several settings.*parties.count = 1; parties.count = 2"):
        values([row("a", 0, 0.1, **{"parties.count": str(n)}) for n in (1, 2)], Pick("a"))
