"""Every variant of the vote protocols through the two apps: what it learns, and what its ledger says."""

from __future__ import annotations

import json

import numpy as np
import pytest
from support.worlds import run

from aggregator.protocols.majority_vote import MajorityVote
from aggregator.protocols.soft_vote.soft_vote import SoftVote
from aggregator.releases.models import ReleasedModels
from aggregator.world.fitting import fit
from aggregator.world.plan import VariantPlan
from aggregator.world.public_rows import PublicRows
from federation.contract.errors import InputError
from federation.grids.launch import open_grid
from federation.questions.votes import Training

BOTH = "party_and_auxiliary_row"
STATISTIC = {
    "isotropic": {"shape": "isotropic"},
    "discrepancy": {"decoder": "discrepancy"},
    "discrepancy_isotropic": {"decoder": "discrepancy", "shape": "isotropic", "noise": "gaussian"},
    "shares_isotropic": {"submit": "statistic", "shape": "isotropic"},
}
OUTPUT = {
    "tight": {"perturb": "output", "regularisation": 1.0},
    "public_features": {"perturb": "output", "sensitivity": "public_features", "regularisation": 1.0},
    "published": {"perturb": "output", "sensitivity": "published", "regularisation": 1.0},
}
VOTES = {"votes": {"perturb": "votes", "noise": "gaussian", "regularisation": 0.01}}
ROW = {
    "row": {"perturb": "output", "protect": BOTH, "regularisation": 1.0},
    "row_diameter": {"perturb": "output", "protect": BOTH, "regularisation": 1.0, "sensitivity": "diameter"},
}


def plans(variants):
    return tuple(VariantPlan(name, "soft_vote", options) for name, options in variants.items())


@pytest.fixture
def plan(make_plan):
    return make_plan(variants=plans({**STATISTIC, **OUTPUT, **VOTES}), epsilons=(30.0,), delta=1e-4)


def test_every_variant_learns_and_gives_equal_bytes_whatever_the_cohorts(plan, public, tmp_path):
    files, summary = run(open_grid("inline"), plan, 40)
    assert run(open_grid("inline"), plan, 7) == (files, summary)
    labels = public.rows[:, :3].argmax(axis=1)
    for variant in plan.variants:
        models = ReleasedModels.load(tmp_path / f"{variant.name}.npz")
        for draw in range(3):
            right = (models.scores(public.rows, 0, draw).argmax(axis=1) == labels).mean()
            assert right > (0.5 if variant.name == "published" else 0.6), variant.name


def test_the_ledger_says_what_each_variant_charges(plan):
    _, summary = run(open_grid("inline"), plan, 40)
    parameters = {entry["variant"]: entry["guarantee"]["parameters"] for entry in summary["ledger"]["releases"]}
    dimensions = {name: known["dimension"] for name, known in parameters.items()}
    assert dimensions["isotropic"] == dimensions["discrepancy"] == dimensions["tight"] == 2 * 3
    assert dimensions["published"] == 3 * 3
    assert dimensions["votes"] == 2 * 120
    assert parameters["votes"]["sensitivity"] == pytest.approx(np.sqrt(2 * 120) / 40)
    assert parameters["discrepancy"]["sensitivity"] == pytest.approx(np.sqrt(2) / 40, rel=1e-6)
    assert parameters["public_features"]["sensitivity"] < 0.9 * parameters["tight"]["sensitivity"]
    assert parameters["isotropic"]["sensitivity"] < 0.9 * np.sqrt(2) / 40


def test_a_protected_row_is_the_unit_of_its_guarantee(make_plan):
    plan = make_plan(variants=plans(ROW), features=("constant", "unit_norm"), epsilons=(30.0,))
    _, summary = run(open_grid("inline"), plan, 40)
    for entry in summary["ledger"]["releases"]:
        assert entry["guarantee"]["unit"] == BOTH
        texts = json.dumps(entry["guarantee"]["assumptions"])
        assert "the number of auxiliary rows is public" in texts
        assert "auxiliary rows are public whoever" not in texts
        assert "no stage of the feature map was fitted on the auxiliary rows" in entry["checks"]
    assert [total["unit"] for total in summary["ledger"]["published_together"]] == [BOTH]


@pytest.mark.parametrize("features", [({"whiten": "auto"}, "unit_norm"), ("scale", "unit_norm"), ("constant",)])
def test_a_protected_row_is_refused_behind_a_map_that_rests_on_it(make_plan, features):
    plan = make_plan(variants=plans(ROW), features=features)
    with pytest.raises(InputError, match=r"fitted on the auxiliary rows|unit_norm as the last stage"):
        run(open_grid("inline"), plan, 40)


@pytest.mark.parametrize("kind", [SoftVote, MajorityVote])
def test_nobody_is_asked_when_a_protected_row_was_fitted_on(kind):
    chosen = kind(perturb="output", protect="party_and_auxiliary_row")
    rows = np.eye(3)
    feature_map = fit([{"whiten": 2}, "unit_norm"], rows)
    public = PublicRows(feature_map, feature_map.transform(rows), [{"whiten": 2}, "unit_norm"])
    with pytest.raises(InputError, match="whiten would be fitted on the auxiliary rows"):
        chosen.question(public, Training(feature_map, 2, {}, 0))
