"""What the figures show, that nothing in them overlaps, and that equal rows give equal files."""

import itertools
import math
import re
import xml.etree.ElementTree as ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.collections import FillBetweenPolyCollection
from PIL import Image

from scenarios.reports.figures import draw, figures
from scenarios.reports.panels import styled
from scenarios.reports.summary import summarise

VARIANTS = ("soft_vote", "soft_vote-gaussian", "soft_vote-output-published-regularisation=0.0001", "majority_vote")


def rows(epsilons=(0.1, 1.0, 10.0), variants=VARIANTS, settings=({},), metrics=("accuracy",), references=True):
    made = []

    def add(variant, epsilon, split, noise, value, setting):
        made.extend(
            {
                "scenario": "s", "protocol": variant.split("-")[0], "variant": variant,
                "default": int(variant == variants[0]), "epsilon": epsilon, "delta": 0.0,
                "unit": "none" if math.isinf(epsilon) else "party",
                "split": split, "noise": noise, "metric": metric, "value": value, **setting,
            }
            for metric in metrics
        )  # fmt: skip

    for place, setting in enumerate(settings):
        for i, variant in enumerate(variants):
            for epsilon in (math.inf,) if variant.endswith("off") else epsilons:
                for split in range(3):
                    for noise in range(2):
                        value = 0.8 / (1 + math.exp(i - min(epsilon, 9.0) / 3)) + split / 100 + noise / 50 + place / 40
                        add(variant, epsilon, split, noise, value, setting)
        for split in range(3) if references else ():
            add("pooled", math.inf, split, 0, 0.9 + split / 1000, setting)
            add("individual", math.inf, split, 0, 0.3, setting)
    return made


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def watermarked(figure):
    return any(text.get_text() == "NON-PRIVATE" for text in figure.texts)


def test_curves_are_the_means_over_a_logarithmic_axis():
    made = rows()
    (axes,) = figures(made, "t")["accuracy"].axes
    assert axes.get_xscale() == "log"
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0.1", "1", "10"]
    curves = [line for line in axes.lines if line.get_marker() in "os^Dv" and len(line.get_xdata()) == 3]
    assert len(curves) == len(VARIANTS)
    summaries = summarise(made)
    for line, summary in zip(curves, summaries, strict=False):
        assert line.get_ydata() == pytest.approx([spread.mean for spread in summary.by_epsilon.values()])
        assert np.log10(np.array(line.get_xdata(), dtype=float)) == pytest.approx([-1, 0, 1], abs=0.07)
    widths = [line.get_linewidth() for line in curves]
    assert widths[0] > max(widths[1:])
    bands = [patch for patch in axes.collections if patch.get_alpha() is not None]
    for band, summary in zip(bands, summaries, strict=False):
        heights = band.get_paths()[0].vertices[:, 1]
        assert heights.min() == pytest.approx(min(s.low for s in summary.by_epsilon.values()))
        assert heights.max() == pytest.approx(max(s.high for s in summary.by_epsilon.values()))
    levels = [line.get_ydata()[0] for line in axes.lines if list(line.get_xdata()) == [0, 1]]
    assert levels == pytest.approx([0.901, 0.3])


def test_legend_marks_the_default_and_what_is_not_private():
    figure = figures(rows(), "t")["accuracy"]
    assert legend(figure)[0] == "soft_vote (default)"
    assert legend(figure)[-2:] == ["pooled (NON-PRIVATE)", "individual (NON-PRIVATE)"]
    assert not watermarked(figure)


def test_noise_off_marks_the_whole_figure():
    figure = figures(rows(variants=("soft_vote", "soft_vote-off")), "t")["accuracy"]
    assert watermarked(figure)
    assert "soft_vote-off (NON-PRIVATE)" in legend(figure)


def test_every_variant_looks_different():
    figure = figures(rows(variants=[f"v{i}" for i in range(20)], references=False), "t")["accuracy"]
    looks = {(line.get_color(), line.get_marker(), line.get_linestyle()) for line in figure.legends[0].get_lines()}
    assert len(looks) == 20


def test_one_epsilon_gives_a_row_per_variant():
    (axes,) = figures(rows(epsilons=(1.0,)), "t")["accuracy"].axes
    assert [label.get_text().replace("\n", "") for label in axes.get_yticklabels()] == [
        "soft_vote (default)", *VARIANTS[1:],
    ]  # fmt: skip
    assert axes.get_xlabel() == "accuracy at ε = 1"


