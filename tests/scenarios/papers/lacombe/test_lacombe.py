"""EXPRIL's tables: settings as the paper has them, and guarantees as the page says."""

import pytest

from aggregator.world.public_numbers import PublicNumbers
from federation.contract.guarantee import Adjacency, Unit
from scenarios.papers.lacombe.lacombe import PAPER, PARTS
from scenarios.reproductions.paper_runs import scenario_of
from scenarios.reproductions.published import published
from scenarios.settings.protocol_options import promise
from scenarios.settings.sweep import variants


def test_every_column_and_row_of_table_2_is_measured():
    known = published("lacombe", "table2")
    [table] = [item for item in PAPER.items if item.name == "table2"]
    measured = {one.name for one in table.series}
    assert {series for _, series, _ in known} <= measured
    assert {setting for setting, _, _ in known} == set(table.settings)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.setting)
def test_networks_queries_and_epsilon_are_those_of_table_1(part):
    scenario = scenario_of(PAPER, part)
    known = {variant.name: dict(variant.options) for variant in variants(scenario)}
    wide = [32, 32] if part.setting in "CDE" else [16, 256, 256, 16]
    for name in ("published-cumulative", "published-instantaneous", "free-cumulative", "free-instantaneous"):
        assert list(known[name]["hidden"]) == wide
        assert (known[name]["labels"], known[name]["rounding"]) == ("least_squares", "hard")
    assert scenario.privacy.epsilon == (1.0,)


def test_ours_keeps_the_guarantee_that_the_paper_claims():
    scenario = scenario_of(PAPER, PARTS[2])
    [ours] = [variant for variant in variants(scenario) if variant.name == "ours"]
    spent = promise(ours.kind, ours.options, 1.0, PublicNumbers(scenario.privacy.delta)).spends
    assert (spent.epsilon, spent.delta, spent.unit, spent.adjacency) == (1.0, 0.0, Unit.ROW, Adjacency.ADD_REMOVE)
