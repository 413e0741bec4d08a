"""Protocols whose noise the aggregator makes: what they promise, and what the two apps make of their answers."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from support.worlds import run, run_in_cohorts

from aggregator.contract.protocol import Trust
from aggregator.protocols.soft_vote.soft_vote import SoftVote
from aggregator.releases.models import ReleasedModels
from aggregator.trial.plan import PublicNumbers, VariantPlan
from aggregator.trial.trial import Views, World
from federation.contract.errors import InputError
from federation.contract.guarantee import Unit
from federation.contract.plugins import Reference
from federation.engines.inline import open_grid

VARIANTS = {
    "unit": ("parameter_average", {}),
    "clipped": ("parameter_average", {"average": "clipped", "noise": "gaussian"}),
    "plain": ("parameter_average", {"average": "plain"}),
    "published": ("parameter_average", {"average": "plain", "sensitivity": "published"}),
    "shares": ("soft_vote", {"share": "raw"}),
    "probability_shares": ("soft_vote", {"share": "raw", "ballot": "probabilities"}),
    "probabilities": ("soft_vote", {"submit": "votes", "ballot": "probabilities"}),
    "output": ("soft_vote", {"ballot": "probabilities", "perturb": "output", "regularisation": 1.0}),
    "votes": ("soft_vote", {"submit": "votes"}),
    "unit_shares": ("soft_vote", {}),
}
PLANS = tuple(VariantPlan(name, kind, options) for name, (kind, options) in VARIANTS.items())


@pytest.fixture
def plan(make_plan):
    return make_plan(variants=PLANS)


def test_releases_are_the_same_bytes_whatever_the_cohorts(plan):
    _, summary = run_in_cohorts(plan, Reference("support.synthetic:Parties", {"broken": [3]}), (1, 7))
    assert summary["answered"] == 39


def test_every_variant_learns_and_says_what_it_costs_and_guarantees(plan, public):
    _, summary = run(open_grid("inline"), plan, 40)
    costs = {name: cost[0] for name, cost in summary["bytes_per_party"].items()}
    rows, classes, width = len(public.rows), 3, 3
    assert (
        costs["shares"]
        == costs["unit_shares"]
        == costs["probability_shares"]
        == costs["unit"]
        == (classes - 1) * width * 8 + 8
    )
    assert costs["probabilities"] == costs["output"] == rows * (classes - 1) + 8
    assert costs["votes"] == rows * 2 // 8 + 8
    for entry in summary["ledger"]["releases"]:
        assert entry["guarantee"]["unit"] == "party"
        assert entry["checks"]
        texts = " ".join(assumption["text"] for assumption in entry["guarantee"]["assumptions"])
        assert ("sums whole multiples of a public step" in texts) == (costs[entry["variant"]] == costs["unit"])
    names = {path.name for path in Path(plan.directory).iterdir()}
    assert names == {"plan.json", "world.json", *(f"{name}.npz" for name in VARIANTS)}


def test_without_noise_parties_who_send_shares_release_what_their_votes_would(make_plan):
    off = [VariantPlan(n, "soft_vote", {**VARIANTS[n][1], "noise": "off"}) for n in ("votes", "shares")]
    plan = make_plan(variants=tuple(off), epsilons=(1.0,))
    run(open_grid("inline"), plan, 40)
    directory = Path(plan.directory)
    votes, shares = (ReleasedModels.load(directory / f"{name}.npz").weights[0] for name in ("votes", "shares"))
    np.testing.assert_allclose(shares, votes, atol=1e-12)


def test_an_average_of_other_classifiers_ends_before_any_party_is_asked(make_plan):
    plan = make_plan(variants=PLANS[:1], classifier={"name": "GaussianNB", "parameters": {}})
    with pytest.raises(InputError, match="logistic regression"):
        run(open_grid("inline"), plan, 40, Reference("support.synthetic:NoSuchProvider"))


@pytest.mark.parametrize(("noise", "delta"), [("pure", 0.0), ("gaussian", 1e-6)])
def test_only_gaussian_noise_spends_delta(noise, delta):
    spends = SoftVote(noise=noise).promise(PublicNumbers(1e-6), 0.5, Trust.AGGREGATOR).spends
    assert (spends.epsilon, spends.delta, spends.unit) == (0.5, delta, Unit.PARTY)


def test_sessions_behind_one_map_share_their_question_and_what_is_perturbed(make_plan):
    made = make_plan()
    world = World(made, Views(made)).of(made.variants[0])
    sessions = [SoftVote().begin(world, epsilon, 3) for epsilon in (1.0, 10.0)]
    first, second = ([asked for asked in session.questions()] for session in sessions)
    assert first[0] is second[0]
    vectors = [session.perturbable() for session in sessions]
    assert vectors[0].value is vectors[1].value
    assert sessions[0].checks == vectors[0].checks
    other = SoftVote(noise="gaussian").begin(world, 1.0, 3)
    assert other.questions()[0] is not first[0]
    assert (vectors[0].noise, other.perturbable().noise) == ("pure", "gaussian")


def test_without_noise_what_is_learned_is_the_exact_vector_for_every_draw(make_plan):
    made = make_plan()
    session = SoftVote(noise="off").begin(World(made, Views(made)).of(made.variants[0]), math.inf, 3)
    weights = session.learn(0)
    assert weights.shape == (3, session.feature_map.dimension)
    np.testing.assert_array_equal(session.learn(2), weights)


def test_what_is_expected_falls_with_the_parties_and_noise_breaks_a_tie():
    from dataclasses import replace

    from aggregator.protocols.majority_vote import MajorityVote
    from aggregator.protocols.parameter_average import ParameterAverage

    known = PublicNumbers(1e-6, parties=100, features=10, classes=2, public_rows=500)
    few, many = (SoftVote().expected_error(replace(known, parties=count), 1.0) for count in (100, 1000))
    assert many.error < few.error
    one = SoftVote().expected_error(replace(known, features=1), 1.0)
    assert one.noise == pytest.approx(2 / 100)  # one of 100 unit shares moves a number by 2/100
    assert one.noise < few.noise
    averaged = [ParameterAverage().expected_error(known, epsilon) for epsilon in (0.1, 1.0)]
    voted = [SoftVote().expected_error(known, epsilon) for epsilon in (0.1, 1.0)]
    assert [one.noise > 0.3 for one in averaged] == [True, False]
    assert [one.error > other.error for one, other in zip(averaged, voted, strict=True)] == [True, False]
    assert SoftVote(noise="gaussian").expected_error(known, 1.0).noise != few.noise
    for unknown in (MajorityVote(), SoftVote(share="raw", ballot="labels"), SoftVote(noise="off")):
        assert unknown.expected_error(known, 1.0) is None
    assert SoftVote().expected_error(PublicNumbers(1e-6), 1.0) is None
