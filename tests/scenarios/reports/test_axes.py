"""What is drawn of curves: intervals within what a metric can have, and points in their place where splits are few.

Axes and curves before anything is drawn.
Which variants a figure shows first, and that each looks like no other, whatever its figure shows.
How curves are drawn side by side: nothing overlaps or is cropped, and scales suit what is measured.
"""

import math
import re
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from support.figure_rows import bands, hollow, legend, ratio_rows, rows, squared_errors, watermarked

from scenarios.reports.axes import (
    COLOURS,
    MOST_CURVES,
    Axis,
    Curve,
    Panel,
    Plot,
    chosen,
    explanations,
    groups,
    looks,
    panels,
    styled,
)
from scenarios.reports.figures import draw, figures, plots
from scenarios.reports.summary import Spread, summarise


def whiskers(axes):
    """The ends of all intervals."""
    return [end for lines in axes.containers for bars in lines[2] for end in np.concatenate(bars.get_segments())[:, 1]]


def test_intervals_and_points_of_splits_are_in_the_picture_and_end_where_the_metric_does():
    made = [row | {"value": min(0.99, 0.9 + 0.1 * row["split"])} for row in rows()]
    ends = whiskers(*figures(made, "t")["accuracy"].axes)
    assert max(ends) == 1.0
    assert min(ends) >= 0.0
    for splits in (2, 3):
        made = [row for row in rows(variants=("v",), references=False) if row["split"] < splits]
        made = [row | {"value": 0.4 + row["split"] / 10} for row in made]
        (axes,) = figures(made, "t")["accuracy"].axes
        low, high = axes.get_ylim()
        seen = [*whiskers(axes), *(value for line in axes.lines for value in line.get_ydata())]
        assert low < min(seen) < max(seen) < high


@pytest.mark.parametrize("epsilons", [(1.0,), (1.0, 10.0)])
def test_two_splits_are_points_and_no_interval_and_one_has_neither(epsilons):
    made = [row for row in rows(epsilons, ("v",), references=False) if row["split"] < 2]
    (axes,) = figures(made, "t")["accuracy"].axes
    points = [line for line in axes.lines if line.get_marker() == "."]
    place = 0 if len(epsilons) == 1 else 1
    found = sorted(value for line in points for value in line.get_data()[place])
    means = [
        np.mean([row["value"] for row in made if (row["epsilon"], row["split"]) == (epsilon, split)])
        for epsilon in epsilons
        for split in (0, 1)
    ]
    assert found == pytest.approx(sorted(means))
    assert "points beside a mean: its two splits, too few for an interval" in explanations(plots(made)["accuracy"])
    three = plots(rows(epsilons))["accuracy"]
    assert not any("two splits" in line for line in explanations(three))
    assert any("95 % interval" in line for line in explanations(three))
    single = [row for row in made if row["split"] == 0]
    (axes,) = figures(single, "t")["accuracy"].axes
    assert not [line for line in axes.lines if line.get_marker() == "."]
    assert not any("interval" in line or "splits" in line for line in explanations(plots(single)["accuracy"]))


@pytest.mark.slow
def test_names_above_their_rows_cover_no_dot_and_no_other_name():
    found = figures(rows((1.0,), [f"{'v' * 90}{i}" for i in range(12)], references=False), "t")["accuracy-all"]
    found.draw_without_rendering()
    (axes,) = found.axes
    boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) == 12
    assert not any(a.overlaps(b) for a, b in pairwise(boxes))
    places = [axes.transData.transform((0.0, row))[1] for row in range(12)]
    assert all(box.y0 > place + 4 for box, place in zip(boxes, places, strict=True))
    assert all(box.y1 < place - 4 for box, place in zip(boxes[1:], places, strict=False))
    assert all(axes.get_window_extent().x1 > box.x1 for box in boxes)


def test_an_axis_places_its_ends_at_0_and_1_and_far_numbers_by_their_logarithms():
    for logarithmic, middle in ((True, 1.0), (False, 5.05)):
        axis = Axis("ε", (0.1, 1.0, 10.0), logarithmic)
        assert (axis.position(0.1), axis.position(10.0)) == (0, 1)
        assert axis.position(middle) == pytest.approx(0.5)
        for share in (0.0, 0.25, -0.1):
            assert axis.position(axis.shifted(middle, share)) == pytest.approx(0.5 + share)
    for values, logarithmic in (((50.0, 100.0, math.inf, 80.0), False), ((1.0, 10.0), True), ((0.0, 10.0), False)):
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


