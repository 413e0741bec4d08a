"""Tables of variants over epsilons and over what was swept.

A run in plain sentences: over how many releases its means are.
The table as a person sees it in a terminal.
"""

import io
import math
import re
from dataclasses import replace

import pytest
from rich.console import Console
from support.figure_rows import row

from scenarios.reports.summary import Spread, VariantSummary, broken, summarise
from scenarios.reports.tables import Cell, Line, Table, fitting, measured, pivots, results, tables


def summary(variant, value, unit="label", place=(), **swept):
    by_epsilon = {epsilon: Spread.of({0: [value * epsilon]}) for epsilon in (1.0, 2.0)}
    if unit == "none":
        by_epsilon = {math.inf: Spread.of({0: [value]})}
    keys = {**{f"protocols.{key}": str(number) for key, number in swept.items()}, **dict(place)}
    return VariantSummary(variant, variant.split("-")[0], False, unit, 0.0, keys, "mse", by_epsilon)


def shown(pivot):
    """Corner, columns and lines of a table, numbers for all but a last column of ratios."""
    last = -1 if "ratio" in pivot.columns else None
    lines = [(line.name, [float(cell.text) if cell.text else None for cell in line.cells[:last]])
             for line in pivot.lines]  # fmt: skip
    return pivot.corner, pivot.columns[:last], lines


def ratios(pivot):
    return tuple(line.cells[-1].text for line in pivot.lines) if "ratio" in pivot.columns else ()


def test_one_swept_number_stands_against_epsilon_in_the_order_of_numbers_and_two_against_each_other():
    [pivot] = pivots([summary(f"llp-size={k}", value, size=k) for k, value in ((16, 3.0), (64, 5.0), (8, 1.0))])
    assert pivot.title == "llp"
    assert shown(pivot) == (
        "size", ["ε = 1", "ε = 2"], [("8", [1.0, 2.0]), ("16", [3.0, 6.0]), ("64", [5.0, 10.0])]
    )  # fmt: skip
    [tiny] = pivots([summary(f"llp-ridge={text}", 1.0, ridge=text) for text in ("0.001", "1e-05", "1e-06")])
    assert (tiny.title, [line.name for line in tiny.lines]) == ("llp", ["1e-06", "1e-05", "0.001"])
    cells = [(4, 10, 1.0), (4, 20, 2.0), (8, 10, 3.0)]
    found = pivots([summary(f"llp-size={k}-bags={m}", value, size=k, bags=m) for k, m, value in cells])
    assert [pivot.title for pivot in found] == ["llp, ε = 1", "llp, ε = 2"]
    assert shown(found[1]) == ("size, by bags", ["10", "20"], [("4", [2.0, 4.0]), ("8", [6.0, None])])


def test_other_options_places_protocols_and_swept_numbers_have_tables_of_their_own():
    listed = [
        *(summary(f"llp-size={k}", 1.0, size=k) for k in (4, 8)),
        *(summary(f"llp-size={k}-gaussian", 1.0, size=k) for k in (4, 8)),
        *(summary(f"llp-size={k}", 1.0, place=[("parties.count", "9")], size=k) for k in (4, 8)),
        *(summary(f"lba-size={k}-off", 1.0, unit="none", size=k) for k in (4, 8)),
    ]
    found = pivots(listed)
    assert [pivot.title for pivot in found] == ["llp", "llp-gaussian", "llp, parties.count = 9", "lba-off"]
    assert found[3].columns == ["NON-PRIVATE"]
    listed = [summary(f"llp-a={a}-b={b}-c={c}", 1.0, a=a, b=b, c=c) for a in (1, 2) for b in (1, 2) for c in (1, 2)]
    assert [pivot.title for pivot in pivots(listed)] == [f"llp, c = {c}, ε = {e}" for c in (1, 2) for e in (1, 2)]


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


