"""How curves are drawn side by side: nothing overlaps or is cropped, and scales suit what is measured."""

import itertools
import re

import numpy as np
import pytest
from support.figure_rows import legend, ratio_rows, rows, squared_errors, watermarked

from scenarios.reports.axes import styled
from scenarios.reports.figures import draw, figures


def test_only_a_figure_without_any_guarantee_is_watermarked():
    figure = figures(rows(variants=("soft_vote", "soft_vote-off")), "t")["accuracy"]
    assert not watermarked(figure)
    assert "off (NON-PRIVATE)" in legend(figure)
    assert watermarked(figures(rows(variants=("soft_vote-off",)), "t")["accuracy"])
    claimed = [row for row in ratio_rows() if row["unit"] == "none"]
    assert all(map(watermarked, figures(claimed, "t").values()))


def test_one_epsilon_gives_a_row_per_variant():
    (axes,) = figures(rows(epsilons=(1.0,)), "t")["accuracy"].axes
    names = ["soft_vote (default)", "soft_vote gaussian", "soft_vote published", "majority_vote"]
    assert [text.get_text() for text in axes.texts] == names
    assert axes.get_xlabel() == "accuracy at ε = 1"


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
        assert all(left.x1 < right.x0 for left, right in itertools.pairwise(labels))


@pytest.mark.parametrize("count", [2, 9])
def test_the_explanation_is_not_cropped(count):
    figure = figures(rows(variants=[f"v{i}" for i in range(count)]), "t")["accuracy"]
    figure.draw_without_rendering()
    box = figure.legends[0].get_title().get_window_extent()
    assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1


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


def test_references_alone_have_a_panel_to_stand_in():
    (axes,) = figures(rows(variants=("x-off",), references=False), "t")["accuracy"].axes
    axes.figure.draw_without_rendering()
    assert axes.get_window_extent().height / axes.figure.dpi > 0.5
    (line,) = axes.lines
    assert axes.get_xlim()[0] < line.get_xdata()[0] < axes.get_xlim()[1]


def test_a_reference_at_a_single_swept_value_has_a_marker():
    made = rows(variants=("v",), settings=[{"parties.count": "10"}, {"parties.count": "20"}])
    made = [row for row in made if not (row["variant"] == "pooled" and row["parties.count"] == "20")]
    (axes,) = figures(made, "t")["accuracy-parties.count"].axes
    (point,) = [line for line in axes.lines if list(line.get_xdata()) == [10.0] and line.get_linestyle() != "None"]
    assert point.get_marker() == "s"


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


def test_a_single_epsilon_has_a_row_for_what_is_only_claimed_and_breaks_no_mark():
    name = "x-published_mechanism-of-many-words"
    (axes,) = figures(ratio_rows(("x", name), (1.0,)), "t")["l1"].axes
    assert [text.get_text() for text in axes.texts] == ["x (default)", "published_mechanism (NON-PRIVATE)"]
    long = "x-published_" + "very_" * 30
    (axes,) = figures(ratio_rows(("x", long), (1.0,)), "t")["l1"].axes
    text = axes.texts[1].get_text()
    assert len(text) < 50
    assert text.endswith("… (NON-PRIVATE)")


def test_an_error_is_never_below_zero():
    made = ratio_rows(("x",))
    for row in made:
        row["value"] -= 0.1
    for figure in figures(made, "t").values():
        assert figure.axes[0].get_ylim()[0] >= 0


@pytest.mark.parametrize("epsilons", [(0.1, 1.0, 10.0), (1.0,)])
def test_squared_errors_of_several_magnitudes_are_told_apart(epsilons, tmp_path):
    far = [row for row in squared_errors(1.0, 1e6) if row["epsilon"] in epsilons]
    (axes,) = figures(far, "t")["mse"].axes
    scale, limits = (axes.get_yscale(), axes.get_ylim()) if len(epsilons) > 1 else (axes.get_xscale(), axes.get_xlim())
    assert scale == "log"
    low, high = (edge(row["value"] for row in far) for edge in (min, max))
    assert 0.3 * low < limits[0] < 1.5 * low  # quantiles of single releases lie within all of them
    assert 0.7 * high < limits[1] < 3 * high
    assert draw(far, tmp_path, "t")
    near = [row for row in squared_errors(1.0, 2.0) if row["epsilon"] in epsilons]
    (axes,) = figures(near, "t")["mse"].axes
    assert (axes.get_yscale(), axes.get_xscale())[len(epsilons) == 1] == "linear"


def test_other_metrics_are_never_on_a_logarithmic_scale():
    made = [row | {"metric": "accuracy"} for row in squared_errors(1.0, 1e6)]
    (axes,) = figures(made, "t")["accuracy"].axes
    assert axes.get_yscale() == "linear"
