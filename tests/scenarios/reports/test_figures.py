"""What the figures show, that nothing in them overlaps, and that equal rows give equal files.

Figures of the page: complete SVG that takes the page's colours, whatever variants are called.
"""

import re
import xml.etree.ElementTree as ElementTree

import matplotlib
import numpy as np
import pytest
from PIL import Image
from support.figure_rows import SHARES, VARIANTS, legend, ratio_rows, rows, watermarked

from scenarios.reports.figures import chart, draw, figures, plots
from scenarios.reports.summary import summarise


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
    for band, summary in zip(bands, [summaries[0], summaries[2]], strict=True):  # the default, and as published
        heights = band.get_paths()[0].vertices[:, 1]
        assert heights.min() == pytest.approx(min(s.low for s in summary.by_epsilon.values()))
        assert heights.max() == pytest.approx(max(s.high for s in summary.by_epsilon.values()))
    levels = [line.get_ydata()[0] for line in axes.lines if list(line.get_xdata()) == [0, 1]]
    assert levels == pytest.approx([0.901, 0.3])


def test_swept_numbers_have_a_panel_each_and_a_figure_at_the_middle_epsilon_and_texts_panels_only():
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
    swept = rows(settings=[{"parties.partition": "iid"}, {"parties.partition": "by=x"}])
    assert list(figures(swept, "t")) == ["accuracy"]
    (axes,) = figures(rows(settings=[{"protocols.regularisation": "0.1"}]), "t")["accuracy"].axes
    assert axes.get_title() == ""


def test_swept_numbers_have_a_figure_of_squared_errors_and_none_without_the_middle_epsilon():
    made = rows(metrics=("mse",), settings=({"parties.count": "10"}, {"parties.count": "100"}))
    drawn = figures(made, "t")
    assert set(drawn) == {"mse", "mse-parties.count"}
    for figure in drawn.values():
        assert figure.axes[0].get_ylabel() == "mean squared error"
    (axes,) = drawn["mse-parties.count"].axes
    assert (axes.get_xlabel(), axes.get_yscale()) == ("parties.count", "linear")
    made = rows((1.0, 100.0), settings=({"parties.count": 10}, {"parties.count": 20}), references=False)
    apart = rows((10.0,), settings=({"rows": 5},), references=False)
    assert list(figures(made + apart, "two runs")) == ["accuracy"]


@pytest.mark.slow
def test_files_are_deterministic_and_leave_no_global_state(tmp_path):
    made = round_rows((1, 2), VARIANTS[:1], metrics=("accuracy", "auc"))
    assert list(figures(rows(metrics=("accuracy", "balanced_accuracy", "auc")), "t")) == [
        "accuracy", "balanced_accuracy",
    ]  # fmt: skip
    first = draw(made, tmp_path / "a", "t")
    assert [path.name for path in first] == [
        "accuracy.png", "accuracy.svg", "accuracy-round.png", "accuracy-round.svg",
    ]  # fmt: skip
    with matplotlib.rc_context({"font.size": 30, "savefig.dpi": 40, "axes.facecolor": "red"}):
        before = dict(matplotlib.rcParams)
        second = draw(made, tmp_path / "b", "t")
        assert dict(matplotlib.rcParams) == before
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    with Image.open(first[0]) as image:
        assert image.info["dpi"][0] >= 150
    assert draw([], tmp_path / "none", "t") == []


def test_svg_stands_alone_and_names_are_text_whatever_they_spell(tmp_path):
    made = rows((1.0, 10.0), ("soft_vote", r"$\frac{$", "<b>--></b>"))
    assert r"$\frac{$" in legend(figures(made, r"$\undefined{ <script>")["accuracy"])
    draw(made, tmp_path, r"$\undefined{ <script>")
    text = (tmp_path / "accuracy.svg").read_text()
    links = [
        value for node in ElementTree.fromstring(text).iter() for name, value in node.attrib.items()
        if name.endswith("href")
    ]  # fmt: skip
    assert links
    assert all(link.startswith("#") for link in links)
    assert "<script" not in text


@pytest.mark.parametrize("made", [rows(references=False, variants=("v",))[:1], rows((1.0,), ("v",), references=False)])
def test_a_single_point_can_be_seen(made, tmp_path):
    draw(made, tmp_path, "t")
    with Image.open(tmp_path / "accuracy.png") as image:
        values = np.asarray(image.convert("RGB"), dtype=int)
    assert (np.ptp(values, axis=2) > 60).sum() > 50  # pixels that are neither white nor grey


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