MANY = [f"v-{name}" for name in "abcdefghijkl"]


def look(of):
    return tuple(of.line[name] for name in ("color", "marker", "linestyle"))


def test_legend_marks_what_is_not_private_and_only_a_figure_without_any_guarantee_is_watermarked():
    figure = figures(rows(variants=("soft_vote", "soft_vote-off")), "t")["accuracy"]
    assert legend(figure)[0] == "soft_vote (default)"
    assert legend(figure)[1:] == ["off (NON-PRIVATE)", "pooled (NON-PRIVATE)", "individual (NON-PRIVATE)"]
    assert not watermarked(figure)
    assert watermarked(figures(rows(variants=("soft_vote-off",)), "t")["accuracy"])
    claimed = [row for row in ratio_rows() if row["unit"] == "none"]
    assert all(map(watermarked, figures(claimed, "t").values()))


def test_every_variant_looks_different_and_the_first_have_colours_of_their_own():
    summaries = summarise(rows(variants=[f"v{i}" for i in range(40)], references=False))
    found = looks(summaries)
    assert len({look(one) for one in found.values()}) == 40
    assert len({found[name].line["color"] for name in chosen(summaries)}) == len(COLOURS)
    made = rows(variants=[f"v{i}" for i in range(28)])
    made += [row | {"variant": f"{row['variant']}2"} for row in made if row["variant"] in ("pooled", "individual")]
    without_colours = [(str(one.line["linestyle"]), one.line["marker"]) for one in looks(summarise(made)).values()]
    assert len(without_colours) == len(set(without_colours)) == 32
    for count in (7, 9, 14):
        summaries = summarise(rows(variants=MANY[: count - 2]))
        found = looks(summaries)
        for names in groups(summaries):
            coloured = [found[name].line["color"] for name in names if not found[name].reference]
            assert len(set(coloured)) == len(coloured)


def test_what_has_no_guarantee_has_a_look_that_says_so_everywhere():
    for epsilons in ((0.5, 1.0), (1.0,)):
        for figure in figures(ratio_rows(epsilons=epsilons), "t").values():
            assert not watermarked(figure)  # others have a guarantee
            assert "hollow markers: NON-PRIVATE" in figure.legends[0].get_title().get_text().replace("\n", " ")
    found = hollow(figures(ratio_rows(), "t")["l1"])
    assert [name for name, is_hollow in found.items() if is_hollow] == ["published_a (NON-PRIVATE)"]
    assert "hollow" not in figures(ratio_rows(("x",)), "t")["l1"].legends[0].get_title().get_text()
    first, *_ = summarise(rows())
    claims = replace(first, unit="none")
    found = looks([first, claims])
    assert found == looks([claims])
    assert found[first.variant].hollow
    assert chosen([first, claims]) == [first.variant]


def test_only_the_first_and_what_is_published_have_bands():
    assert bands(figures(rows(variants=["x", "x-a", "x-b", "x-published_c"]), "t")["accuracy"]) == [2]
    assert bands(figures(ratio_rows(("x", "x-published")), "t")["l1-share"]) == [2]


def test_references_are_grey_and_dashed_and_take_no_colour_from_variants():
    with_references, alone = looks(summarise(rows())), looks(summarise(rows(references=False)))
    assert {name: style for name, style in with_references.items() if not style.reference} == alone
    for name in ("pooled", "individual"):
        style = with_references[name]
        assert (style.reference, style.unprotected, style.band, style.hollow) == (True, True, False, False)
        assert style.line["marker"] == ""
        assert len({style.line["color"][i : i + 2] for i in (1, 3, 5)}) == 1  # grey