@pytest.mark.parametrize("variants", [(), ("soft_vote-off",)])
def test_references_alone_can_be_drawn(variants, tmp_path):
    assert draw(rows(variants=variants or ("x-off",)), tmp_path, "t")


def test_a_single_release_can_be_drawn(tmp_path):
    only = [row for row in rows(references=False) if row["split"] == 0 and row["noise"] == 0]
    assert len(draw(only[:1], tmp_path, "t")) == 2
    assert len(draw(only, tmp_path, "t")) == 2


def test_swept_numbers_have_a_panel_each_and_a_figure_at_the_middle_epsilon():
    made = rows(settings=[{"parties.count": "10"}, {"parties.count": "100"}, {"parties.count": "1000"}])
    drawn = figures(made, "t")
    assert list(drawn) == ["accuracy", "accuracy-parties.count"]
    titles = [axes.get_title() for axes in drawn["accuracy"].axes]
    assert titles == ["parties.count = 10", "parties.count = 100", "parties.count = 1000"]
    (axes,) = drawn["accuracy-parties.count"].axes
    assert axes.get_xscale() == "log"
    assert "ε = 1" in drawn["accuracy-parties.count"].get_suptitle()
    curve = next(line for line in axes.lines if line.get_marker() == "o")
    wanted = [s.by_epsilon[1.0].mean for s in summarise(made) if s.variant == "soft_vote"]
    assert curve.get_ydata() == pytest.approx(wanted)


def test_swept_texts_have_panels_only():
    made = rows(settings=[{"parties.partition": "iid"}, {"parties.partition": "dirichlet=0.5"}])
    assert list(figures(made, "t")) == ["accuracy"]


def test_options_of_a_protocol_are_no_settings():
    made = rows(settings=[{"protocols.regularisation": "0.1"}])
    (axes,) = figures(made, "t")["accuracy"].axes
    assert axes.get_title() == ""


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


def test_files_are_deterministic_and_leave_no_global_state(tmp_path):
    made = rows(metrics=("accuracy", "balanced_accuracy", "auc"))
    first = draw(made, tmp_path / "a", "t")
    assert [path.name for path in first] == [
        "accuracy.png", "accuracy.svg", "balanced_accuracy.png", "balanced_accuracy.svg",
    ]  # fmt: skip
    with matplotlib.rc_context({"font.size": 30, "savefig.dpi": 40, "axes.facecolor": "red"}):
        before = dict(matplotlib.rcParams)
        second = draw(made, tmp_path / "b", "t")
        assert dict(matplotlib.rcParams) == before
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    with Image.open(first[0]) as image:
        assert image.info["dpi"][0] >= 150


def test_svg_stands_alone(tmp_path):
    draw(rows(), tmp_path, "t")
    text = (tmp_path / "accuracy.svg").read_text()
    tree = ElementTree.fromstring(text)
    links = [value for node in tree.iter() for name, value in node.attrib.items() if name.endswith("href")]
    assert links
    assert all(link.startswith("#") for link in links)
    assert "<script" not in text


def test_names_are_text_whatever_they_spell(tmp_path):
    made = rows(variants=("soft_vote", r"$\frac{$", "<b>--></b>"))
    drawn = figures(made, r"$\undefined{ <script>")
    assert r"$\frac{$" in legend(drawn["accuracy"])
    draw(made, tmp_path, r"$\undefined{ <script>")
    ElementTree.fromstring((tmp_path / "accuracy.svg").read_text())


def test_no_rows_no_figures(tmp_path):
    assert draw([], tmp_path / "none", "t") == []


def bands(figure):
    return [len([c for c in axes.collections if isinstance(c, FillBetweenPolyCollection)]) for axes in figure.axes]


def test_in_a_crowd_only_the_default_and_each_protocol_s_first_published_variant_have_bands():
    few = rows(variants=[f"v{i}" for i in range(8)])
    assert bands(figures(few, "t")["accuracy"]) == [8]
    published = ["a-published", "b-output-published-x=1", "b-output-published-x=2"]
    many = rows(variants=["default", *(f"v{i}" for i in range(5)), *published])
    figure = figures(many, "t")["accuracy"]
    assert bands(figure) == [3]
    assert (
        "band, of the default and each protocol's first published variant" in figure.legends[0].get_title().get_text()
    )
    caps = [line for line in figure.axes[0].lines if line.get_marker() == "_"]
    assert len(caps) >= 2 * 9  # both ends of every curve's intervals


