"""Whatever a party of two classes sends: malformed answers cost that party its own, and opposite ones turn no model."""

from pathlib import Path

import numpy as np
import pytest
from support.hostile_answers import HONEST, KINDS
from support.two_class_parties import draw, plan_fixture
from support.worlds import run, run_in_cohorts

from aggregator.contract.registry import model, protocol
from aggregator.trial.plan import VariantPlan
from federation.contract.plugins import Reference
from federation.engines.inline import open_grid

LINEAR = {"learner": "linear"}
VARIANTS = (
    VariantPlan("gaussian", "mean_operator", {"noise": "gaussian"}),
    VariantPlan("auto", "mean_operator", {}),
    VariantPlan("row sums", "mean_operator", {"protect": "row"}),
    VariantPlan("exchange", "error_marginals", LINEAR),
    VariantPlan("labels", "error_marginals", {**LINEAR, "protect": "label"}),
)
SECURE = VariantPlan("secure", "mean_operator", {"trust": "secure", "noise": "gaussian"})
SIZES = {"parties": 20, "private_rows": 20 * 60 + 10 * 7, "epsilons": (0.5,), "draws": 1}

plan = plan_fixture("mean_operator", {})


def holdings(hostile):
    return Reference("support.hostile_answers:Opposed", {"hostile": hostile})


def accuracies(directory, variants=VARIANTS):
    rows, labels = draw(1234, 1000)
    found = {}
    for variant in variants:
        models = model(protocol(variant.kind).model).load(Path(directory) / f"{variant.name}.npz")
        found[variant.name] = float(np.mean(models.predicted(0, 0, rows) == labels))
    return found


def checks(summary):
    return {entry["variant"]: entry["checks"] for entry in summary["ledger"]["releases"]}


@pytest.mark.slow
def test_one_hostile_party_is_scaled_or_clipped_and_costs_little(plan):
    chosen = plan(variants=VARIANTS, **SIZES)
    honest_files, honest = run(open_grid("inline"), chosen, 20, holdings([]))
    expected = accuracies(chosen.run.directory)
    bare_files, bare = run(open_grid("inline"), plan(variants=VARIANTS, robust=False, **SIZES), 20, holdings([]))
    assert honest_files == bare_files  # no honest answer is changed, so that not a byte is
    _, summary = run_in_cohorts(chosen, holdings([3]), sizes=(7,))
    assert summary["failures"] == {}
    found = accuracies(chosen.run.directory)
    for name, value in found.items():
        assert value >= expected[name] - 0.03, name
    for told, scaled in ((checks(honest), False), (checks(summary), True)):
        for name, lines in told.items():
            [line] = [one for one in lines if "scaled" in one]
            assert (" 0 scaled to what honest ones reach, 0 clipped" not in line) == scaled, name
    assert not any("scaled" in line for lines in checks(bare).values() for line in lines)


def test_as_they_come_the_same_answer_turns_models(plan):
    chosen = plan(variants=VARIANTS, robust=False, **SIZES)
    run(open_grid("inline"), chosen, 20, holdings([3]))
    found = accuracies(chosen.run.directory)
    for name in ("gaussian", "exchange", "labels"):
        assert found[name] < 0.75, name


def test_shares_of_one_noise_are_not_touched(plan):
    files, summary = run(open_grid("inline"), plan(variants=(SECURE,), **SIZES), 20, holdings([]))
    assert files == run(open_grid("inline"), plan(variants=(SECURE,), robust=False, **SIZES), 20, holdings([]))[0]
    assert not any("scaled" in line for line in checks(summary)["secure"])


MALFORMED = (
    VariantPlan("sums", "mean_operator", {"unlabelled": "auxiliary"}),
    VariantPlan("row sums", "mean_operator", {"protect": "row", "noise": "pure"}),
    VariantPlan("exchange", "error_marginals", LINEAR),
    VariantPlan("published", "error_marginals", {**LINEAR, "protect": "label", "noise": "published"}),
)


@pytest.mark.slow
def test_answers_out_of_form_are_as_good_as_none(plan):
    chosen = plan(variants=MALFORMED, epsilons=(1.0,), parties=HONEST + len(KINDS), quorum=0.1)
    dropped = Reference("support.hostile_answers:Malformed", {"dropped": True})
    expected, absent = run(open_grid("inline"), chosen, 1, dropped)
    files, summary = run(open_grid("inline"), chosen, 1, Reference("support.hostile_answers:Malformed"))
    assert absent["failures"] == {"dropped out": len(KINDS)}
    assert summary["answered"] == absent["answered"] == HONEST
    assert sum(summary["failures"].values()) == len(KINDS)
    assert sorted(files) == sorted(f"{variant.name}.npz" for variant in MALFORMED)
    assert files == expected
