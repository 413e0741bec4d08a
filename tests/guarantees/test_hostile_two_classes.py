"""Whatever a party of an exchange or of a mean operator sends, it costs that party its own answer only."""

import pytest
from support.hostile_answers import HONEST, KINDS
from support.two_class_parties import plan_fixture
from support.worlds import run

from aggregator.trial.plan import VariantPlan
from federation.contract.plugins import Reference
from federation.engines.inline import open_grid

LINEAR = {"learner": "linear"}
VARIANTS = (
    VariantPlan("sums", "mean_operator", {"unlabelled": "auxiliary"}),
    VariantPlan("row sums", "mean_operator", {"protect": "row", "noise": "pure"}),
    VariantPlan("exchange", "error_marginals", LINEAR),
    VariantPlan("published", "error_marginals", {**LINEAR, "protect": "label", "noise": "published"}),
)

plan = plan_fixture("mean_operator", {})


@pytest.mark.slow
def test_answers_out_of_form_are_as_good_as_none(plan):
    chosen = plan(variants=VARIANTS, epsilons=(1.0,), parties=HONEST + len(KINDS), quorum=0.1)
    dropped = Reference("support.hostile_answers:Malformed", {"dropped": True})
    expected, absent = run(open_grid("inline"), chosen, 1, dropped)
    files, summary = run(open_grid("inline"), chosen, 1, Reference("support.hostile_answers:Malformed"))
    assert absent["failures"] == {"dropped out": len(KINDS)}
    assert summary["answered"] == absent["answered"] == HONEST
    assert sum(summary["failures"].values()) == len(KINDS)
    assert sorted(files) == sorted(f"{variant.name}.npz" for variant in VARIANTS)
    assert files == expected