@pytest.mark.parametrize("count", [2, 9])
def test_the_explanation_is_not_cropped(count):
    figure = figures(rows(variants=[f"v{i}" for i in range(count)]), "t")["accuracy"]
    figure.draw_without_rendering()
    box = figure.legends[0].get_title().get_window_extent()
    assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1


@pytest.mark.parametrize("epsilons", [(1.0,), (0.1, 1.0)])
@pytest.mark.parametrize("private", [0, 1, 4, 12])
@pytest.mark.parametrize("settings", [({},), tuple({"parties.count": str(n)} for n in (1, 2, 3, 4))])
def test_the_watermark_is_not_cropped_and_hides_no_label(epsilons, private, settings):
    made = rows(epsilons, [*(f"v{i}" for i in range(private)), "x-off"], settings)
    for figure in figures(made, "t").values():
        figure.draw_without_rendering()
        (mark,) = [text for text in figure.texts if text.get_text() == "NON-PRIVATE"]
        box = mark.get_window_extent()
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1
        assert not box.overlaps(figure.legends[0].get_window_extent())


def inked(path):
    """How many pixels are neither white nor grey."""
    with Image.open(path) as image:
        values = np.asarray(image.convert("RGB"), dtype=int)
    return int((np.ptp(values, axis=2) > 60).sum())


@pytest.mark.parametrize("made", [rows(references=False, variants=("v",))[:1], rows((1.0,), ("v",), references=False)])
def test_a_single_point_can_be_seen(made, tmp_path):
    draw(made, tmp_path, "t")
    assert inked(tmp_path / "accuracy.png") > 50


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


SHARES = (0.1, 0.25, 0.9)


def ratio_rows(variants=("x", "x-published_a", "x-off"), epsilons=(0.5, 1.0, 2.0), settings=({},), shares=SHARES):
    """Errors in class ratios, smallest at a share of .25 and epsilon 2; those of x-published_a are no guarantee."""
    made = []
    for setting in settings:
        for v, variant in enumerate((*variants, "pooled")):
            reference = variant in ("x-off", "pooled")
            for epsilon in (math.inf,) if reference else epsilons:
                for split in range(3):
                    base = {
                        "scenario": "s", "protocol": variant.split("-")[0], "variant": variant, "default": int(v == 0),
                        "epsilon": epsilon, "delta": 0.0, "split": split, "noise": 0, **setting,
                        "unit": "none" if reference or "published" in variant else "label",
                    }  # fmt: skip
                    errors = [0.1 + 0.1 * v + abs(q - 0.25) / min(epsilon, 9) + split / 100 for q in shares]
                    made.append({**base, "metric": "l1", "value": float(np.mean(errors))})
                    made += [
                        {**base, "metric": f"l1_at_{q:g}", "value": error}
                        for q, error in zip(shares, errors, strict=True)
                    ]
    return made


def hollow(figure):
    """Whether markers are hollow, by the first line of the legend's entries."""
    handles = zip(legend(figure), figure.legends[0].get_lines(), strict=True)
    return {name: line.get_markerfacecolor() == "white" for name, line in handles}


def test_errors_in_class_ratios_are_drawn_against_epsilon_and_against_the_share():
    drawn = figures(ratio_rows(), "t")
    assert list(drawn) == ["l1", "l1-share"]
    (axes,) = drawn["l1"].axes
    assert (axes.get_ylabel(), axes.get_xscale()) == ("L1 error", "log")
    (axes,) = drawn["l1-share"].axes
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("L1 error", "share of the varied class")
    assert drawn["l1-share"].get_suptitle() == "t, ε = 1"
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0.1", "0.25", "0.9"]
    curve = next(line for line in axes.lines if line.get_marker() == "o")
    assert curve.get_ydata() == pytest.approx([0.11 + abs(q - 0.25) for q in SHARES])  # at epsilon 1
    assert list(curve.get_xdata()) == list(SHARES)
    assert not [line for line in axes.lines if line.get_marker() in ("_", "|")]  # no bars, which would hide the curves
    assert "bars" not in drawn["l1-share"].legends[0].get_title().get_text()
    dashed = [line for line in axes.lines if line.get_linestyle() == "--"]
    assert len(dashed) == 3  # two references, and what is only claimed
    assert dashed[1].get_ydata() == pytest.approx([0.31 + abs(q - 0.25) / 9 for q in SHARES])


