"""Files of a figure for a paper: their sizes, fonts and looks.

What a figure for a paper shows of runs: which values stand where, and which it refuses to put together.
"""

import itertools
import math
import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.examples import examples
from support.figure_rows import VARIANTS, rows
from support.refusals import refused

from federation.contract.errors import InputError
from scenarios.reports.axes import Axis, Curve, Panel, Plot, looks, styled
from scenarios.reports.figures import plots
from scenarios.reports.paper_figure import collect, drawn, inches, write
from scenarios.reports.summary import Spread, summarise

PLAIN, *_ = summarise(rows(variants=("v",), references=False))
PLAIN_LOOK = looks([PLAIN])["v"]
CLAIMING = looks([replace(PLAIN, unit="none")])["v"]
REFERENCE = looks(summarise(rows(variants=("v",))))["pooled"]
COUNTS = (100, 200, 400)


def curve(name, x=(0.1, 1.0, 10.0), *, look=PLAIN_LOOK, scale=1.0):
    points = {
        value: Spread.of({split: [scale * (place + 1) / 4 + split / 100] for split in range(3)})
        for place, value in enumerate(x)
    }
    return Curve(name, look, points)


def plot(*curves, metric="accuracy"):
    return Plot((Panel("", curves),), Axis.of("ε", [value for one in curves for value in one.points]), metric)


BASELINE = curve("pooled", (math.inf,), look=REFERENCE)
PUBLISHED = curve("published", look=CLAIMING, scale=0.5)
FOUR = plot(curve("soft_vote"), curve("soft_vote-output", scale=0.8), PUBLISHED, BASELINE)


def shown(*arguments):
    with styled():
        figure = drawn(*arguments)
        figure.draw_without_rendering()
    return figure


@pytest.mark.slow
def test_files_have_embedded_fonts_no_title_and_the_size_that_was_asked_for_and_equal_plots_equal_files(tmp_path):
    labels = {"soft_vote": "Our method (ε)"}
    paths = write(FOUR, tmp_path / "fig.1", ["pdf", "svg", "png"], "3.5x2.5", labels)
    assert [path.name for path in paths] == ["fig.1.pdf", "fig.1.svg", "fig.1.png"]
    pdf, svg = paths[0].read_bytes(), paths[1].read_text()
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
    assert b"/MediaBox [ 0 0 252 180 ]" in pdf
    assert "<text" not in svg
    assert re.search(r"width.*252pt.*height.*180pt", svg)
    assert matplotlib.image.imread(paths[2]).shape[:2] == (1500, 2100)
    again = write(FOUR, tmp_path / "again", ["pdf", "svg"], "3.5x2.5", labels)
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in paths[:2]]
    figure = shown(FOUR, 3.5, 2.5, {})
    assert not [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert figure.get_suptitle() == ""


def test_what_protects_nobody_says_so_under_any_name():
    labels = {"soft_vote": "Our method", "published": "Theirs", "pooled": "Non-private pooling"}
    [legend] = shown(FOUR, 3.25, None, labels).legends
    told = ["Our method", "soft_vote-output", "Theirs (non-private)", "Non-private pooling"]
    assert [text.get_text() for text in legend.get_texts()] == told
    hollow = [handle.get_markerfacecolor() == "white" for handle in legend.get_lines()]
    assert hollow == [False, False, True, False]


@pytest.mark.slow
def test_the_legend_is_inside_the_figure_and_takes_nothing_from_the_axes():
    long = [curve("soft_vote-output-published-regularisation=0.0001-" + "gaussian-" * n) for n in range(5)]
    for size in ("column", "page"):
        heights = []
        for curves in (long[:1], long):
            figure = shown(plot(*curves), *inches(size), {})
            [legend] = figure.legends
            box = legend.get_window_extent()
            assert 0 <= box.x0 < box.x1 <= figure.bbox.width
            heights.append(figure.axes[0].get_window_extent().height / figure.dpi)
        assert heights == pytest.approx([heights[0]] * 2, abs=0.1)
        assert heights[0] > 1.2


@pytest.mark.slow
def test_a_size_without_room_is_refused_with_one_that_has_it():
    many = plot(*(curve(f"a-rather-long-name-of-number-{number}") for number in range(6)))
    with pytest.raises(InputError, match=r"--size.*x1\.6") as caught:
        shown(many, 3.0, 1.6, {})
    tall = float(str(caught.value).split("make it ")[1].split(" inches")[0])
    shown(many, 3.0, tall, {})
    for size in ("colum", "3x", "3,5x2", "0.1x2", "3x900", "3x2in"):
        refused(r"--size.*WIDTHxHEIGHT", inches, size)


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


@pytest.mark.slow
def test_near_numbers_are_on_a_linear_axis_without_touching_labels_and_far_errors_on_a_logarithmic_one():
    axes = shown(plot(curve("a", tuple(map(float, range(100, 160, 2))))), 3.25, None, {}).axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "linear")
    boxes = [text.get_window_extent() for text in axes.get_xticklabels()]
    assert len(boxes) > 3
    assert all(one.x1 < other.x0 for one, other in itertools.pairwise(boxes))
    axes = shown(plot(curve("a"), curve("b", scale=1000.0), metric="mse"), 3.25, None, {}).axes[0]
    assert axes.get_yscale() == "log"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk here that is always full")
