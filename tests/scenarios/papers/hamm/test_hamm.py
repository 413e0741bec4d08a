"""Figures 2 to 4: the paper's settings, the same guarantee for both of ours, and a stand-in where data is not here."""

from dataclasses import replace

import pytest

from aggregator.trial.plan import PublicNumbers
from federation.contract.guarantee import Adjacency, Unit
from scenarios.reproductions.measure import PaperRuns, scenario_of
from scenarios.reproductions.paper import paper
from scenarios.settings.protocol_options import promise
from scenarios.settings.sweep import variants

PAPER = paper("hamm")
ACTIVITY, INTRUSIONS, URLS = (item.parts for item in PAPER.items if item.name in ("fig2", "fig3", "fig4"))
FIGURES = [item for item in PAPER.items if item.parts]
PARTS = [*ACTIVITY, *INTRUSIONS, *URLS, *(part.missing for part in URLS)]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: f"{part.scenario}-{part.setting}")
def test_both_of_ours_hide_all_of_a_party(part):
    scenario = scenario_of(PAPER, part)
    private = [each for each in variants(scenario) if each.kind not in ("pooled", "individual")]
    private = [each for each in private if not each.name.endswith("-free")]
    assert private
    for each in private:
        spent = promise(each.kind, each.options, 1.0, PublicNumbers(scenario.privacy.delta)).spends
        assert (spent.epsilon, spent.unit, spent.adjacency) == (1.0, Unit.PARTY, Adjacency.REPLACE), each.name
        assert spent.delta == (1e-6 if each.name == "soft-delta" else 0.0), each.name


@pytest.mark.parametrize("item", FIGURES, ids=lambda item: item.name)
def test_every_place_of_every_curve_is_measured(item):
    for setting in item.settings:
        runs = [scenario_of(PAPER, part) for part in item.parts if part.setting == setting]
        names = {variant.name for run in runs for variant in variants(run)}
        assert {pick.variant for one in item.series for pick in one.picks().values()} <= names
        for run in runs if item.axis else ():  # what has no noise has no places
            assert {1 / epsilon for epsilon in run.privacy.epsilon} == {float(x) for x in item.at if x != "0"}


@pytest.mark.parametrize("part", [ACTIVITY[0], INTRUSIONS[0], URLS[0]], ids=lambda part: part.scenario)
def test_published_variants_have_the_bounds_and_the_regularisation_of_the_paper(part):
    scenario = scenario_of(PAPER, part)
    known = {variant.name: dict(variant.options) for variant in variants(scenario)}
    for name in ("vote", "soft", "avg"):
        assert known[name]["sensitivity"] == "published"
        assert known[f"{name}-free"]["noise"] == "off"
        assert known[name].get("regularisation", 1e-4) == 1e-4
    assert (known["soft"]["perturb"], known["avg"]["average"]) == ("output", "plain")
    assert known["soft"]["submit"] == known["soft-free"]["submit"]


def test_urls_that_are_not_here_are_replaced_and_the_page_says_so(tmp_path):
    runs = PaperRuns(PAPER, tmp_path, data_dir=tmp_path)
    for part in URLS:
        found, why = runs.available(part)
        assert found == part.missing
        assert "malicious_url" in why
        assert "its numbers say nothing of URLs" in found.substitute
        assert runs.scenario(found).parties.rows == runs.scenario(part).parties.rows == 9
    assert runs.available(replace(URLS[0], missing=None))[0] is None