def round_rows(rounds=(1, 2, 3), variants=VARIANTS[:2], settings=({},), epsilons=(0.5, 1.0, 4.0), **more):
    """Accuracies after each round, larger by a tenth in each of them, beside those of other variants."""
    made = rows(epsilons, variants, settings, **more)
    constant = {"variant": "constant", "protocol": "constant", "value": 0.2}
    made += [row | constant for row in made if row["variant"] == "pooled"]
    learned = [row for row in made if row["variant"] in variants and row["metric"] == "accuracy"]
    return made + [
        {**row, "metric": f"accuracy_at_round_{t}", "value": row["value"] + t / 10} for t in rounds for row in learned
    ]


def test_accuracies_after_rounds_are_drawn_beside_the_baselines_and_fewer_rounds_end_a_curve_early():
    made = round_rows()
    drawn = figures(made, "t")
    assert list(drawn) == ["accuracy", "accuracy-round"]
    figure = drawn["accuracy-round"]
    (axes,) = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel(), figure.get_suptitle()) == ("round", "accuracy", "t, ε = 1")
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["1", "2", "3"]
    assert legend(figure) == [
        "soft_vote (default)", "gaussian",
        "pooled (NON-PRIVATE)", "individual (NON-PRIVATE)", "constant (NON-PRIVATE)",
    ]  # fmt: skip
    assert not watermarked(figure)
    curve = next(line for line in axes.lines if line.get_marker() == "o")
    means = [s.by_epsilon[1.0].mean for s in summarise(made) if s.variant == "soft_vote"]
    assert curve.get_ydata() == pytest.approx([means[0] + t / 10 for t in (1, 2, 3)])
    levels = [line.get_ydata()[0] for line in axes.lines if list(line.get_xdata()) == [0, 1]]
    assert levels == pytest.approx([0.901, 0.3, 0.2])
    made = round_rows((1, 2, 3, 4))
    made = [row for row in made if not (row["variant"] == VARIANTS[1] and row["metric"].endswith(("3", "4")))]
    (axes,) = figures(made, "t")["accuracy-round"].axes
    assert [len(line.get_xdata()) for line in axes.lines if line.get_marker() in ("o", "s")] == [4, 2]


@pytest.mark.slow
def test_shares_and_rounds_have_a_panel_for_each_setting_and_a_single_one_has_no_figure():
    drawn = figures(ratio_rows(settings=[{"parties.rows": "10"}, {"parties.rows": "20"}]), "t")
    assert list(drawn) == ["l1", "l1-parties.rows", "l1-share"]
    assert [axes.get_title() for axes in drawn["l1-share"].axes] == ["parties.rows = 10", "parties.rows = 20"]
    assert list(figures(ratio_rows(shares=(0.5,)), "t")) == ["l1"]
    drawn = figures(round_rows(settings=[{"data.source": "A"}, {"data.source": "B"}]), "t")
    assert [axes.get_title() for axes in drawn["accuracy-round"].axes] == ["data.source = A", "data.source = B"]
    assert list(figures(round_rows((1,)), "t")) == ["accuracy"]


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


def test_what_keeps_another_epsilon_is_drawn_where_it_belongs_or_says_so_in_its_name():
    figure = figures(missing_rows((0.1, 1.0)), "t")["accuracy"]
    (axes,) = figure.axes
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0.1", "1", "4.2"]
    placed = {line.get_marker(): line.get_xdata() for line in axes.lines if len(line.get_xdata()) == 2}
    assert placed["s"] == pytest.approx([0.6, 4.2], rel=0.2)
    assert placed["o"] == pytest.approx([0.1, 1.0], rel=0.2)
    assert not any("keeps" in name for name in legend(figure))
    (axes,) = figures(missing_rows((1.0,)), "t")["accuracy"].axes
    assert [text.get_text() for text in axes.texts] == ["soft_vote (default)", "gaussian keeps ε = 4.2"]
    assert axes.get_xlabel() == "accuracy at ε = 1"
    made = missing_rows((0.1, 1.0, 2.0), [{"parties.count": "10"}, {"parties.count": "20"}])
    for row in made:
        if row["parties.count"] == "20" and row["epsilon"] > 4:
            row["epsilon"] += 1
    drawn = figures(made, "t")["accuracy-parties.count"]
    assert "ε = 1" in drawn.get_suptitle()
    assert legend(drawn)[1] == "gaussian\nkeeps ε = 4.2 to 5.2"