def test_what_cannot_be_written_and_a_full_disk_are_named(tmp_path):
    refused("--out", write, plot(curve("a")), tmp_path / "no" / "figure", ["svg"])
    (tmp_path / "figure.svg").symlink_to("/dev/full")
    refused(r"figure\.svg.*--out", write, plot(curve("a")), tmp_path / "figure", ["svg"])


@pytest.fixture
def stored(tmp_path):
    """Makes the rows of a run by its directory, with a scenario of these settings."""

    def make(name="run", text="parties: {count: 50}", **changes):
        (tmp_path / name).mkdir()
        (tmp_path / name / "scenario.yaml").write_text(f"name: {name}\n{text}\n")
        return {tmp_path / name: rows(**changes)}

    return make


def sweep(key="parties.count", values=COUNTS):
    return tuple({key: str(value)} for value in values)


def curves(collected):
    """The curves by the whole names of their variants."""
    return dict(zip(collected.names, collected.plot.curves, strict=True))


def test_against_epsilon_every_mean_and_interval_is_that_of_the_rows(stored):
    runs = stored()
    collected = collect(runs)
    [found] = runs.values()
    for name in VARIANTS:
        curve = curves(collected)[name]
        assert list(curve.points) == [0.1, 1.0, 10.0]
        for epsilon, spread in curve.points.items():
            by_split = defaultdict(list)
            for row in found:
                if (row["variant"], row["epsilon"]) == (name, epsilon):
                    by_split[row["split"]].append(row["value"])
            means = [np.mean(each) for each in by_split.values()]
            assert spread.mean == pytest.approx(np.mean(means))
            wanted = stats.t.interval(0.95, len(means) - 1, np.mean(means), stats.sem(means))
            assert spread.interval == pytest.approx(wanted)
    assert (collected.plot.axis.name, collected.plot.metric) == ("ε", "accuracy")
    references = {name: list(one.points) for name, one in curves(collected).items() if one.look.reference}
    assert references == {"pooled": [math.inf], "individual": [math.inf]}


@given(st.lists(st.floats(0.01, 100).map(lambda value: float(f"{value:.3g}")), min_size=2, max_size=5, unique=True))
@settings(max_examples=examples(10))
def test_inverse_epsilon_turns_the_axis_and_nothing_else(tmp_path_factory, epsilons):
    run = tmp_path_factory.mktemp("run")
    (run / "scenario.yaml").write_text("name: run\n")
    found = {run: rows(epsilons=tuple(epsilons), variants=VARIANTS[:1], references=False)}
    [straight], [turned] = (collect(found, x=x).plot.curves for x in ("epsilon", "inverse_epsilon"))
    assert [1 / value for value in reversed(list(turned.points))] == pytest.approx(list(straight.points))
    assert [one.mean for one in reversed(turned.points.values())] == [one.mean for one in straight.points.values()]


def test_a_sweep_within_a_run_at_the_middle_epsilon(stored):
    plot = collect(stored(settings=sweep()), x="parties")
    assert plot.plot.axis.values == tuple(map(float, COUNTS))
    assert plot.plot.axis.name == "number of parties"
    assert any("at ε = 1, the middle one" in remark for remark in plot.remarks)
    assert "at ε = 1 over" in plot.caption
    pooled = curves(plot)["pooled"]
    assert list(pooled.points) == list(map(float, COUNTS))  # what has no epsilon depends on the parties all the same


def test_runs_of_one_count_each_are_as_good_as_a_sweep(stored):
    swept = collect(stored(settings=sweep()), x="parties", at={"epsilon": "10"})
    runs = {}
    for place, count in enumerate(COUNTS):
        [(run, found)] = stored(f"run-{count}", f"parties: {{count: {count}}}", settings=sweep()[: place + 1]).items()
        runs[run] = [dict(row) for row in found if row["parties.count"] == str(count)]
        for row in runs[run]:
            del row["parties.count"]
    assert collect(runs, x="parties", at={"epsilon": "10"}).plot == swept.plot


def test_an_option_of_a_protocol_is_left_out_of_names(stored):
    runs = stored()
    [directory] = runs
    found = []
    for ridge in ("1e-06", "10.0"):
        for row in rows(epsilons=(1.0,), variants=("soft_vote",), references=False):
            found.append({**row, "variant": f"soft_vote-ridge={float(ridge):g}", "protocols.ridge": ridge})
    others = [row for row in rows(epsilons=(1.0,)) if row["variant"] in ("pooled", "majority_vote")]
    found += [{**row, "protocols.ridge": ""} for row in others]
    plot = collect({directory: found}, x="protocols.ridge")
    points = {name: list(one.points) for name, one in curves(plot).items()}
    assert points == {"soft_vote": [1e-06, 10.0], "majority_vote": [math.inf], "pooled": [math.inf]}
    assert plot.plot.axis.name == "ridge"


