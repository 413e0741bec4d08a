"""What run directories say of their guarantees, those of earlier releases and of deployed aggregators too.

What releases over periods have spent, in words.
"""

import re
from itertools import cycle

import pytest
from support.finished_runs import edited
from support.refusals import refused

from aggregator.contract.protocol import Place
from aggregator.contract.registry import protocol
from federation.contract.guarantee import Guarantee
from scenarios.reports.evidence import Reality, evidence, is_world, spent_over_periods
from scenarios.reports.guarantee_page import write_guarantee
from scenarios.scores.results import read_results
from scenarios.settings.guarantees import to_yaml
from scenarios.settings.schema import resolve
from scenarios.testing import small_trials as small


def read(directory):
    return evidence(directory, read_results(directory / "results.csv"))


def test_a_run_is_read_by_world_with_what_every_party_sent(make_run):
    found = read(make_run(settings=({"parties.count": 5}, {"parties.count": 9})))
    assert [world.place for world in found.worlds] == ["parties.count = 5", "parties.count = 9"]
    assert found.first is found.worlds[0]
    releases = found.first.of("soft_vote")
    assert [(one.guarantee.epsilon, one.sent) for one in releases] == [(0.1, 1352), (1.0, 1352), (10.0, 1352)]
    assert found.first.totals[0]["releases"] == 6
    assert (found.name, found.leading, found.written) == ("digits-vote", "soft_vote", "2026-01-01")
    assert found.first.parties is None  # neither recorded, nor to be had from such a scenario


def test_the_leading_variant_has_a_guarantee_and_a_run_without_a_ledger_has_a_page(make_run):
    assert read(make_run(values={"soft_vote-off": (0, 0, 0), "other": (0, 0, 0)})).leading == "other"
    assert read(make_run("none", values={"soft_vote-off": (0, 0, 0)})).leading is None
    directory = make_run("interrupted")
    (directory / "ledger.json").write_text('{"worlds": []}')
    assert (read(directory).worlds, read(directory).leading) == ((), None)
    assert "NO GUARANTEE" in write_guarantee(directory).read_text()


@pytest.mark.parametrize(
    ("entropies", "reality"),
    [
        (("seed",), Reality.SIMULATION),
        (("system",), Reality.UNSEEDED),
        ((None,), Reality.SIMULATION),
        (("system", "seed", "system"), Reality.SIMULATION),  # one seeded release makes a simulation
    ],
)
def test_noise_of_the_system_is_real_and_parties_are_not(make_run, entropies, reality):
    def change(ledger):
        for release, entropy in zip(ledger["worlds"][0]["releases"], cycle(entropies)):
            if entropy is not None:
                release["guarantee"]["parameters"]["entropy"] = entropy

    directory = make_run()
    edited(directory / "ledger.json", change)
    assert read(directory).reality is reality


def test_an_earlier_run_says_what_its_protocols_say_today(make_run):
    directory = make_run()
    (directory / "scenario.yaml").write_text(to_yaml(resolve("quickstart")))
    found = read(directory)
    shown = found.first.of("soft_vote")[2]
    assert (found.first.parties, found.first.public_rows, found.first.private_rows) == (200, 430, None)
    assert shown.noise_at is Place.AGGREGATOR
    assert "classifier" in shown.sends[0].what
    assert "to play public ones" in found.public_source


def test_where_public_rows_come_from(make_run):
    directory = make_run()
    sources = {"official": "the data set itself", "mine.csv": "file mine.csv", "0.25": "to play public"}
    for auxiliary, said in sources.items():
        (directory / "scenario.yaml").write_text(f"name: x\ndata: {{auxiliary: {auxiliary}}}\n")
        assert said in read(directory).public_source


def test_missing_and_damaged_files_are_refused(make_run, tmp_path):
    for name in ("ledger.json", "run.json", "scenario.yaml"):
        directory = make_run(name)
        (directory / name).write_text("[1]")
        refused(None, read, directory)
        (directory / name).unlink()
        refused(None, read, directory)
    (tmp_path / "world.json").write_text('{"ledger": {}, "bytes_per_party": {}}')
    refused(None, evidence, tmp_path)  # nobody knows what left a party


@pytest.mark.parametrize("simulation", [False, True])
def test_a_deployed_aggregators_directory_is_real(tmp_path, simulation):
    chosen = protocol("private_labels")
    real = {} if simulation else {"simulation": False, "noise_seed": None, "draws": 1, "parties_per_node": 1}
    plan = small.plan(chosen, "private_labels", {}, tmp_path, **real)
    provider = small.provider(chosen.requires)
    placement = small.Placement(plan.terms.parties, plan.run.parties_per_node, provider, small.SEED)
    small.run(plan, placement, None if simulation else small.SitesGrid())
    assert is_world(tmp_path)
    found = evidence(tmp_path)
    assert found.reality is (Reality.SIMULATION if simulation else Reality.DEPLOYED)
    [release] = found.first.releases
    assert isinstance(release.guarantee, Guarantee)
    assert release.noise_at is Place.PARTY
    assert [one.private for one in release.sends] == [False, True]
    assert (found.name, found.first.parties, found.first.draws) == ("a check", plan.terms.parties, plan.public.draws)
    assert (">REAL<" in write_guarantee(tmp_path).read_text()) is not simulation


ENTRY = {
    "swept": {"parties.count": 20}, "variant": "soft_vote", "each": 0.5, "unit": "party", "adjacency": "replace",
    "releases": 3, "about_one": 3, "epsilon": 1.5, "delta": 0.0, "budget": {"epsilon": 2.0, "delta": 1e-6},
}  # fmt: skip
PART = {**ENTRY, "unit": "label", "about_one": 1, "epsilon": 0.5}
OTHER = {**ENTRY, "variant": "other", "budget": None}
LEDGER = {"over_periods": {"spent": [ENTRY, PART, OTHER]}}


def test_each_unit_has_a_sentence_with_its_share_and_the_budget_and_one_variant_can_be_told_alone():
    first, part, other = spent_over_periods(LEDGER)
    assert first == (
        "parties.count = 20, soft_vote at ε = 0.5 in 3 periods: ε = 1.5, δ = 0 for one party (replace), which has part "
        "in 3 of them at most; the budget is ε = 2, δ = 1e-06"
    )
    assert re.search(r"0\.5.*0.*1", part)
    assert other.endswith("at most")
    assert [line.split(" at ")[0] for line in spent_over_periods(LEDGER, "other")] == ["parties.count = 20, other"]
    assert ["label" in line for line in spent_over_periods(LEDGER, parts=False)] == [False, False]
    assert spent_over_periods({"worlds": []}) == []
