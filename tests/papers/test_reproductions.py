"""Every kept table of a paper: what differs has a reason, pages show what is kept, and cells come out again."""

from __future__ import annotations

import os
from pathlib import Path
from statistics import fmean

import pytest

import scenarios
from scenarios.reproductions.compare import cells, claims, of_further, unexplained
from scenarios.reproductions.measure import PaperRuns, observed, reproduce, scenario_of
from scenarios.reproductions.pages import page
from scenarios.reproductions.paper import (
    EXACT,
    Item,
    Observation,
    Paper,
    Part,
    names,
    paper,
    papers_and_items,
    published,
    read,
)
from scenarios.runs import runner

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reproductions"
PAPERS = [paper(name) for name in names()]
ITEMS = [pytest.param(each, item, id=f"{each.name}-{item.name}") for each in PAPERS for item in each.items]


def parts() -> list[object]:
    """The parts that are measured again, each with all items that it is of."""
    found: dict[tuple[str, Part], list[Item]] = {}
    for each in PAPERS:
        for item in each.items:
            for part in item.parts:
                if part.check is not None:
                    found.setdefault((each.name, part), []).append(item)
    return [
        pytest.param(paper(name), part, items, id=f"{name}-{part.setting}") for (name, part), items in found.items()
    ]


@pytest.mark.parametrize(("of", "item"), ITEMS)
def test_an_item_is_kept_and_what_differs_has_a_reason(of: Paper, item: Item) -> None:
    kept = read(FOLDER, of, item)
    assert kept is not None, f"federation reproduce {of.name} --out docs/reproductions"
    assert not kept.record.quick
    compared = cells(of, item, kept)
    assert any(cell.ours is not None for cell in compared)
    assert unexplained([*compared, *claims(item, kept)]) == []


@pytest.mark.parametrize("of", PAPERS, ids=lambda each: each.name)
def test_the_page_shows_what_is_kept(of: Paper) -> None:
    kept = {item.name: read(FOLDER, of, item) for item in of.items}
    written = (FOLDER / f"{of.name}.md").read_text(encoding="utf-8")
    hint = f"federation reproduce {of.name} --out docs/reproductions"
    assert page(of, kept, FOLDER) == written, hint
    assert f"[{of.citation}]({of.name}.md)" in (FOLDER / "index.md").read_text(encoding="utf-8")


def test_every_printed_number_belongs_to_an_item() -> None:
    assert papers_and_items() <= {(each.name, item.name) for each in PAPERS for item in each.items}


@pytest.mark.parametrize(("of", "item"), ITEMS)
def test_every_printed_number_belongs_to_a_setting_and_a_series(of: Paper, item: Item) -> None:
    kept = read(FOLDER, of, item)
    settings = {*item.settings, *(one.setting for one in kept.observations)}
    series = {*(one.name for one in item.series), *(one.series for one in kept.observations)}
    for setting, name, x in published(of.name, item.name):
        assert (setting in settings, name in series) == (True, True), (setting, name, x)


@pytest.mark.parametrize("of", PAPERS, ids=lambda each: each.name)
def test_scenarios_are_valid_quick_ones_too(of: Paper) -> None:
    declared = dict.fromkeys(part for item in of.items for part in item.parts)
    for each in [*declared, *(part.missing for part in declared if part.missing)]:
        assert scenario_of(of, each).trials.splits >= scenario_of(of, each, quick=True).trials.splits


@pytest.mark.parametrize(("of", "part", "items"), parts())
def test_cells_come_out_again(of: Paper, part: Part, items: list[Item], tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(runner, "_draw", lambda *arguments: None)
    scenario = scenarios.resolve(scenario_of(of, part).to_plain(), part.check)
    rows = scenarios.run(scenario, out=tmp_path / "out").rows
    measured = {item.name: list(observed(rows, item, part)) for item in items}
    assert any(measured.values())
    for item in items:
        require_again(of, item, measured[item.name])


@pytest.mark.parametrize(("of", "item"), [one for one in ITEMS if one.values[1].check])
def test_values_come_out_again(of: Paper, item: Item, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FEDERATION_DATA", raising=False)
    assert item.compute is not None
    again = list(item.compute(True, None))
    assert again
    require_again(of, item, again)


def test_cells_of_every_paper_are_measured_again() -> None:
    by_part = {each.name for each in PAPERS for item in each.items for part in item.parts if part.check is not None}
    assert by_part | {each.name for each in PAPERS for item in each.items if item.check} == set(names())


def require_again(of: Paper, item: Item, again: list[Observation]) -> None:
    """What was computed exactly is as it is kept, and the mean of other splits lies where the kept ones say."""
    kept = read(FOLDER, of, item)
    for one in {(each.setting, each.series, each.role, each.x) for each in again}:
        values = {each.split: each.value for each in again if (each.setting, each.series, each.role, each.x) == one}
        before = kept.by_split(*one)
        if EXACT in values:
            assert values == pytest.approx(before, rel=1e-4, abs=1e-9), (item.name, one)
        else:
            low, high = of_further(list(before.values()), len(values))
            slack = 1e-4 * abs(high)  # kept values have six digits
            assert low - slack <= fmean(values.values()) <= high + slack, (item.name, one)


@pytest.mark.reproduction
@pytest.mark.parametrize("of", PAPERS, ids=lambda each: each.name)
def test_a_quick_run_of_all_differs_for_known_reasons_only(of: Paper, tmp_path: Path) -> None:
    if "FEDERATION_DATA" not in os.environ:
        pytest.skip("FEDERATION_DATA names no data")
    runs = PaperRuns(of, tmp_path, quick=True)
    for item in of.items:
        kept = reproduce(runs, item)
        assert unexplained([*cells(of, item, kept), *claims(item, kept)]) == []
