"""EXPRIL's tables: settings as the paper has them, and guarantees as the page says."""

import pytest

from aggregator.trial.plan import PublicNumbers
from federation.contract.guarantee import Adjacency, Unit
from scenarios.reproductions.measure import scenario_of
from scenarios.reproductions.paper import paper, published
from scenarios.settings.protocol_options import promise
from scenarios.settings.sweep import variants

PAPER = paper("lacombe")
PARTS, CHOICES = (item.parts for item in PAPER.items if item.name in ("table2", "choices"))
AS_PUBLISHED = ("published-cumulative", "published-instantaneous", "free-cumulative", "free-instantaneous")


def test_every_column_and_row_of_table_2_is_measured():
    known = published("lacombe", "table2")
    [table] = [item for item in PAPER.items if item.name == "table2"]
    measured = {one.name for one in table.series}
    assert {series for _, series, _ in known} <= measured
    assert {setting for setting, _, _ in known} == set(table.settings)


@pytest.mark.parametrize("part", CHOICES, ids=lambda part: part.setting)
def test_a_choice_differs_from_table_2_in_what_it_is_called_only(part):
    [own] = [one for one in PARTS if one.setting == part.setting.partition(",")[0]]
    found, expected = (
        {variant.name: {"memory": "cumulative", **variant.options} for variant in variants(scenario_of(PAPER, one))}
        for one in (part, own)
    )
    brief = {"epochs": 20} if part.setting.endswith("20 epochs") else {}
    assert {name: found[name] for name in AS_PUBLISHED} == {name: expected[name] | brief for name in AS_PUBLISHED}


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.setting)
def test_networks_queries_and_epsilon_are_those_of_table_1(part):
    scenario = scenario_of(PAPER, part)
    known = {variant.name: dict(variant.options) for variant in variants(scenario)}
    wide = [32, 32] if part.setting in "CDE" else [16, 256, 256, 16]
    for name in AS_PUBLISHED:
        assert list(known[name]["hidden"]) == wide
        assert (known[name]["labels"], known[name]["rounding"]) == ("least_squares", "hard")
    assert scenario.privacy.epsilon == (1.0,)


def test_ours_keeps_the_guarantee_that_the_paper_claims():
    scenario = scenario_of(PAPER, PARTS[2])
    [ours] = [variant for variant in variants(scenario) if variant.name == "ours"]
    spent = promise(ours.kind, ours.options, 1.0, PublicNumbers(scenario.privacy.delta)).spends
    assert (spent.epsilon, spent.delta, spent.unit, spent.adjacency) == (1.0, 0.0, Unit.ROW, Adjacency.ADD_REMOVE)