def test_variants_stand_against_a_swept_text_at_every_epsilon_with_ratios_where_there_is_pooled():
    one, two = pivots(two_sources())
    assert [one.title, two.title] == ["ε = 1", "ε = 2"]
    columns = ["mo (default)", "pooled (NON-PRIVATE)", "constant (NON-PRIVATE)"]
    assert shown(one) == ("data.source", columns, [("A", [75, 93.8, None]), ("B", [50, 62.5, 25])])
    assert shown(two)[2] == [("A", [80, 93.8, None]), ("B", [None, 62.5, 25])]
    assert one.caption == "ε = 1: accuracy in percent, mean ± standard deviation over single releases"
    assert ratios(one) == ("0.200", "0.200")  # .1875 / .9375 and .125 / .625
    assert ratios(two) == ("0.147", "")
    assert one.notes == ["Ratio: by how much mo is worse than pooled, as a share of pooled"]
    [one, _] = pivots(two_sources("mse"))
    assert "percent" not in one.caption
    assert ratios(one) == ("-0.200", "-0.200")
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
    for swept in ({}, {"size": 4}, {"noise": "laplace"}):
        assert pivots([summary("llp", 1.0, **swept)]) == []


def test_a_cell_is_mean_and_deviation_or_the_single_value():
    several = Cell.of(Spread.of({0: [0.825, 0.843], 1: [0.834]}, kept=4.25), "accuracy")
    assert (several.text, several.interval, several.kept) == ("0.834 ± 0.009", "0.834 and 0.834", "ε = 4.25")
    assert several.quantiles == "5-95 % of single releases: 0.826 to 0.842; 3 releases"
    assert Cell.of(Spread.of({3: [0.25]}), "accuracy") == Cell("0.250")
    assert Cell.of(Spread.of({3: [0.25]}), "accuracy", percent=True) == Cell("25.0")
    assert Cell.of(None, "accuracy") == Cell()
    few = replace(summary("a", 0.5), metric="accuracy", by_epsilon={1.0: Spread.of({0: [0.25], 1: [0.75]})})
    table = results([few])
    assert table.lines[0].cells[0].interval == "0.250 and 0.750"
    assert table.notes == ["Below a mean of two splits: the mean of each, as two are too few for an interval"]


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
    found = fitting(Table("title", "corner", [f"column {j}" for j in range(columns)], made, "caption", ["note"]))
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


def test_releases_and_splits_are_counted_over_all_settings_where_there_is_a_guarantee() -> None:
    few, more = summarise([row()]), summarise([row(value=0.8), row(noise=1, value=0.7), row(split=1, value=0.9)])
    assert measured(few) == "Means are over 1 release at each ε (1 split of the data)."
    assert measured(more) == "Means are over 3 releases at each ε (2 splits of the data)."
    assert re.search(r"1.*3.*1.*2", measured([*few, *more]))
    assert measured([]) == "No variant of this run has a guarantee."


def terminal_shown(summaries, width):
    console = Console(file=io.StringIO(), width=width)
    console.print(*tables(summaries, width))
    return console.file.getvalue()


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_table_fits_the_terminal_and_says_everything(width):
    name = "soft_vote-output-published-regularisation=0.0001"
    rows = [
        row(v, e, noise=n, value=0.81 + n / 100, default=int(v == "soft_vote"), protocol="of_somebody")  # names stay
        for v in ("soft_vote", name)
        for e in (0.1, 0.3, 1.0, 3.0, 10.0)
        for n in (0, 1)
    ]
    rows += [row("soft_vote-output-off", math.inf, value=0.957), row("individual", math.inf, value=0.3)]
    text = terminal_shown(summarise(rows), width)
    assert max(map(len, text.splitlines())) <= width
    for part in ("soft_vote (default)", "ε = 0.1", "ε = 10", "NON-PRIVATE", "0.957", "published"):
        assert part in text
    assert text.count("(NON-PRIVATE)") >= 2  # in every block
    assert text.count("0.815") == 10
    assert text.count("± 0.007") == 10


def test_few_epsilons_stand_on_one_line_names_are_text_and_nothing_is_said_of_intervals_which_are_not_shown():
    assert "0.815 ± 0.007" in terminal_shown(summarise([row(value=0.81), row(noise=1, value=0.82)]), 80)
    assert tables([], 100) == []
    text = terminal_shown(summarise([row(split=split, value=0.25 + 0.5 * split) for split in (0, 1)]), 80)
    assert "0.500 ± 0.354" in text
    assert "two splits" not in text
    assert "0.250" not in text
    text = terminal_shown(summarise([row("[red]x[/red]", **{"data.source": "[/]"})]), 100)
    assert "[red]x[/red]" in text
    assert "data.source = [/]" in text