def test_what_is_only_claimed_has_hollow_markers_and_marks_the_figure():
    for epsilons in ((0.5, 1.0), (1.0,)):
        for figure in figures(ratio_rows(epsilons=epsilons), "t").values():
            assert watermarked(figure)
            assert "hollow markers: NON-PRIVATE" in figure.legends[0].get_title().get_text()
    found = hollow(figures(ratio_rows(), "t")["l1"])
    assert [name for name, is_hollow in found.items() if is_hollow] == ["x-published_a (NON-PRIVATE)"]
    assert "hollow" not in figures(ratio_rows(("x",)), "t")["l1"].legends[0].get_title().get_text()


def test_a_single_epsilon_has_a_row_for_what_is_only_claimed_and_breaks_no_mark():
    name = "x-published_mechanism-of-many-words"
    (axes,) = figures(ratio_rows(("x", name), (1.0,)), "t")["l1"].axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels[0] == "x (default)"
    assert labels[1].replace("\n", "").startswith(name[:20])
    assert "NON-PRIVATE" in labels[1]


def test_an_error_is_never_below_zero():
    made = ratio_rows(("x",))
    for row in made:
        row["value"] -= 0.1
    for figure in figures(made, "t").values():
        assert figure.axes[0].get_ylim()[0] >= 0


def test_shares_have_a_panel_for_each_setting_and_one_share_has_no_figure():
    made = ratio_rows(settings=[{"parties.rows": "10"}, {"parties.rows": "20"}])
    drawn = figures(made, "t")
    assert list(drawn) == ["l1", "l1-parties.rows", "l1-share"]
    assert [axes.get_title() for axes in drawn["l1-share"].axes] == [
        "parties.rows = 10",
        "parties.rows = 20",
    ]
    assert list(figures(ratio_rows(shares=(0.5,)), "t")) == ["l1"]


def test_in_a_crowd_every_spelling_of_published_counts():
    many = ratio_rows(("x", *(f"x-{i}" for i in range(8)), "x-published_b", "x-published_c"))
    assert bands(figures(many, "t")["l1-share"]) == [2]


def squared_errors(*scales):
    """Rows whose values are squared errors, those of variant i times scales[i]."""
    made = rows(metrics=("mse",), variants=VARIANTS[: len(scales)], references=False)
    factors = dict(zip(VARIANTS, scales, strict=False))
    return [row | {"value": row["value"] * factors[row["variant"]]} for row in made]


def test_squared_errors_have_a_figure_against_epsilon_and_swept_numbers():
    made = rows(metrics=("mse",), settings=({"parties.count": "10"}, {"parties.count": "100"}))
    drawn = figures(made, "t")
    assert set(drawn) == {"mse", "mse-parties.count"}
    for figure in drawn.values():
        assert figure.axes[0].get_ylabel() == "mean squared error"
    (axes,) = drawn["mse-parties.count"].axes
    assert (axes.get_xlabel(), axes.get_yscale()) == ("parties.count", "linear")


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


def round_rows(rounds=(1, 2, 3), variants=VARIANTS[:2], settings=({},), epsilons=(0.5, 1.0, 4.0)):
    """Accuracies after each round, larger by a tenth in each of them, beside those of other variants."""
    made = rows(epsilons, variants, settings)
    made += [
        {**row, "variant": "constant", "protocol": "constant", "value": 0.2}
        for row in made
        if row["variant"] == "pooled"
    ]
    learned = [row for row in made if row["variant"] in variants]
    return made + [
        {**row, "metric": f"accuracy_at_round_{t}", "value": row["value"] + t / 10} for t in rounds for row in learned
    ]


