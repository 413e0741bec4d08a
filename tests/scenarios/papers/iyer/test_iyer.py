"""Class ratios: settings as the paper has them, guarantees as the page says, and kept values that come out again."""

from pathlib import Path

import pytest

from aggregator.trial.plan import PublicNumbers
from federation.contract.guarantee import Adjacency, Guarantee, NoGuarantee, Unit
from scenarios.papers.iyer.iyer import Bag, errors, less, sizes
from scenarios.reproductions.measure import scenario_of
from scenarios.reproductions.paper import paper, published, read
from scenarios.settings.protocol_options import promise
from scenarios.settings.sweep import variants

KEPT = Path(__file__).resolve().parents[4] / "docs" / "reproductions"
TABLE_1 = published("iyer", "table1")
PAPER = paper("iyer")
BINARY, SEVERAL = (item.parts for item in PAPER.items if item.name in ("fig2", "fig3"))
PARTS = (*BINARY, *SEVERAL)


def spends(part, name):
    scenario = scenario_of(PAPER, part)
    [found] = [variant for variant in variants(scenario) if variant.name == name]
    return promise(found.kind, found.options, 0.05, PublicNumbers(scenario.privacy.delta)).spends


@pytest.mark.parametrize("part", [*PARTS, *(part.missing for part in PARTS if part.missing)], ids=lambda p: p.scenario)
def test_bags_are_twice_as_many_as_classes(part):
    scenario = scenario_of(PAPER, part)
    assert scenario.parties.count == 2 * TABLE_1[part.setting, "classes", ""].value
    assert scenario.parties.partition == {"majority": 0.05 if part.setting == "Mnist" else 0.1}
    assert (scenario.privacy.epsilon, scenario.privacy.delta) == ((0.05,), 0.05)


def test_bags_and_sets_are_as_large_as_the_paper_says_where_the_rows_suffice():
    for part in PARTS:
        scenario = scenario_of(PAPER, part)
        printed = TABLE_1[part.setting, "rows of a bag", ""].value, TABLE_1[part.setting, "rows of a set", ""].value
        same = (scenario.parties.rows, scenario.data.targets.rows) == printed
        assert same == (part.setting in ("Census", "Higgs", "Acoustic"))


def test_sizes_need_no_data(tmp_path, monkeypatch):
    monkeypatch.delenv("FEDERATION_DATA", raising=False)
    found = {(one.setting, one.series): one.value for one in sizes(True, tmp_path)}
    assert set(found) == {(part.setting, series) for part in PARTS for series in ("rows of a bag", "rows of a set")}
    assert found["Mnist", "rows of a bag"] == 2600


@pytest.mark.parametrize(("name", "delta"), [("private", 0.05), ("mmd-laplace", 0.0), ("mmd-pure", 0.0)])
def test_what_is_private_is_so_for_one_label_and_the_published_noise_has_no_guarantee(name, delta):
    spent = spends(SEVERAL[0], name)
    assert isinstance(spent, Guarantee)
    assert (spent.epsilon, spent.unit, spent.adjacency) == (0.05, Unit.LABEL, Adjacency.REPLACE)
    assert spent.delta == pytest.approx(delta, rel=1e-3)
    assert isinstance(spends(SEVERAL[0], "mmd-dirichlet"), NoGuarantee)


def test_published_estimators_choose_their_bandwidth():
    for part in (BINARY[0], SEVERAL[0]):
        known = {variant.name: dict(variant.options) for variant in variants(scenario_of(PAPER, part))}
        published_ones = [options for name, options in known.items() if name.startswith("mmd")]
        assert published_ones
        assert all((one["estimator"], one["bandwidth"]) == ("mmd", None) for one in published_ones)
        assert "psvm" not in known or known["psvm"]["bandwidth"] == "auto"


def test_kept_distortions_come_out_again_and_a_reduction_is_a_share_of_the_larger_error():
    [item] = [item for item in PAPER.items if item.name == "fig1a"]
    values = read(KEPT, PAPER, item).by_split("classes", "Scaled Dirichlet", "default", "3")
    found = errors(Bag(classes=3), "auto", 1000).mean(axis=1)
    assert [values[split] for split in sorted(values)] == pytest.approx(found, rel=1e-5)
    assert less(0.05, 0.2) == 0.75