def test_only_chooses_and_orders(stored):
    runs = stored()
    for second in (VARIANTS[1], "soft_vote gaussian"):
        found = collect(runs, only=["pooled", second])
        assert found.names == {"pooled": "pooled", VARIANTS[1]: "soft_vote gaussian"}
        assert [one.label for one in found.plot.curves] == list(found.names.values())
        assert found.remarks == []


@pytest.mark.parametrize("more", [(), ("a", "b", "c")])
def test_variants_look_and_are_called_as_in_the_report_whatever_the_metric(stored, more):
    runs = stored(variants=(*VARIANTS, *more), settings=({"parties.count": "50"},))
    [(path, made)] = runs.items()
    report = plots(made)["accuracy"].curves
    known = {one.label.split(" (")[0]: one.look.line for one in report}
    found = collect(runs).plot.curves
    assert [one.label for one in found] == list(known)
    for name in ("color", "marker", "linestyle"):
        assert [one.look.line[name] for one in found] == [line[name] for line in known.values()]
    last = collect(runs, only=["majority_vote"]).plot.curves[0]
    assert last.look == next(one.look for one in found if one.label == "majority_vote")
    auc = [row | {"metric": "auc"} | ({"value": 9} if row["variant"] == "majority_vote" else {}) for row in made]
    of_auc = collect({path: [*made, *auc]}, metric="auc").plot.curves
    assert [one.look for one in of_auc] == [one.look for one in found]


def test_other_settings_must_be_chosen(stored):
    runs = stored(settings=sweep())
    refused(r"soft_vote.*epsilon.*--at.*parties\.count.*100.*200", collect, runs)
    chosen, alone = collect(runs, at={"parties": "200"}), collect(stored("alone", settings=sweep()[1:2]))
    assert chosen.names == alone.names
    assert len(chosen.names) == len(VARIANTS) + 2
    for key, words in (
        ("parties.count", r"parties\.count.*100.*200.*400"),
        ("parties.coun", r"--at.*parties\.coun.*parties\.count"),
    ):
        refused(words, collect, runs, at={key: "7"})


def test_equal_runs_are_refused_by_name_and_other_differences_are_told(stored):
    [one], [other] = stored("a").items(), stored("b").items()
    refused(None, collect, dict([one, (other[0], [row | {"value": row["value"] / 2} for row in other[1]])]))
    few = stored("few", "parties: {count: 50}\nseed: 1", epsilons=(1.0,))
    many = stored("many", "parties: {count: 90}\nseed: 2", epsilons=(1.0,))
    assert collect(few | many, x="parties").remarks == ["the runs differ in seed, too"]


def test_unknown_names_are_refused_with_those_there_are_and_one_epsilon_is_no_curve(stored):
    runs = stored()
    for asked, message in (
        ({"x": "epsilom"}, r"epsilom.*epsilon.*inverse_epsilon.*epsilon"),
        ({"x": "parties"}, "parties"),
        ({"metric": "acuracy"}, "accuracy"),
        ({"only": ["soft_vot"]}, r"soft_vote.*soft_vote"),
        ({"at": {"epsilon": "1"}}, "epsilon"),
    ):
        with pytest.raises(InputError, match=message) as caught:
            collect(runs, **asked)
        assert str(caught.value).count("did you mean") <= 1
    with pytest.raises(InputError, match=r"epsilon.*1.*more.*parties"):
        collect(stored("one", epsilons=(1.0,), settings=sweep()), at={"parties": "100"})


def test_a_caption_and_remarks_say_what_a_reader_must_know(stored):
    plot = collect(stored(variants=(*VARIANTS, "a", "b", "c")))
    assert re.search(r"3.*6.*3.*bars.*95", plot.caption)
    assert len(plot.names) == 6
    assert plot.remarks == ["left out, beyond what can be told apart: b, c, individual; choose with --only"]
    [(path, found)] = stored("one").items()
    plot = collect({path: [row for row in found if row["split"] == 0]})
    assert plot.remarks == ["what was measured on a single split has no interval"]
    assert plot.caption == "Mean accuracy over 1 to 2 releases of 1 split."
    plot = collect({path: [row for row in found if row["split"] < 2]})
    assert "two splits are drawn as points" in plot.remarks[0]
    assert plot.caption == (
        "Mean accuracy over 2 to 4 releases of 2 splits; points beside a mean: its two splits, too few for an interval."
    )
    claims = [row | {"unit": "none"} if row["variant"] == VARIANTS[0] else row for row in found]
    assert collect({path: claims}).caption.endswith("; hollow markers: NON-PRIVATE, the ε is claimed and not kept.")
