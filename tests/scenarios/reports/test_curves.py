"""What a variant's curve looks like: no other has its look, and in a crowd few have bands."""

import pytest
from support.figure_rows import bands, hollow, legend, ratio_rows, rows, watermarked

from scenarios.reports.curves import Axis, curves, styles
from scenarios.reports.figures import figures
from scenarios.reports.summary import Spread, summarise


def test_legend_marks_the_default_and_what_is_not_private():
    figure = figures(rows(), "t")["accuracy"]
    assert legend(figure)[0] == "soft_vote (default)"
    assert legend(figure)[-2:] == ["pooled (NON-PRIVATE)", "individual (NON-PRIVATE)"]
    assert not watermarked(figure)


def test_every_variant_looks_different():
    figure = figures(rows(variants=[f"v{i}" for i in range(20)], references=False), "t")["accuracy"]
    looks = {(line.get_color(), line.get_marker(), line.get_linestyle()) for line in figure.legends[0].get_lines()}
    assert len(looks) == 20


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


def test_what_is_only_claimed_has_hollow_markers_and_marks_the_figure():
    for epsilons in ((0.5, 1.0), (1.0,)):
        for figure in figures(ratio_rows(epsilons=epsilons), "t").values():
            assert watermarked(figure)
            assert "hollow markers: NON-PRIVATE" in figure.legends[0].get_title().get_text()
    found = hollow(figures(ratio_rows(), "t")["l1"])
    assert [name for name, is_hollow in found.items() if is_hollow] == ["x-published_a (NON-PRIVATE)"]
    assert "hollow" not in figures(ratio_rows(("x",)), "t")["l1"].legends[0].get_title().get_text()


def test_in_a_crowd_every_spelling_of_published_counts():
    many = ratio_rows(("x", *(f"x-{i}" for i in range(8)), "x-published_b", "x-published_c"))
    assert bands(figures(many, "t")["l1-share"]) == [2]


@pytest.mark.parametrize(("logarithmic", "middle"), [(True, 1.0), (False, 5.05)])
def test_an_axis_places_its_ends_at_0_and_1_and_moves_values_by_a_share(logarithmic, middle):
    axis = Axis("ε", (0.1, 1.0, 10.0), logarithmic)
    assert (axis.position(0.1), axis.position(10.0)) == (0, 1)
    assert axis.position(middle) == pytest.approx(0.5)
    for share in (0.0, 0.25, -0.1):
        assert axis.position(axis.shifted(middle, share)) == pytest.approx(0.5 + share)


def test_parts_of_a_curve_are_joined_under_its_name_and_note():
    one, other, *_ = summarise(rows())
    low, high = Spread.of({0: [0.1]}), Spread.of({0: [0.9]})
    placed = [("left", one, {1.0: low}), ("left", other, {1.0: low}), ("left", one, {2.0: high}), ("right", one, {})]
    found = curves(placed, [one, other], {other.variant: "keeps ε = 4"})
    assert [curve.label for curve in found["left"]] == ["soft_vote (default)", "soft_vote-gaussian\nkeeps ε = 4"]
    assert found["left"][0].points == {1.0: low, 2.0: high}
    assert found["left"][0].style is found["right"][0].style


def test_references_are_grey_and_dashed_and_take_no_colour_from_variants():
    with_references, alone = styles(summarise(rows())), styles(summarise(rows(references=False)))
    assert {name: style for name, style in with_references.items() if not style.reference} == alone
    for name in ("pooled", "individual"):
        style = with_references[name]
        assert style.reference
        assert (style.band, style.hollow, style.line["marker"]) == (False, False, "")
        assert len({style.line["color"][i : i + 2] for i in (1, 3, 5)}) == 1  # grey
