"""Every kept table of a paper: what differs has a reason, pages show what is kept, and cells come out again."""

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import pytest
from scipy.special import stdtrit
from support.measured import needed_data

import scenarios
from scenarios.reports.summary import CONFIDENCE
from scenarios.reproductions.compare import cells, claims, unexplained
from scenarios.reproductions.measure import PaperRuns, observed, reproduce, scenario_of
from scenarios.reproductions.pages import page
from scenarios.reproductions.paper import EXACT, Item, Observation, Paper, Part, names, paper, published, read
from scenarios.runs import runner

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "reproductions"
PAPERS = [paper(name) for name in names()]
ITEMS = [pytest.param(each, item, id=f"{each.name}-{item.name}") for each in PAPERS for item in each.items]


def of_further(values: Sequence[float], further: int) -> tuple[float, float]:
    """Return where the mean of so many further splits lies with 95 % probability, by 2 or more measured splits."""
    error = stdev(values) * math.sqrt(1 / len(values) + 1 / further)
    reach = float(stdtrit(len(values) - 1, (1 + CONFIDENCE) / 2)) * error
    return fmean(values) - reach, fmean(values) + reach


def test_the_mean_of_further_splits_lies_there_in_95_of_100_cases() -> None:
    random = np.random.default_rng(5)
    hits = 0
    for _ in range(2000):
        low, high = of_further(random.normal(size=6).tolist(), further=2)
        hits += low <= random.normal(size=2).mean() <= high
    assert 0.935 < hits / 2000 < 0.965


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
def test_an_item_is_kept_what_differs_has_a_reason_and_printed_numbers_belong_to_settings_and_series(
    of: Paper, item: Item
) -> None:
    kept = read(FOLDER, of, item)
    assert kept is not None, f"federation reproduce {of.name} --out docs/reproductions"
    assert not kept.record.quick
    compared = cells(of, item, kept)
    assert any(cell.ours is not None for cell in compared)
    assert unexplained([*compared, *claims(item, kept)]) == []
    settings = {*item.settings, *(one.setting for one in kept.observations)}
    series = {*(one.name for one in item.series), *(one.series for one in kept.observations)}
    for setting, name, x in published(of.name, item.name):
        assert (setting in settings, name in series) == (True, True), (setting, name, x)


@pytest.mark.parametrize("of", PAPERS, ids=lambda each: each.name)
def test_the_page_shows_what_is_kept(of: Paper) -> None:
    kept = {item.name: read(FOLDER, of, item) for item in of.items}
    written = (FOLDER / f"{of.name}.md").read_text(encoding="utf-8")
    hint = f"federation reproduce {of.name} --out docs/reproductions"
    assert page(of, kept, FOLDER) == written, hint
    assert f"[{of.citation}]({of.name}.md)" in (FOLDER / "index.md").read_text(encoding="utf-8")


def test_every_printed_number_belongs_to_an_item() -> None:
    text = (ROOT / "scenarios" / "papers" / "published.csv").read_text(encoding="utf-8")
    known = {(row["paper"], row["item"]) for row in csv.DictReader(text.splitlines())}
    assert known <= {(each.name, item.name) for each in PAPERS for item in each.items}


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
    needed_data()
    runs = PaperRuns(of, tmp_path, quick=True)
    for item in of.items:
        kept = reproduce(runs, item)
        assert unexplained([*cells(of, item, kept), *claims(item, kept)]) == []
