"""Tables of variants over epsilons and over what was swept."""

import math
from dataclasses import replace

import pytest

from scenarios.reports.summary import Spread, VariantSummary
from scenarios.reports.tables import Cell, Line, Table, fitting, pivots, results


def summary(variant, value, unit="label", place=(), **swept):
    by_epsilon = {epsilon: Spread.of({0: [value * epsilon]}) for epsilon in (1.0, 2.0)}
    if unit == "none":
        by_epsilon = {math.inf: Spread.of({0: [value]})}
    keys = {**{f"protocols.{key}": str(number) for key, number in swept.items()}, **dict(place)}
    return VariantSummary(variant, variant.split("-")[0], False, unit, 0.0, keys, "mse", by_epsilon)


def shown(pivot):
    """Corner, columns and lines of a table, numbers for all but a last column of ratios."""
    return (
        pivot.corner,
        [column for column in pivot.columns if column != "ratio"],
        [
            (line.name, [float(cell.text) if cell.text else None for cell in measured(pivot, line)])
            for line in pivot.lines
        ],
    )


def measured(pivot, line):
    return line.cells[:-1] if "ratio" in pivot.columns else line.cells


def ratios(pivot):
    return tuple(line.cells[-1].text for line in pivot.lines) if "ratio" in pivot.columns else ()


def test_one_swept_number_stands_against_epsilon_in_the_order_of_numbers():
    [pivot] = pivots(
        [summary("llp-size=16", 3.0, size=16), summary("llp", 5.0, size=64), summary("llp-size=8", 1.0, size=8)]
    )
    assert pivot.title == "llp"
    assert shown(pivot) == (
        "size", ["ε = 1", "ε = 2"], [("8", [1.0, 2.0]), ("16", [3.0, 6.0]), ("64", [5.0, 10.0])]
    )  # fmt: skip


def test_two_stand_against_each_other_at_every_epsilon():
    cells = [(4, 10, 1.0), (4, 20, 2.0), (8, 10, 3.0)]
    found = pivots([summary(f"llp-size={k}-bags={m}", value, size=k, bags=m) for k, m, value in cells])
    assert [pivot.title for pivot in found] == ["llp, ε = 1", "llp, ε = 2"]
    assert shown(found[1]) == ("size, by bags", ["10", "20"], [("4", [2.0, 4.0]), ("8", [6.0, None])])


def test_other_options_places_and_protocols_have_tables_of_their_own():
    listed = [
        *(summary(f"llp-size={k}", 1.0, size=k) for k in (4, 8)),
        *(summary(f"llp-size={k}-gaussian", 1.0, size=k) for k in (4, 8)),
        *(summary(f"llp-size={k}", 1.0, place=[("parties.count", "9")], size=k) for k in (4, 8)),
        *(summary(f"lba-size={k}-off", 1.0, unit="none", size=k) for k in (4, 8)),
    ]
    found = pivots(listed)
    assert [pivot.title for pivot in found] == ["llp", "llp-gaussian", "llp, parties.count = 9", "lba-off"]
    assert found[3].columns == ["NON-PRIVATE"]


def test_further_swept_numbers_make_further_tables():
    listed = [summary(f"llp-a={a}-b={b}-c={c}", 1.0, a=a, b=b, c=c) for a in (1, 2) for b in (1, 2) for c in (1, 2)]
    titles = [pivot.title for pivot in pivots(listed)]
    assert titles == [f"llp, c = {c}, ε = {e}" for c in (1, 2) for e in (1, 2)]


def placed(variant, source, by_epsilon, metric="accuracy", default=False, **others):
    spreads = {epsilon: Spread.of({0: [value]}) for epsilon, value in by_epsilon.items()}
    unit = "none" if math.inf in by_epsilon else "row"
    setting = {"data.source": source, **others}
    return VariantSummary(variant, variant.split("-")[0], default, unit, 0.0, setting, metric, spreads)


def two_sources(metric="accuracy"):
    return [
        placed("mo", "A", {1.0: 0.75, 2.0: 0.8}, metric, default=True),
        placed("pooled", "A", {math.inf: 0.9375}, metric),
        placed("mo", "B", {1.0: 0.5}, metric, default=True),
        placed("pooled", "B", {math.inf: 0.625}, metric),
        placed("constant", "B", {math.inf: 0.25}, metric),
    ]


def test_variants_stand_against_a_swept_text_at_every_epsilon():
    one, two = pivots(two_sources())
    assert [one.title, two.title] == ["ε = 1", "ε = 2"]
    columns = ["mo (default)", "pooled (NON-PRIVATE)", "constant (NON-PRIVATE)"]
    assert shown(one) == ("data.source", columns, [("A", [75, 93.8, None]), ("B", [50, 62.5, 25])])
    assert shown(two)[2] == [("A", [80, 93.8, None]), ("B", [None, 62.5, 25])]
    assert one.caption == "ε = 1: accuracy in percent, mean ± standard deviation over single releases"
    assert ratios(one) == ("0.200", "0.200")  # .1875 / .9375 and .125 / .625
    assert ratios(two) == ("0.147", "")
    assert one.notes == ["Ratio: by how much mo is worse than pooled, as a share of pooled"]


