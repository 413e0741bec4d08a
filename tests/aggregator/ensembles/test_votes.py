"""What the protocols of votes ask, where answers go, and what every variant learns and charges."""

import json

import numpy as np
import pytest
from support.worlds import run

from aggregator.collectors.vectors import ClippedMean
from aggregator.ensembles.output import Ensemble
from aggregator.ensembles.votes import ShareAnswers, contrasts_of, share_norm
from aggregator.protocols.majority_vote import MajorityVote
from aggregator.protocols.soft_vote.soft_vote import SoftVote
from aggregator.releases.models import ReleasedModels
from aggregator.trial.feature_fitting import fit
from aggregator.trial.plan import PublicNumbers, VariantPlan
from aggregator.trial.public_rows import PublicRows
from federation.contract.errors import InputError
from federation.contract.query import Submission
from federation.engines.inline import open_grid
from federation.numerics.rows import contrasts
from federation.queries.votes import BALLOT_PARTS, ProbabilitiesQuestion, StatisticQuestion, Training, VotesQuestion

BOTH = "party_and_auxiliary_row"
STATISTIC = {
    "unit": {},
    "isotropic": {"submit": "votes", "shape": "isotropic"},
    "erm": {"submit": "votes", "decoder": "erm"},
    "erm_isotropic": {"submit": "votes", "decoder": "erm", "shape": "isotropic", "noise": "gaussian"},
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


def test_every_variant_learns_gives_equal_bytes_whatever_the_cohorts_and_charges_its_sensitivity(
    make_plan, public, tmp_path
):
    plan = make_plan(variants=plans({**STATISTIC, **OUTPUT, **VOTES}), epsilons=(30.0,), delta=1e-4)
    files, summary = run(open_grid("inline"), plan, 40)
    assert run(open_grid("inline"), plan, 7) == (files, summary)
    labels = public.rows[:, :3].argmax(axis=1)
    for variant in plan.variants:
        models = ReleasedModels.load(tmp_path / f"{variant.name}.npz")
        for draw in range(3):
            right = (models.scores(public.rows, 0, draw).argmax(axis=1) == labels).mean()
            assert right > (0.5 if variant.name == "published" else 0.6), variant.name
    parameters = {entry["variant"]: entry["guarantee"]["parameters"] for entry in summary["ledger"]["releases"]}
    dimensions = {name: known["dimension"] for name, known in parameters.items()}
    assert parameters["unit"]["sensitivity"] == pytest.approx(2 / 40, rel=1e-6)
    assert dimensions["unit"] == dimensions["isotropic"] == dimensions["erm"] == dimensions["tight"] == 2 * 3
    assert dimensions["published"] == 3 * 3
    assert dimensions["votes"] == 2 * 120
    assert parameters["votes"]["sensitivity"] == pytest.approx(np.sqrt(2 * 120) / 40)
    assert parameters["erm"]["sensitivity"] == pytest.approx(np.sqrt(2) / 40, rel=1e-6)
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


@pytest.mark.parametrize("kind", [SoftVote, MajorityVote])
def test_features_that_rest_on_a_protected_row_are_refused_before_any_data_is_read_or_anybody_is_asked(kind):
    chosen = kind(perturb="output", protect=BOTH)
    assert str(chosen.unit) == BOTH
    chosen.check_setting(["unit_norm"], {})
    with pytest.raises(InputError):
        chosen.check_setting(["scale", "unit_norm"], {})
    kind().check_setting(["scale", "unit_norm"], {})
    feature_map = fit([{"whiten": 2}, "unit_norm"], np.eye(3))
    public = PublicRows(feature_map, feature_map.transform(np.eye(3)), [{"whiten": 2}, "unit_norm"])
    with pytest.raises(InputError):
        chosen.question(public, Training(feature_map, 2, {}, 0))


ASKED = {
    "votes": ({"submit": "votes"}, VotesQuestion, Ensemble),
    "unit shares": ({}, StatisticQuestion, ShareAnswers),
    "probabilities": ({"submit": "votes", "ballot": "probabilities"}, ProbabilitiesQuestion, Ensemble),
    "shares": ({"share": "raw"}, StatisticQuestion, ShareAnswers),
    "shares of probabilities": ({"share": "raw", "ballot": "probabilities"}, StatisticQuestion, ShareAnswers),
}


@pytest.mark.parametrize("name", ASKED)
def test_what_is_asked_and_where_it_goes(name):
    options, question, collector = ASKED[name]
    chosen = SoftVote(**options)
    rows = np.random.default_rng(0).normal(size=(20, 4))
    feature_map = fit(["unit_norm"], rows)
    public = PublicRows(feature_map, feature_map.transform(rows), ["unit_norm"])
    asked = chosen.question(public, Training(feature_map, 3, {}, 0))
    assert type(asked) is question
    kept = chosen.collector(public, asked, 7)
    assert type(kept) is collector
    assert kept.parties == 7


@pytest.mark.parametrize(("classes", "expected"), [(None, None), (0, 0), (1, 0), (2, 1), (10, 9)])
def test_contrasts_are_classes_less_one(classes, expected):
    assert contrasts_of(PublicNumbers(1e-6, classes=classes)) == expected


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


PARTIES = 9


def world(classes, width=4, rows=40):
    points = np.random.default_rng(classes).normal(size=(rows, width)) * [1, 2, 0.5, 0.1]
    feature_map = fit(["unit_norm"], points)
    return PublicRows(feature_map, feature_map.transform(points)), Training(feature_map, classes, {}, 0)


def perturbed(chosen, classes, arrays, parties):
    public, training = world(classes)
    question = chosen.question(public, training)
    collector = chosen.collector(public, question, PARTIES)
    refused = collector.add(Submission(question.kind, np.asarray(parties), arrays))
    return chosen.prepare(collector), refused


def shares_of(chosen, classes, votes):
    """The shares of the statistic of votes (P, N, C)."""
    public, _ = world(classes)
    rows = public.coordinates(chosen.shape).rows
    return contrasts(classes).T @ np.einsum("pnc,nr->pcr", votes, rows) / len(rows)


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("options", [{}, {"shape": "isotropic"}, {"decoder": "erm"}])
def test_without_noise_shares_and_votes_give_the_same_model(classes, options):
    labels = np.random.default_rng(1).integers(0, classes, (PARTIES - 2, 40))
    ids = np.arange(1, PARTIES - 1)
    by_votes, _ = perturbed(SoftVote(submit="votes", **options), classes, {"votes": labels.astype(np.uint8)}, ids)
    chosen = SoftVote(share="raw", **options)
    by_shares, refused = perturbed(
        chosen, classes, {"statistic": shares_of(chosen, classes, np.eye(classes)[labels])}, ids
    )
    assert refused == {}
    np.testing.assert_allclose(by_shares.value, by_votes.value, atol=1e-12)
    models = [one.decode(one.value[None], None) for one in (by_shares, by_votes)]
    np.testing.assert_allclose(models[0], models[1], atol=1e-9 if options else 1e-12)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_probability_ballots_and_their_shares_give_the_same_statistic(classes):
    random, ids = np.random.default_rng(3), np.arange(PARTIES - 2)
    parts = random.multinomial(BALLOT_PARTS, random.dirichlet(np.full(classes, 0.3)), size=(len(ids), 40))
    parts[::2] = BALLOT_PARTS * np.eye(classes, dtype=int)[parts[::2].argmax(axis=2)]  # one-hot ones among them
    wire = parts[..., :-1].reshape(len(parts), -1).astype(np.uint8)
    by_votes, refused = perturbed(SoftVote(submit="votes", ballot="probabilities"), classes, {"parts": wire}, ids)
    assert refused == {}
    chosen = SoftVote(share="raw", ballot="probabilities")
    shares = shares_of(chosen, classes, parts / BALLOT_PARTS)
    by_shares, _ = perturbed(chosen, classes, {"statistic": shares}, ids)
    np.testing.assert_allclose(by_shares.value, by_votes.value, atol=1e-12)


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("shape", ["whitened", "isotropic"])
def test_hostile_shares_move_the_statistic_by_the_sensitivity_and_no_further(classes, shape):
    chosen = SoftVote(share="raw", shape=shape)
    public, training = world(classes)
    question = chosen.question(public, training)
    honest = shares_of(chosen, classes, np.eye(classes)[np.random.default_rng(1).integers(0, classes, (PARTIES, 40))])
    direction = np.random.default_rng(2).normal(size=honest.shape[1:])
    direction /= np.linalg.norm(direction)
    attacks = [sign * length * direction for sign in (-1, 1) for length in (1e-300, 0.1, question.largest)]
    attacks += [np.full_like(direction, value) for value in (question.largest, 2.0, np.nan, -np.inf, 0.0)]
    values, charged = [], set()
    for attack in attacks:
        sent = honest.copy()
        sent[4] = attack
        found, _ = perturbed(chosen, classes, {"statistic": sent}, np.arange(PARTIES))
        values.append(found.value)
        charged.add(found.sensitivity)
    [sensitivity] = charged
    furthest = max(np.linalg.norm(a - b) for a in values for b in values)
    norm = share_norm(public.coordinates(shape), classes)
    assert furthest <= sensitivity
    assert furthest == pytest.approx(2 * norm / PARTIES, rel=1e-9)
    assert sensitivity == pytest.approx(2 * norm / PARTIES, rel=1e-9)
    if shape == "whitened":
        assert norm == pytest.approx(np.sqrt(1 - 1 / classes), rel=1e-9)


@pytest.mark.parametrize("classes", [2, 3, 6])
def test_no_votes_make_a_share_longer_than_the_public_norm_and_the_worst_ones_reach_it(classes):
    public, _ = world(classes)
    chosen = SoftVote(share="raw")
    norm = share_norm(public.whitening, classes)
    random = np.random.default_rng(5)
    found = shares_of(chosen, classes, random.dirichlet(np.full(classes, 0.1), size=(200, 40)))
    assert np.linalg.norm(found, axis=(1, 2)).max() <= norm
    constant = PublicRows(fit(["unit_norm"], np.ones((9, 1))), np.ones((9, 1)))
    share = contrasts(classes).T @ np.eye(classes)[np.zeros(9, int)].T @ constant.whitening.rows / 9
    assert np.linalg.norm(share) == pytest.approx(share_norm(constant.whitening, classes), rel=1e-9)


def test_a_missing_party_is_the_uniform_vote_and_shares_are_of_the_statistic_only():
    chosen = SoftVote(share="raw")
    uniform = shares_of(chosen, 3, np.full((1, 40, 3), 1 / 3))
    there, _ = perturbed(chosen, 3, {"statistic": uniform}, [0])
    missing, _ = perturbed(chosen, 3, {"statistic": uniform[:0]}, np.empty(0, np.int64))
    np.testing.assert_allclose(there.value, missing.value, atol=1e-15)
    share = np.zeros((1, 2, 4))
    share[0, 1, 2] = 1.0
    there, _ = perturbed(SoftVote(), 3, {"statistic": share}, [3])
    missing, _ = perturbed(SoftVote(), 3, {"statistic": share[:0]}, np.empty(0, np.int64))
    assert np.linalg.norm(there.value - missing.value) == pytest.approx(1 / PARTIES, rel=1e-12)
    assert there.sensitivity == missing.sensitivity == pytest.approx(2 / PARTIES, rel=1e-12)
    for options in ({"perturb": "output"}, {"perturb": "votes", "noise": "gaussian"}):
        with pytest.raises(InputError, match=r"submit.*statistic"):
            SoftVote(share="scores", **options)
    assert SoftVote(perturb="output", regularisation=1.0).on_minimiser
    assert MajorityVote().on_minimiser
    assert not SoftVote().on_minimiser


def moved(attacks, parties=PARTIES, classes=3, share="both", answering=None):
    """How far the release moves at most where one party of many sends any two of these, and what is charged."""
    chosen = SoftVote(share=share)
    public, training = world(classes)
    question = chosen.question(public, training)
    honest = np.random.default_rng(1).normal(size=(parties, *question.fields()["statistic"].shape))
    values, charged = [], set()
    for attack in attacks:
        collector = chosen.collector(public, question, parties)
        sent = honest / np.linalg.norm(honest, axis=(1, 2), keepdims=True)
        sent[parties // 2] = attack
        here = slice(parties // 2, parties // 2 + answering) if answering else slice(None)
        collector.add(Submission(question.kind, np.arange(parties)[here], {"statistic": sent[here]}))
        found = chosen.prepare(collector)
        values.append(found.value)
        charged.add(found.sensitivity)
    [sensitivity] = charged
    return max(np.linalg.norm(a - b) for a in values for b in values), sensitivity


@pytest.mark.parametrize("share", ["both", "probabilities", "scores"])
@pytest.mark.parametrize(("classes", "parties"), [(2, 5), (3, 9), (6, 40)])
def test_nothing_a_party_sends_moves_unit_shares_by_more_than_2_over_m_and_opposite_ones_do(share, classes, parties):
    shape = (classes - 1, 4)
    random = np.random.default_rng(classes)
    direction = random.normal(size=shape)
    direction /= np.linalg.norm(direction)
    lengths = (-1.0, 1.0, 1e-300, -1e-8, 0.3, -0.999, 0.0, np.nan, np.inf, 2.0)
    attacks = [length * direction for length in lengths]
    attacks += list(random.normal(size=(40, *shape)) * 10.0 ** random.uniform(-8, -1, size=(40, 1, 1)))
    furthest, sensitivity = moved(attacks, parties, classes, share)
    assert furthest <= sensitivity
    assert furthest == pytest.approx(2 / parties, rel=1e-12)
    assert sensitivity == pytest.approx(2 / parties, rel=1e-12)


def test_the_search_would_find_a_norm_that_is_not_enforced_and_a_mean_over_those_who_answered(monkeypatch):
    with monkeypatch.context() as context:
        context.setattr("federation.features.feature_map.Ball.units", lambda self, vectors: vectors)
        direction = np.zeros((2, 4))
        direction[0, 0] = 1.0 + 5e-10  # which the declared range allows
        furthest, sensitivity = moved([direction, -direction])
        assert furthest > sensitivity
    direction = np.eye(2, 4) / np.sqrt(2)
    monkeypatch.setattr(ClippedMean, "value", lambda mean: mean._sum * 2.0**-mean._bits / 5)
    furthest, sensitivity = moved([direction, -direction], answering=5)
    assert furthest == pytest.approx(2 / 5, rel=1e-9)
    assert furthest > sensitivity
