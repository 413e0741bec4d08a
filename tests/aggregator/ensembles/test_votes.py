"""What the protocols of votes ask, where answers go, and what every variant learns and charges."""

from __future__ import annotations

import json

import numpy as np
import pytest
from support.worlds import run

from aggregator.ensembles.output import Ensemble
from aggregator.ensembles.votes import ShareAnswers, contrasts_of
from aggregator.protocols.majority_vote import MajorityVote
from aggregator.protocols.soft_vote.soft_vote import SoftVote
from aggregator.releases.models import ReleasedModels
from aggregator.trial.feature_fitting import fit
from aggregator.trial.plan import PublicNumbers, VariantPlan
from aggregator.trial.public_rows import PublicRows
from federation.contract.errors import InputError
from federation.contract.query import Submission
from federation.engines.inline import open_grid
from federation.queries.votes import ProbabilitiesQuestion, StatisticQuestion, Training, VotesQuestion

BOTH = "party_and_auxiliary_row"
STATISTIC = {
    "unit": {},
    "isotropic": {"submit": "votes", "shape": "isotropic"},
    "discrepancy": {"submit": "votes", "decoder": "discrepancy"},
    "discrepancy_isotropic": {"submit": "votes", "decoder": "discrepancy", "shape": "isotropic", "noise": "gaussian"},
    "shares_isotropic": {"share": "raw", "shape": "isotropic"},
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
    assert parameters["unit"]["sensitivity"] == pytest.approx(2 / 40, rel=1e-6)
    assert dimensions["unit"] == dimensions["isotropic"] == dimensions["discrepancy"] == dimensions["tight"] == 2 * 3
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


ASKED = {
    "votes": ({"submit": "votes"}, VotesQuestion, Ensemble, 100),
    "unit shares": ({}, StatisticQuestion, ShareAnswers, 8),
    "probabilities": ({"submit": "votes", "ballot": "probabilities"}, ProbabilitiesQuestion, Ensemble, 200),
    "shares": ({"share": "raw"}, StatisticQuestion, ShareAnswers, 8),
    "shares of probabilities": ({"share": "raw", "ballot": "probabilities"}, StatisticQuestion, ShareAnswers, 8),
}


@pytest.mark.parametrize("name", ASKED)
def test_what_is_asked_where_it_goes_and_how_many_numbers_leave_a_party(name):
    options, question, collector, numbers = ASKED[name]
    chosen = SoftVote(**options)
    rows = np.random.default_rng(0).normal(size=(20, 4))
    feature_map = fit(["unit_norm"], rows)
    public = PublicRows(feature_map, feature_map.transform(rows), ["unit_norm"])
    asked = chosen.question(public, Training(feature_map, 3, {}, 0))
    assert type(asked) is question
    kept = chosen.collector(public, asked, 7)
    assert type(kept) is collector
    assert kept.parties == 7
    known = PublicNumbers(1e-6, classes=3, features=4, public_rows=100)
    assert (chosen.sends(known).numbers, chosen.sends(PublicNumbers(1e-6)).numbers) == (numbers, None)
    assert not chosen.sends(known).private  # the aggregator sees it as it is


@pytest.mark.parametrize(("classes", "expected"), [(None, None), (0, 0), (1, 0), (2, 1), (10, 9)])
def test_contrasts_are_classes_less_one(classes, expected):
    assert contrasts_of(PublicNumbers(1e-6, classes=classes)) == expected


def test_minimisers_are_what_gets_the_noise_of_outputs_only():
    assert SoftVote(perturb="output", regularisation=1.0).on_minimiser
    assert MajorityVote().on_minimiser
    assert not SoftVote().on_minimiser


def test_features_that_rest_on_a_protected_row_are_refused_before_any_data_is_read():
    chosen = MajorityVote(protect=BOTH)
    assert str(chosen.unit) == BOTH
    chosen.check_setting(["unit_norm"], {})
    with pytest.raises(InputError, match="fitted on the auxiliary rows"):
        chosen.check_setting(["scale", "unit_norm"], {})
    MajorityVote().check_setting(["scale", "unit_norm"], {})


@pytest.mark.parametrize(
    ("stages", "chosen", "asked"),
    [
        (["scale", {"whiten": 2}, "unit_norm"], "both", "both"),
        (["scale", "unit_norm"], "both", "probabilities"),
        (["scale", "unit_norm"], "scores", "scores"),
    ],
)
def test_scores_count_by_default_behind_whitened_features_only(stages, chosen, asked):
    rows = np.random.default_rng(0).normal(size=(20, 4)) * [1, 10, 100, 1000]
    feature_map = fit(stages, rows)
    public = PublicRows(feature_map, feature_map.transform(rows), stages)
    assert SoftVote(share=chosen).question(public, Training(feature_map, 3, {}, 0)).share == asked


def test_equal_public_rows_are_voted_on_once_and_count_as_often_as_they_are_there(rng):
    few = rng.normal(size=(5, 2))
    again = np.array([3, 0, 0, 4, 1, 2, 3])
    feature_map = fit(["unit_norm"], few)
    public = PublicRows(feature_map, feature_map.transform(few[again]), ["unit_norm"])
    training = Training(feature_map, 3, {"name": "logistic", "parameters": {}}, 0)
    protocol = SoftVote(perturb="output")
    asked = protocol.question(public, training)
    world = protocol.collector(public, asked, 2)
    cast = rng.integers(0, 3, (2, 5)).astype(np.uint8)
    world.add(Submission("votes", np.array([0, 1]), {"votes": cast}))
    places = [int(np.flatnonzero((asked.rows == row).all(axis=1))[0]) for row in public.rows]
    np.testing.assert_array_equal(world.shares(), np.eye(3)[cast].mean(axis=0)[places])
    everything = SoftVote(perturb="output", protect=BOTH)  # how many rows differ follows from what is protected
    np.testing.assert_array_equal(everything.question(public, training).rows, public.rows)