def test_first_are_the_default_its_best_rival_what_is_published_and_the_baselines():
    made = rows(variants=["x", *MANY[:6], "y-published", "y-off"])
    for row in made:
        row["value"] = 0.99 if row["variant"] == "v-e" and row["epsilon"] == 1.0 else row["value"]
    summaries = summarise(made)
    assert chosen(summaries) == ["x", "v-a", "v-b", "v-e", "y-published", "pooled"]
    assert chosen(summaries, 3) == ["x", "v-e", "y-published"]
    assert chosen([], 6) == []
    assert chosen([one for one in summaries if one.non_private]) == ["y-off", "pooled", "individual"]
    assert chosen(summarise(ratio_rows(("x", "x-a", "x-b", "x-c"))), 2) == ["x", "x-a"]  # of errors the least is best


@pytest.mark.parametrize("count", [1, 6, 7, 12, 14])
def test_groups_hold_every_variant_and_none_is_crowded(count):
    summaries = summarise(rows(variants=["x", *MANY][: max(count - 2, 1)]))
    names = {one.variant for one in summaries}
    found = groups(summaries)
    assert bool(found) is (len(names) > MOST_CURVES)
    if found:
        assert set().union(*found) == names
        assert all(len(part) <= MOST_CURVES and {"x", "pooled"} <= set(part) for part in found)
        assert max(map(len, found)) - min(map(len, found)) <= len(found)
        assert not any(set(a) & set(b) - {"x", "pooled"} for a, b in combinations(found, 2))


def test_colours_can_be_told_apart_without_red_or_green_or_blue_and_neighbours_by_lightness():
    """With the matrices for full deuteranopia, protanopia and tritanopia of Machado et al. 2009."""
    blind = (
        ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
        ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
        ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
    )
    colours = [[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in COLOURS]
    for matrix in blind:
        linear = [[(part / 255) ** 2.2 for part in colour] for colour in colours]
        seen = [[sum(a * b for a, b in zip(line, one, strict=True)) for line in matrix] for one in linear]
        assert min(math.dist(a, b) for a, b in combinations(seen, 2)) > 0.1
    lightness = [0.2126 * red + 0.7152 * green + 0.0722 * blue for red, green, blue in colours]
    assert min(abs(one - other) for one, other in pairwise(lightness)) > 20


def test_a_single_epsilon_has_a_row_per_variant_and_for_what_is_only_claimed_and_breaks_no_mark():
    (axes,) = figures(rows(epsilons=(1.0,)), "t")["accuracy"].axes
    names = ["soft_vote (default)", "soft_vote gaussian", "soft_vote published", "majority_vote"]
    assert [text.get_text() for text in axes.texts] == names
    assert axes.get_xlabel() == "accuracy at ε = 1"
    name = "x-published_mechanism-of-many-words"
    (axes,) = figures(ratio_rows(("x", name), (1.0,)), "t")["l1"].axes
    assert [text.get_text() for text in axes.texts] == ["x (default)", "published_mechanism (NON-PRIVATE)"]
    (axes,) = figures(ratio_rows(("x", "x-published_" + "very_" * 30), (1.0,)), "t")["l1"].axes
    text = axes.texts[1].get_text()
    assert len(text) < 50
    assert text.endswith("… (NON-PRIVATE)")


@pytest.mark.slow
@pytest.mark.parametrize(
    "made",
    [
        rows(),
        rows(epsilons=(1.0,)),
        rows(epsilons=tuple(np.geomspace(0.011, 97.3, 30))),
        rows(variants=[f"{'very-' * 30}long-{i}" for i in range(15)]),
        rows(settings=[{"parties.count": str(n)} for n in (10, 20, 30, 40, 50)]),
    ],
)
def test_nothing_overlaps(made):
    figure = figures(made, "title")["accuracy"]
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert figure.bbox.x0 - 1 <= box.x0 < box.x1 <= figure.bbox.x1 + 1
    panels = [axes.get_tightbbox() for axes in figure.axes]
    assert not any(box.overlaps(panel) for panel in panels)
    assert not any(a.overlaps(b) for i, a in enumerate(panels) for b in panels[:i])
    assert min(axes.get_window_extent().height for axes in figure.axes) > 100
    for axes in figure.axes:
        labels = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_visible()]
        assert all(left.x1 < right.x0 for left, right in pairwise(labels))


@pytest.mark.parametrize("count", [2, pytest.param(9, marks=pytest.mark.slow)])
def test_the_explanation_is_not_cropped(count):
    figure = figures(rows(variants=[f"v{i}" for i in range(count)]), "t")["accuracy"]
    figure.draw_without_rendering()
    box = figure.legends[0].get_title().get_window_extent()
    assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1