def test_many_epsilons_are_shown_in_blocks_that_keep_names_whole():
    name = "own-name-of-soft-vote-output-published-regularisation=0.0001"
    made = [
        row(name, 2.0**e, split, value=0.5 + 0.01 * split, protocol="soft_vote") for e in range(8) for split in range(3)
    ]
    text = terminal_shown(summarise(made), 80)
    assert max(map(len, text.splitlines())) <= 80
    for part in ("own-name-of-soft-vote-", "output-published-", "regularisation=0.0001"):
        assert text.count(part) == 2  # once in each block


NINE = (
    "soft_vote", "soft_vote-gaussian", "soft_vote-output-published", "soft_vote-output-tight-regularisation=1e-06",
    "soft_vote-output-published-regularisation=0.0001", "majority_vote", "majority_vote-published",
    "soft_vote-output-diameter-gaussian-regularisation=0.001", "majority_vote-output_decoder_of_unusual_name=0.25",
)  # fmt: skip


def test_nine_variants_six_epsilons_and_two_references_fit_in_two_blocks_without_broken_words():
    rows = [
        row(v, e, noise=n, value=0.81 + n / 100, **{"parties.classifier.logistic.regularisation": "0.01"})
        for v in NINE
        for e in (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
        for n in (0, 1)
    ]
    rows += [row(name, math.inf, value=0.9) for name in ("soft_vote-output-off", "pooled")]
    text = terminal_shown(summarise(rows), 80)
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("variant  ") == 2
    headers = re.findall(r"ε = \S+|(?<=  )NON-PRIVATE\n", text)
    assert headers == [*(f"ε = {e}" for e in ("0.1", "0.3", "1", "3", "10", "30")), "NON-PRIVATE\n"]
    first = [line[:22].strip() for line in text.splitlines()]
    words = {part for one in summarise(rows)[: len(NINE)] for part in broken(one.name, 22)}
    assert words <= set(first)  # every line of a name stands as it was broken, so the terminal broke none again
    assert {"soft_vote tight", "majority_vote", "decoder_of_unusual_"} <= words
    assert text.count("soft_vote tight") == 2  # once in each block


def test_what_is_claimed_is_explained_and_what_keeps_another_epsilon_has_no_column_of_its_own():
    claimed = row("x-published", unit="none", metric="l1", value=0.3)
    kept = [row("x-off", math.inf, metric="l1", value=0.1), row("x", metric="l1", value=0.2)]
    text = terminal_shown(summarise([claimed, *kept]), 80)
    assert "L1 error" in text
    assert "NON-PRIVATE under some ε: it is claimed, not kept" in text
    assert "claimed" not in terminal_shown(summarise(kept), 80)
    rows = [row("x", epsilon) for epsilon in (1.0, 2.0)]
    for aim, split in ((1.0, 0), (1.0, 1), (2.0, 0)):
        kept = 4.6 * aim + split / 10
        rows += [row("y", kept, split, metric=m, value=v) for m, v in (("aimed_epsilon", aim), ("accuracy", 0.75))]
    text = terminal_shown(summarise(rows), 80)
    header, *_ = (line for line in text.splitlines() if "variant" in line)
    assert header.split() == ["variant", "ε", "=", "1", "ε", "=", "2"]
    assert re.search(r"ε = 4\.7 +ε = 9\.2", text)
    assert "kept instead of the one aimed at" in text
    assert "aimed" not in terminal_shown(summarise(rows[:2]), 80)


def test_a_setting_stands_once_above_its_variants():
    settings = [{"data.source": "digits"}, {"data.source": "rather_a_very_long_name"}]
    rows = [row(v, value=0.5, **setting) for setting in settings for v in ("soft_vote", "majority_vote")]
    text = terminal_shown(summarise(rows), 80)
    assert text.count("data.source = digits") == 1
    assert text.count("data.source =") == 2
    assert max(map(len, text.splitlines())) <= 80
    first = [line[:30].strip() for line in text.splitlines()[3:]]
    assert first[:8] == [
        "data.source = digits", "soft_vote", "majority_vote", "",
        "data.source = rather_a_very_", "long_name", "soft_vote", "majority_vote",
    ]  # fmt: skip
