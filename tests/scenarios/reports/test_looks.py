"""Which variants a figure shows first, and that each looks like no other, whatever its figure shows."""

import math
from dataclasses import replace
from itertools import combinations, pairwise

import pytest
from support.figure_rows import bands, hollow, legend, ratio_rows, rows, watermarked

from scenarios.reports.axes import COLOURS, MOST_CURVES, chosen, groups, looks
from scenarios.reports.figures import figures
from scenarios.reports.summary import summarise

MANY = [f"v-{name}" for name in "abcdefghijkl"]


def look(of):
    return tuple(of.line[name] for name in ("color", "marker", "linestyle"))


def test_legend_marks_the_default_and_what_is_not_private():
    figure = figures(rows(), "t")["accuracy"]
    assert legend(figure)[0] == "soft_vote (default)"
    assert legend(figure)[-2:] == ["pooled (NON-PRIVATE)", "individual (NON-PRIVATE)"]
    assert not watermarked(figure)


def test_every_variant_looks_different_and_the_first_have_colours_of_their_own():
    summaries = summarise(rows(variants=[f"v{i}" for i in range(40)], references=False))
    found = looks(summaries)
    assert len({look(one) for one in found.values()}) == 40
    assert len({found[name].line["color"] for name in chosen(summaries)}) == len(COLOURS)


@pytest.mark.parametrize("count", [7, 9, 14])
def test_no_two_of_a_group_share_a_colour(count):
    summaries = summarise(rows(variants=MANY[: count - 2]))
    found = looks(summaries)
    for names in groups(summaries):
        coloured = [found[name].line["color"] for name in names if not found[name].reference]
        assert len(set(coloured)) == len(coloured)


def test_what_has_no_guarantee_has_a_look_that_says_so():
    for epsilons in ((0.5, 1.0), (1.0,)):
        for figure in figures(ratio_rows(epsilons=epsilons), "t").values():
            assert not watermarked(figure)  # others have a guarantee
            assert "hollow markers: NON-PRIVATE" in figure.legends[0].get_title().get_text().replace("\n", " ")
    found = hollow(figures(ratio_rows(), "t")["l1"])
    assert [name for name, is_hollow in found.items() if is_hollow] == ["published_a (NON-PRIVATE)"]
    assert "hollow" not in figures(ratio_rows(("x",)), "t")["l1"].legends[0].get_title().get_text()


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
    worst = chosen([one for one in summaries if one.non_private])
    assert worst == ["y-off", "pooled", "individual"]


def test_of_errors_the_best_rival_has_the_least():
    made = ratio_rows(("x", "x-a", "x-b", "x-c"))
    assert chosen(summarise(made), 2) == ["x", "x-a"]


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


def lightness(colour):
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_28_variants_and_4_references_are_told_apart_without_colours():
    made = rows(variants=[f"v{i}" for i in range(28)])
    made += [row | {"variant": f"{row['variant']}2"} for row in made if row["variant"] in ("pooled", "individual")]
    found = [(str(one.line["linestyle"]), one.line["marker"]) for one in looks(summarise(made)).values()]
    assert len(found) == len(set(found)) == 32


def test_neighbours_differ_in_lightness():
    for one, other in pairwise(COLOURS):
        assert abs(lightness(one) - lightness(other)) > 20


def test_what_has_no_guarantee_anywhere_looks_so_everywhere():
    first, *_ = summarise(rows())
    claims = replace(first, unit="none")
    found = looks([first, claims])
    assert found == looks([claims])
    assert found[first.variant].hollow
    assert chosen([first, claims]) == [first.variant]


def test_colours_can_be_told_apart_without_red_or_green_or_blue():
    """With the matrices for full deuteranopia, protanopia and tritanopia of Machado et al. 2009."""
    blind = (
        ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
        ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
        ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
    )
    for matrix in blind:
        seen = []
        for colour in COLOURS:
            linear = [(int(colour[i : i + 2], 16) / 255) ** 2.2 for i in (1, 3, 5)]
            seen.append([sum(a * b for a, b in zip(line, linear, strict=True)) for line in matrix])
        assert min(math.dist(a, b) for a, b in combinations(seen, 2)) > 0.1