@pytest.mark.slow
@pytest.mark.parametrize(("epsilons", "claiming"), [((1.0,), 0), ((1.0,), 12), ((0.1, 1.0), 1), ((0.1, 1.0), 4)])
@pytest.mark.parametrize("settings", [({},), tuple({"parties.count": str(n)} for n in (1, 2, 3, 4))])
def test_the_watermark_is_not_cropped_and_hides_no_label(epsilons, claiming, settings):
    made = rows(epsilons, [*(f"v{i}" for i in range(claiming)), "x-off"], settings)
    made = [row | {"unit": "none"} for row in made]
    for figure in figures(made, "t").values():
        figure.draw_without_rendering()
        (mark,) = [text for text in figure.texts if text.get_text() == "NON-PRIVATE"]
        box = mark.get_window_extent()
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1
        assert not box.overlaps(figure.legends[0].get_window_extent())


def test_references_alone_have_a_panel_to_stand_in_and_one_at_a_single_swept_value_a_marker():
    (axes,) = figures(rows(variants=("x-off",), references=False), "t")["accuracy"].axes
    axes.figure.draw_without_rendering()
    assert axes.get_window_extent().height / axes.figure.dpi > 0.5
    (line,) = axes.lines
    assert axes.get_xlim()[0] < line.get_xdata()[0] < axes.get_xlim()[1]
    made = rows(variants=("v",), settings=[{"parties.count": "10"}, {"parties.count": "20"}])
    made = [row for row in made if not (row["variant"] == "pooled" and row["parties.count"] == "20")]
    (axes,) = figures(made, "t")["accuracy-parties.count"].axes
    (point,) = [line for line in axes.lines if list(line.get_xdata()) == [10.0] and line.get_linestyle() != "None"]
    assert point.get_marker() == "s"


@pytest.mark.slow
def test_both_files_of_a_figure_are_arranged_alike(tmp_path):
    draw(rows(), tmp_path / "a", "t")
    figure = figures(rows(), "t")["accuracy"]
    with styled():
        figure.savefig(tmp_path / "alone.svg", metadata={"Date": None, "Creator": None})

    def panel(path):
        text = path.read_text()
        numbers = re.search(r'<g id="patch_2">\s*<path d="([^"]*)"', text)[1]
        return [float(n) for n in re.findall(r"-?[\d.]+", numbers)]

    assert panel(tmp_path / "a/accuracy.svg") == pytest.approx(panel(tmp_path / "alone.svg"), abs=3)


@pytest.mark.slow
@pytest.mark.parametrize("epsilons", [(0.1, 1.0, 10.0), (1.0,)])
def test_squared_errors_of_several_magnitudes_are_told_apart(epsilons):
    far = [row for row in squared_errors(1.0, 1e6) if row["epsilon"] in epsilons]
    (axes,) = figures(far, "t")["mse"].axes
    scale, limits = (axes.get_yscale(), axes.get_ylim()) if len(epsilons) > 1 else (axes.get_xscale(), axes.get_xlim())
    assert scale == "log"
    low, high = (edge(row["value"] for row in far) for edge in (min, max))
    assert 0.3 * low < limits[0] < 1.5 * low  # quantiles of single releases lie within all of them
    assert 0.7 * high < limits[1] < 3 * high
    axes.figure.draw_without_rendering()
    near = [row for row in squared_errors(1.0, 2.0) if row["epsilon"] in epsilons]
    (axes,) = figures(near, "t")["mse"].axes
    assert (axes.get_yscale(), axes.get_xscale())[len(epsilons) == 1] == "linear"


def test_an_error_is_never_below_zero_and_other_metrics_never_on_a_logarithmic_scale():
    made = [row | {"value": row["value"] - 0.1} for row in ratio_rows(("x",))]
    for figure in figures(made, "t").values():
        assert figure.axes[0].get_ylim()[0] >= 0
    made = [row | {"metric": "accuracy"} for row in squared_errors(1.0, 1e6)]
    (axes,) = figures(made, "t")["accuracy"].axes
    assert axes.get_yscale() == "linear"
