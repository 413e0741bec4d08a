"""Files of a figure for a paper: their sizes, fonts and looks."""

import itertools
import math
from dataclasses import replace
from pathlib import Path

import matplotlib.image
import pytest
from support.figure_rows import rows

from federation.contract.errors import InputError
from scenarios.reports.axes import Axis, Curve, Panel, Plot, looks, styled
from scenarios.reports.paper_figure import drawn, inches, write
from scenarios.reports.summary import Spread, summarise

PLAIN, *_ = summarise(rows(variants=("v",), references=False))
PLAIN_LOOK = looks([PLAIN])["v"]
CLAIMING = looks([replace(PLAIN, unit="none")])["v"]
REFERENCE = looks(summarise(rows(variants=("v",))))["pooled"]


def curve(name, x=(0.1, 1.0, 10.0), *, look=PLAIN_LOOK, scale=1.0):
    points = {
        value: Spread.of({split: [scale * (place + 1) / 4 + split / 100] for split in range(3)})
        for place, value in enumerate(x)
    }
    return Curve(name, look, points)


def plot(*curves, metric="accuracy"):
    return Plot((Panel("", curves),), Axis.of("ε", [value for one in curves for value in one.points]), metric)


FOUR = plot(
    curve("soft_vote"),
    curve("soft_vote-output", scale=0.8),
    curve("published", look=CLAIMING, scale=0.5),
    curve("pooled", (math.inf,), look=REFERENCE),
)


def shown(*arguments):
    with styled():
        figure = drawn(*arguments)
        figure.draw_without_rendering()
    return figure


def test_files_have_embedded_fonts_no_title_and_the_size_that_was_asked_for(tmp_path):
    paths = write(FOUR, tmp_path / "fig.1", ["pdf", "svg", "png"], "3.5x2.5", {"soft_vote": "Our method (ε)"})
    assert [path.name for path in paths] == ["fig.1.pdf", "fig.1.svg", "fig.1.png"]
    pdf, svg = paths[0].read_bytes(), paths[1].read_text()
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
    assert b"/MediaBox [ 0 0 252 180 ]" in pdf
    assert "<text" not in svg
    assert 'width="252pt" height="180pt"' in svg
    assert matplotlib.image.imread(paths[2]).shape[:2] == (1500, 2100)
    figure = shown(FOUR, 3.5, 2.5, {})
    assert not [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert figure.get_suptitle() == ""


def test_equal_plots_give_equal_files(tmp_path):
    first, second = (write(FOUR, tmp_path / name, ["pdf", "svg"]) for name in ("a", "b"))
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_what_protects_nobody_says_so_under_any_name():
    labels = {"soft_vote": "Our method", "published": "Theirs", "pooled": "Non-private pooling"}
    [legend] = shown(FOUR, 3.25, None, labels).legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "Our method",
        "soft_vote-output",
        "Theirs (non-private)",
        "Non-private pooling",
    ]
    hollow = [handle.get_markerfacecolor() == "white" for handle in legend.get_lines()]
    assert hollow == [False, False, True, False]


@pytest.mark.parametrize("size", ["column", "page"])
def test_the_legend_is_inside_the_figure_and_takes_nothing_from_the_axes(size):
    long = [curve("soft_vote-output-published-regularisation=0.0001-" + "gaussian-" * n) for n in range(5)]
    width, height = inches(size)
    heights = []
    for curves in (long[:1], long):
        figure = shown(plot(*curves), width, height, {})
        [legend] = figure.legends
        box = legend.get_window_extent()
        assert box.x0 >= 0
        assert box.x1 <= figure.bbox.width
        heights.append(figure.axes[0].get_window_extent().height / figure.dpi)
    assert heights == pytest.approx([heights[0]] * 2, abs=0.1)
    assert heights[0] > 1.2


def test_a_size_without_room_is_refused_with_one_that_has_it():
    many = plot(*(curve(f"a-rather-long-name-of-number-{number}") for number in range(6)))
    with pytest.raises(InputError, match=r"--size 3x1.6 leaves no room .* inches tall") as caught:
        shown(many, 3.0, 1.6, {})
    tall = float(str(caught.value).split("make it ")[1].split(" inches")[0])
    shown(many, 3.0, tall, {})


@pytest.mark.parametrize("size", ["colum", "3x", "3,5x2", "0.1x2", "3x900", "3x2in"])
def test_other_sizes_are_refused(size):
    with pytest.raises(InputError, match="--size must be column, page or WIDTHxHEIGHT"):
        inches(size)


def test_curves_are_the_means_and_bars_their_intervals():
    figure = shown(plot(curve("a"), curve("b", (math.inf,), look=REFERENCE)), 3.25, None, {})
    axes = figure.axes[0]
    line, _, [bars] = axes.containers[0]
    assert line.get_ydata() == pytest.approx([0.26, 0.51, 0.76])
    low, high = Spread.of({split: [0.25 + split / 100] for split in range(3)}).interval
    assert [end for _, end in bars.get_segments()[0]] == pytest.approx([low, high])
    assert axes.get_xscale() == "log"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0.1", "1", "10"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("ε", "accuracy")


def test_near_numbers_are_on_a_linear_axis_and_far_errors_on_a_logarithmic_one():
    axes = shown(plot(curve("a", (50.0, 80.0, 100.0))), 3.25, None, {}).axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "linear")
    axes = shown(plot(curve("a"), curve("b", scale=1000.0), metric="mse"), 3.25, None, {}).axes[0]
    assert axes.get_yscale() == "log"


def test_labels_of_near_ticks_do_not_touch():
    axes = shown(plot(curve("a", tuple(map(float, range(100, 160, 2))))), 3.25, None, {}).axes[0]
    boxes = [text.get_window_extent() for text in axes.get_xticklabels()]
    assert len(boxes) > 3
    assert all(one.x1 < other.x0 for one, other in itertools.pairwise(boxes))


def test_what_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(InputError, match="name another --out"):
        write(FOUR, tmp_path / "no" / "figure", ["png"])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk here that is always full")
def test_a_full_disk_is_named(tmp_path):
    (tmp_path / "figure.pdf").symlink_to("/dev/full")
    with pytest.raises(InputError, match=r"cannot write .*figure\.pdf: No space left on device; name another --out"):
        write(FOUR, tmp_path / "figure", ["pdf"])