HOSTILE = "--></svg><script>'\" white #ffffff"


def made(found, name="accuracy"):
    return chart(name, plots(found)[name])


def texts(svg):
    return [node.text for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("}text")]


def test_a_panel_names_its_curves_and_its_axes_in_text():
    found = made(rows())
    (drawing,) = found.drawings
    assert {"accuracy", "ε", "0.1", "1", "10"} <= set(texts(drawing.svg))
    labels = [label for _, label in found.legend]
    assert labels[0] == "soft_vote (default)"
    assert set(re.findall("<title>(.*?)</title>", drawing.svg)) == set(labels)
    assert re.search(r"accuracy.*soft_vote.*soft_vote", drawing.svg)
    assert found.title == "Accuracy over ε"
    assert "bars: 95 % intervals of the mean (Student), with the splits as units" in found.caption


@pytest.mark.slow
def test_colours_that_the_page_sets_are_left_to_it():
    svg = made(rows()).drawings[0].svg
    styles = " ".join(re.findall('style="([^"]*)"', svg))
    assert set(re.findall(r"#[0-9a-f]{6}", styles)) == {"#0072b2", "#e69f00", "#d55e00", "#56b4e9"}
    assert {"var(--ink)", "var(--paper)", "var(--line)", "var(--soft)", "var(--grey-1)"} <= set(
        re.findall(r"var\([^)]*\)", styles)
    )
    for swatch, _ in made(rows()).legend:
        ElementTree.fromstring(swatch)
        assert "#ffffff" not in swatch


def test_hostile_names_are_text():
    for epsilons in ((1.0,), (1.0, 10.0)):
        found = made([row | {"protocol": "v"} for row in rows(epsilons, ("v", HOSTILE), references=False)])
        for drawing in found.drawings:
            tree = ElementTree.fromstring(drawing.svg)
            names = {node.tag.rpartition("}")[2] for node in tree.iter()}
            assert names <= {"svg", "defs", "g", "path", "use", "text", "title", "clipPath", "rect"}
            assert "<!--" not in drawing.svg
            links = [value for node in tree.iter() for key, value in node.attrib.items() if key.endswith("href")]
            assert all(link.startswith("#") for link in links)
            if len(epsilons) == 1:
                assert any("<script>" in text for text in texts(drawing.svg))


def test_identifiers_differ_between_charts_and_pages():
    made = rows(variants=("v",), settings=[{"parties.count": "10"}, {"parties.count": "20"}], references=False)
    found = plots(made)["accuracy"]
    one, other, again = (chart("accuracy", found, page) for page in "aba")
    identifiers = [set(re.findall(' id="([^"]*)"', drawing.svg)) for drawing in (*one.drawings, *other.drawings)]
    assert len(identifiers) == 4
    assert all(identifiers)
    assert len(set.union(*identifiers)) == sum(map(len, identifiers))
    assert again == one


@pytest.mark.slow
def test_groups_have_legends_of_their_own_and_settings_share_one():
    settings = made(rows(settings=[{"parties.count": "10"}, {"parties.count": "20"}]))
    assert [drawing.title for drawing in settings.drawings] == ["parties.count = 10", "parties.count = 20"]
    assert settings.legend
    assert not any(drawing.legend for drawing in settings.drawings)
    groups = made(rows(variants=[f"v{i}" for i in range(9)]), "accuracy-all")
    assert groups.title == "Accuracy over ε, all variants"
    assert not groups.legend
    assert all(2 < len(drawing.legend) <= 6 for drawing in groups.drawings)


@pytest.mark.slow
def test_at_one_epsilon_rows_have_names_only_references_a_legend_and_nothing_a_watermark():
    found = made(ratio_rows(epsilons=(1.0,)), "l1")
    assert {"x (default)", "published_a (NON-PRIVATE)"} <= set(texts(found.drawings[0].svg))
    assert [label for _, label in found.legend] == ["off (NON-PRIVATE)", "pooled (NON-PRIVATE)"]
    for kept in ("party", "none"):
        svg = made([row | {"unit": kept} for row in rows((1.0,))]).drawings[0].svg
        assert ('class="watermark"' in svg) is (kept == "none")