def test_accuracies_after_rounds_are_drawn_beside_the_baselines():
    made = round_rows()
    drawn = figures(made, "t")
    assert list(drawn) == ["accuracy", "accuracy-round"]
    figure = drawn["accuracy-round"]
    (axes,) = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel(), figure.get_suptitle()) == ("round", "accuracy", "t, ε = 1")
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1", "2", "3"]
    assert legend(figure) == [
        "soft_vote (default)", "soft_vote-gaussian",
        "pooled (NON-PRIVATE)", "individual (NON-PRIVATE)", "constant (NON-PRIVATE)",
    ]  # fmt: skip
    assert not watermarked(figure)
    curve = next(line for line in axes.lines if line.get_marker() == "o")
    means = [s.by_epsilon[1.0].mean for s in summarise(made) if s.variant == "soft_vote"]
    assert curve.get_ydata() == pytest.approx([means[0] + t / 10 for t in (1, 2, 3)])
    levels = [line.get_ydata()[0] for line in axes.lines if list(line.get_xdata()) == [0, 1]]
    assert levels == pytest.approx([0.901, 0.3, 0.2])


def test_rounds_have_a_panel_for_each_setting_and_one_round_has_no_figure():
    made = round_rows(settings=[{"data.source": "A"}, {"data.source": "B"}])
    assert [axes.get_title() for axes in figures(made, "t")["accuracy-round"].axes] == [
        "data.source = A", "data.source = B",
    ]  # fmt: skip
    assert list(figures(round_rows((1,)), "t")) == ["accuracy"]


def test_equal_rows_give_equal_learning_curves(tmp_path):
    made = [row for row in round_rows() if "round" in row["metric"]]
    first, second = (draw(made, tmp_path / name, "t") for name in "ab")
    assert [path.name for path in first] == ["accuracy-round.png", "accuracy-round.svg"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_fewer_rounds_end_a_curve_early():
    made = round_rows((1, 2, 3, 4))
    made = [row for row in made if not (row["variant"] == VARIANTS[1] and row["metric"].endswith(("3", "4")))]
    (axes,) = figures(made, "t")["accuracy-round"].axes
    lengths = [len(line.get_xdata()) for line in axes.lines if line.get_marker() in ("o", "s")]
    assert lengths == [4, 2]


def missing_rows(epsilons, settings=({},)):
    """As `rows`, but that the second variant keeps four times the epsilon that it aims at, and more in later splits."""
    made = []
    for row in rows(epsilons, VARIANTS[:2], settings):
        made.append(row)
        if row["variant"] == VARIANTS[1]:
            aim = row["epsilon"]
            row["epsilon"] = 4 * aim + row["split"] / 10
            made.append({**row, "metric": "aimed_epsilon", "value": aim})
    return made


def test_what_keeps_another_epsilon_is_drawn_where_it_belongs():
    figure = figures(missing_rows((0.1, 1.0)), "t")["accuracy"]
    (axes,) = figure.axes
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0.1", "1", "4.2"]
    placed = {line.get_marker(): line.get_xdata() for line in axes.lines if len(line.get_xdata()) == 2}
    assert placed["s"] == pytest.approx([0.6, 4.2], rel=0.2)
    assert placed["o"] == pytest.approx([0.1, 1.0], rel=0.2)
    assert not any("keeps" in name for name in legend(figure))


def test_at_one_epsilon_the_name_says_what_is_kept():
    (axes,) = figures(missing_rows((1.0,)), "t")["accuracy"].axes
    assert [label.get_text().replace("\n", " ") for label in axes.get_yticklabels()] == [
        "soft_vote (default)", "soft_vote-gaussian keeps ε = 4.2",
    ]  # fmt: skip
    assert axes.get_xlabel() == "accuracy at ε = 1"
    made = missing_rows((0.1, 1.0, 2.0), [{"parties.count": "10"}, {"parties.count": "20"}])
    for row in made:
        if row["parties.count"] == "20" and row["epsilon"] > 4:
            row["epsilon"] += 1
    drawn = figures(made, "t")["accuracy-parties.count"]
    assert "ε = 1" in drawn.get_suptitle()
    assert legend(drawn)[1] == "soft_vote-gaussian\nkeeps ε = 4.2 to 5.2"


def test_a_swept_number_that_nothing_has_at_the_middle_epsilon_has_no_figure():
    made = rows((1.0, 100.0), settings=({"parties.count": 10}, {"parties.count": 20}), references=False)
    apart = rows((10.0,), settings=({"rows": 5},), references=False)
    assert list(figures(made + apart, "two runs")) == ["accuracy"]
