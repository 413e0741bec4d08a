"""Axes and curves before anything is drawn."""

import math
from dataclasses import replace

import pytest
from support.figure_rows import rows

from scenarios.reports.axes import Axis, Curve, Panel, Plot, looks, panels
from scenarios.reports.summary import Spread, summarise


@pytest.mark.parametrize(("logarithmic", "middle"), [(True, 1.0), (False, 5.05)])
def test_an_axis_places_its_ends_at_0_and_1_and_moves_values_by_a_share(logarithmic, middle):
    axis = Axis("ε", (0.1, 1.0, 10.0), logarithmic)
    assert (axis.position(0.1), axis.position(10.0)) == (0, 1)
    assert axis.position(middle) == pytest.approx(0.5)
    for share in (0.0, 0.25, -0.1):
        assert axis.position(axis.shifted(middle, share)) == pytest.approx(0.5 + share)


@pytest.mark.parametrize(
    ("values", "logarithmic"), [((50.0, 100.0, math.inf, 80.0), False), ((1.0, 10.0), True), ((0.0, 10.0), False)]
)
def test_far_numbers_are_on_a_logarithmic_axis(values, logarithmic):
    axis = Axis.of("x", values)
    assert axis.values == tuple(sorted(set(values) - {math.inf}))
    assert axis.logarithmic is logarithmic


def test_intervals_are_beside_means_but_not_on_lines_across():
    [one] = summarise(rows(variants=("v",), references=False))
    look, spread = looks([one])["v"], Spread.of({0: [0.1], 1: [0.2]})
    rising, across = Curve("v", look, {1.0: spread, 2.0: spread}), Curve("w", look, {math.inf: spread})
    assert (rising.across, across.across) == (False, True)
    plot = Plot((Panel("", (rising, across)),), Axis.of("x", (1.0, 2.0)), "accuracy")
    assert plot.barred == [spread, spread]
    assert replace(plot, bars=False).barred == []


def test_parts_of_a_curve_are_joined_under_its_name_and_note():
    one, other, *_ = summarise(rows())
    low, high = Spread.of({0: [0.1]}), Spread.of({0: [0.9]})
    placed = [("left", one, {1.0: low}), ("left", other, {1.0: low}), ("left", one, {2.0: high}), ("right", one, {})]
    names = [one.variant, other.variant]
    left, right = panels(placed, looks([one, other]), {other.variant: "keeps ε = 4"}, names)
    assert (left.title, right.title) == ("left", "right")
    assert [curve.label for curve in left.curves] == ["soft_vote (default)", "soft_vote gaussian\nkeeps ε = 4"]
    assert left.curves[0].points == {1.0: low, 2.0: high}
    assert left.curves[0].look is right.curves[0].look
    assert [len(panel.curves) for panel in panels(placed, looks([one, other]), {}, names[1:])] == [1]
    plot = Plot((left, right), Axis("ε", (1.0, 2.0), True), "accuracy")
    assert [curve.label for curve in plot.legend] == [curve.label for curve in left.curves]
    assert not plot.of_one_value
    assert not plot.unprotected