def test_of_errors_the_ratio_says_how_much_larger_they_are():
    [one, _] = pivots(two_sources("mse"))
    assert "percent" not in one.caption
    assert ratios(one) == ("-0.200", "-0.200")


def test_without_pooled_there_is_no_ratio_and_without_epsilon_one_table():
    assert ratios(pivots([s for s in two_sources() if s.variant != "pooled"])[0]) == ()
    [only] = pivots([s for s in two_sources() if s.unit == "none"])
    assert (only.title, ratios(only)) == ("NON-PRIVATE", ())


def test_further_settings_have_tables_of_their_own_and_numbers_have_none():
    listed = [placed(v, s, {1.0: 0.5}, rows=n) for v in "ab" for s in "AB" for n in ("10", "20")]
    assert [(pivot.title, pivot.corner) for pivot in pivots(listed)] == [
        ("rows = 10, ε = 1", "data.source"), ("rows = 20, ε = 1", "data.source"),
    ]  # fmt: skip
    assert pivots([placed(v, "A", {1.0: 0.5}, rows=n) for v in "ab" for n in ("10", "20")]) == []
    assert pivots([placed("a", s, {1.0: 0.5}) for s in "AB"]) == []


@pytest.mark.parametrize("swept", [{}, {"size": 4}, {"noise": "laplace"}])
def test_nothing_is_tabulated_where_nothing_is_swept_over_numbers(swept):
    assert pivots([summary("llp", 1.0, **swept)]) == []


def test_a_cell_is_mean_and_deviation_or_the_single_value():
    several = Cell.of(Spread.of({0: [0.825, 0.843], 1: [0.834]}, kept=4.25), "accuracy")
    assert (several.text, several.interval, several.kept) == ("0.834 ± 0.009", "0.834 and 0.834", "ε = 4.25")
    assert several.quantiles == "5-95 % of single releases: 0.826 to 0.842; 3 releases"
    assert Cell.of(Spread.of({3: [0.25]}), "accuracy") == Cell("0.250")
    assert Cell.of(Spread.of({3: [0.25]}), "accuracy", percent=True) == Cell("25.0")
    assert Cell.of(None, "accuracy") == Cell()


def test_variants_stand_over_epsilons_in_their_settings():
    table = results(two_sources("l1"))
    assert (table.title, table.corner, table.notes) == ("L1 error (lower is better)", "variant", [])
    assert table.columns == ["ε = 1", "ε = 2", "NON-PRIVATE"]
    first, second, *_ = table.lines
    assert (first.name, first.mark, first.place, first.default) == ("mo", "(default)", ("data.source = A",), True)
    assert [cell.text for cell in second.cells] == ["", "", "0.938"]
    assert results([]).title == "no results"


@pytest.mark.parametrize(
    ("lines", "columns", "shape", "folded"),
    [(2, 5, (2, 5), False), (5, 14, (14, 5), False), (14, 5, (14, 5), False), (14, 14, (14, 14), True)],
)
def test_a_table_fits_a_page_as_it_is_or_exchanged_or_folded(lines, columns, shape, folded):
    made = [Line(f"line {i}", [Cell(f"{i}.{j} ± 0.1234") for j in range(columns)]) for i in range(lines)]
    whole = Table("title", "corner", [f"column {j}" for j in range(columns)], made, "caption", ["note"])
    found = fitting(whole)
    assert ((len(found.lines), len(found.columns)), found.folded) == (shape, folded)
    assert (found.caption, found.notes) == ("caption", ["note"])
    cells = {
        frozenset((line.name, head)): cell.text
        for line in found.lines
        for head, cell in zip(found.columns, line.cells, strict=True)
    }
    assert cells[frozenset(("line 1", "column 3"))] == "1.3 ± 0.1234"
    assert len(cells) == lines * columns


def test_lines_of_variants_are_folded_and_never_exchanged():
    made = [Line("v", [Cell("0.5 ± 0.1234")] * 14, "(default)", ("data.source = A",), True)]
    found = fitting(Table("title", "variant", [f"ε = {i}" for i in range(14)], made))
    assert (found.lines, found.folded) == (made, True)


def test_a_mean_of_two_splits_says_what_stands_below_it():
    few = replace(summary("a", 0.5), metric="accuracy", by_epsilon={1.0: Spread.of({0: [0.25], 1: [0.75]})})
    table = results([few])
    assert table.lines[0].cells[0].interval == "0.250 and 0.750"
    assert table.notes == ["Below a mean of two splits: the mean of each, as two are too few for an interval"]
