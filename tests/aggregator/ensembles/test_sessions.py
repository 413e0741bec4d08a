"""Protocols whose parties add vectors up unseen: places, sessions, and releases from end to end.

Protocols whose noise the aggregator makes: what they promise, and what the two apps make of their answers. Models are
released as they are decoded unless a protocol refines them.
"""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.worlds import guarantees, run, run_in_cohorts

from aggregator.contract.protocol import Place, Refused, Trust
from aggregator.contract.session import USEFUL
from aggregator.ensembles.sessions import Aim, SummedSession
from aggregator.protocols.majority_vote import MajorityVote
from aggregator.protocols.parameter_average import ParameterAverage
from aggregator.protocols.soft_vote.soft_vote import SoftVote
from aggregator.protocols.soft_vote.student import Student
from aggregator.releases.models import ReleasedModels
from aggregator.trial.plan import PublicNumbers, VariantPlan
from aggregator.trial.trial import Spectrum, Views, World, affordable
from federation.contract.errors import InputError, QuorumError
from federation.contract.guarantee import Check, Unit
from federation.contract.plugins import Reference
from federation.contract.trust import TrustTerms
from federation.engines.inline import open_grid
from federation.mechanisms.accounting.sensitivity import statistic as sensitivity_statistic
from federation.mechanisms.noise.additive import calibrate
from federation.queries.votes import ParameterSumQuestion, StatisticSumQuestion
from parties.responses import vectors as parameters
from parties.responses import vectors as vector_sums
from parties.responses import votes as statistic
from parties.training import linear
from scenarios.simulated.secure_aggregation import NAME

KINDS = {"soft_vote": SoftVote, "parameter_average": ParameterAverage}
VARIANTS = {
    "shares": ("soft_vote", {}),
    "gaussian_shares": ("soft_vote", {"noise": "gaussian"}),
    "raw": ("soft_vote", {"share": "raw"}),
    "unit": ("parameter_average", {}),
    "clipped": ("parameter_average", {"average": "clipped", "noise": "gaussian"}),
    "plain": ("parameter_average", {"average": "plain"}),
}
PLANS = tuple(VariantPlan(name, kind, {**options, "trust": "secure"}) for name, (kind, options) in VARIANTS.items())
AUTO = ({"whiten": "auto"}, "constant", "unit_norm")


def begun(make_plan, chosen, epsilon=1.0, **changes):
    kind = next(name for name, cls in KINDS.items() if type(chosen) is cls)
    plan = make_plan(variants=(VariantPlan("v", kind, {}),), quorum=0.9, **changes)
    return chosen.begin(World(plan, Views(plan)).of(plan.variants[0]), epsilon, 3)


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("noise", ["pure", "gaussian", "off"])
def test_the_noise_is_shared_where_a_summation_is_trusted(name, noise):
    kind, options = VARIANTS[name]
    chosen = KINDS[kind](**{**options, "noise": noise})
    assert chosen.noise_at(Trust.AGGREGATOR) is (Place.NOWHERE if noise == "off" else Place.AGGREGATOR)
    assert chosen.noise_at(Trust.SECURE) is (Place.NOWHERE if noise == "off" else Place.SHARES)
    assert "choose trust: secure" in chosen.noise_at(Trust.NONE).reason


@pytest.mark.parametrize(("chosen", "instead"), [
    (SoftVote(submit="votes"), "submit: statistic"), (SoftVote(perturb="output"), "submit: statistic"),
    (SoftVote(perturb="votes", noise="gaussian"), "submit: statistic"), (MajorityVote(), "choose soft_vote"),
    (ParameterAverage(average="plain", sensitivity="tight"), "sensitivity: diameter"),
])  # fmt: skip
def test_what_cannot_be_added_up_unseen_says_what_can(chosen, instead):
    for trust in (Trust.SECURE, Trust.NONE):
        found = chosen.noise_at(trust)
        assert isinstance(found, Refused)
        assert instead in found.reason
    assert chosen.noise_at(Trust.AGGREGATOR) is Place.AGGREGATOR


@pytest.mark.parametrize(("noise", "delta"), [("pure", 0.0), ("gaussian", 1e-6)])
def test_it_promises_what_it_aims_at_and_only_gaussian_noise_spends_delta(noise, delta):
    known = PublicNumbers(1e-6, classes=3, features=7)
    for trust in (Trust.AGGREGATOR, Trust.SECURE):
        promise = SoftVote(noise=noise).promise(known, 0.5, trust)
        assert (promise.spends.epsilon, promise.spends.delta, promise.spends.unit) == (0.5, delta, Unit.PARTY)
    [sent] = promise.sends  # as shares
    assert sent.private
    assert sent.numbers is None  # it depends on the noise


def test_sessions_have_noise_of_their_own_and_the_vectors_of_one_question(make_plan):
    made = make_plan(quorum=0.9)
    world, chosen = World(made, Views(made)).of(made.variants[0]), SoftVote(trust="secure")
    sessions = [chosen.begin(world, epsilon, 3) for epsilon in (1.0, 10.0)]
    first, second = (session.questions()[0].question for session in sessions)
    assert isinstance(first, StatisticSumQuestion)
    assert first.asked is second.asked
    assert first.release != second.release
    assert (first.contributors, first.draws, first.noise.epsilon) == (32, 3, 1.0)
    assert first.ball.scaled
    refined = begun(make_plan, SoftVote(trust="secure"), features=AUTO)  # by a student, although nobody saw a share
    assert isinstance(refined, SummedSession)
    assert isinstance(refined._refinement, Student)
    assert refined.feature_map is refined._refinement.feature_map


def test_norms_are_the_trusted_aggregators_and_the_guarantee_says_who_makes_the_noise(make_plan):
    question = begun(make_plan, ParameterAverage(trust="secure", average="clipped", clip=0.7)).questions()[0].question
    assert isinstance(question, ParameterSumQuestion)
    assert (question.ball.norm, question.ball.scaled) == (0.7, False)
    for options in ({"average": "plain"}, {"average": "clipped"}):
        chosen, trusted = (ParameterAverage(trust=trust, **options) for trust in ("secure", "aggregator"))
        question = begun(make_plan, chosen).questions()[0].question
        [asked] = begun(make_plan, trusted).questions()
        assert question.ball == asked.collector.recipe[0]
    texts = {one.text: one.check for one in begun(make_plan, SoftVote(trust="secure")).guarantee.assumptions}
    [collusion] = [text for text in texts if "at most 4 of them collude" in text]
    assert "at least 36 of 40 answer" in collusion
    [norm] = [text for text in texts if "scaled to norm 1 by the party itself" in text]
    assert texts[norm] is Check.DECLARED
    assert any("auxiliary rows are public" in text for text in texts)
    large = [begun(make_plan, SoftVote(trust="secure", noise=noise), delta=0.1) for noise in ("pure", "gaussian")]
    said = [any("although it exceeds parties^-1.1" in one.text for one in s.guarantee.assumptions) for s in large]
    assert said == [False, True]
    trusted, secure = (begun(make_plan, SoftVote(trust=trust), 0.1).outlook() for trust in ("aggregator", "secure"))
    assert secure.signal_to_noise == pytest.approx(trusted.signal_to_noise * (32 / 40) ** 0.5)
    assert secure.parties_needed > trusted.parties_needed
    assert begun(make_plan, SoftVote(trust="secure"), 1e4).outlook() is None
    public = PublicNumbers(1e-6, terms=TrustTerms(1000, quorum=0.9), classes=6, features=5, public_rows=1000)
    for kind in KINDS.values():
        trusted, secure = (kind(trust=trust).expected_error(public, 0.3) for trust in ("aggregator", "secure"))
        assert secure.noise == pytest.approx(trusted.noise * (1000 / 800) ** 0.5)
        assert secure.error > trusted.error


def test_releases_are_the_same_bytes_whatever_the_cohorts_and_who_adds(make_plan):
    chosen = make_plan(variants=PLANS, parties=9, quorum=0.7, epsilons=(1.0,), draws=2)
    some = Reference("support.synthetic:Parties", {"broken": [3]})
    files, summary = run_in_cohorts(chosen, some, (4,))
    assert summary["answered"] == 8
    masked, told = run(open_grid("inline"), chosen.changed(summation=NAME), 9, some)
    assert masked == files
    checks = told["ledger"]["releases"][0]["checks"]
    assert any("by a masked sum" in text for text in checks)
    for guarantee in guarantees(summary).values():
        assert guarantee["unit"] == "party"
        assert guarantee["mechanism"].startswith("vector_sum_")
    assert {place for one in summary["disclosure"]["variants"].values() for place in one["noise_at"]} == {"shares"}


def test_with_little_noise_it_learns_what_a_trusted_aggregator_does(make_plan):
    pairs = [
        VariantPlan(f"{name}_{trust}", kind, {**options, "trust": trust})
        for name, (kind, options) in VARIANTS.items()
        for trust in ("aggregator", "secure")
    ]
    plan = make_plan(variants=tuple(pairs), quorum=0.9, epsilons=(1e5,), draws=1)
    _, summary = run(open_grid("inline"), plan, 40)
    load = lambda name: ReleasedModels.load(Path(plan.run.directory) / f"{name}.npz").weights[0]  # noqa: E731
    for name in VARIANTS:
        trusted, secure = (load(f"{name}_{trust}") for trust in ("aggregator", "secure"))
        assert np.abs(secure - trusted).max() < 1e-2 * np.abs(trusted).max(), name
        found = [summary["diagnostics"][f"{name}_{trust}"][0] for trust in ("aggregator", "secure")]
        assert found[1].keys() == found[0].keys()
        assert found[1]["noise_to_signal"] == pytest.approx(found[0]["noise_to_signal"] * (40 / 32) ** 0.5, rel=1e-2)


def test_parties_train_and_vote_once_for_all_epsilons(make_plan, monkeypatch):
    counts = dict.fromkeys(("train", "statistic", "parameters"), 0)

    def counted(name, act):
        def call(*arguments):
            counts[name] += 1
            return act(*arguments)

        return call

    monkeypatch.setattr(linear, "train", counted("train", linear.train))
    monkeypatch.setattr(statistic, "respond_statistic", counted("statistic", statistic.respond_statistic))
    monkeypatch.setattr(parameters, "respond_parameters", counted("parameters", parameters.respond_parameters))
    vector_sums._latest.clear()
    variants = tuple(PLANS[:1] + PLANS[3:4])
    plan = make_plan(variants=variants, quorum=0.9, epsilons=(0.5, 1.0, 2.0, 4.0))
    run(open_grid("inline"), plan, 20)
    assert counts == {"train": 2, "statistic": 2, "parameters": 2}  # of two nodes


def test_too_few_parties_release_nothing_which_more_dimensions_can_make_them(make_plan):
    plan = make_plan(variants=PLANS[:1], quorum=0.9)
    with pytest.raises(QuorumError):
        run(open_grid("inline"), plan, 40, Reference("support.synthetic:Parties", {"broken": list(range(5))}))
    plan = make_plan(variants=PLANS_COLLECTED[:1], classifier={"name": "GaussianNB", "parameters": {}})
    with pytest.raises(InputError):  # before any party is asked
        run(open_grid("inline"), plan, 40, Reference("support.synthetic:NoSuchProvider"))
    # The published example of a spectrum whose signal over noise is not monotone in the number of parties.
    aim = Aim("pure", 1.0, 0.0)
    now = affordable("pure", SPECTRUM, classes=10, parties=20, epsilon=1.0, delta=0.0)
    needed = aim.parties_needed(10, now + 1, 20, SPECTRUM)
    below = [parties for parties in range(2, needed) if rho(aim, 10, parties, SPECTRUM) >= USEFUL]
    assert below
    assert max(below) < needed - 1
    assert Aim("pure", 2.0, 0.0).parties_needed(3, 10, 5, None) == 4 * 2 * 20 / 2
    for epsilon in (5e-324, 1e-300, 1e-30):
        for spectrum in (None, SPECTRUM):
            assert Aim("pure", epsilon, 0.0).parties_needed(3, 10, 5, spectrum) == pytest.approx(1e18)


SPECTRUM = Spectrum(5000, np.exp(-np.arange(60) / 12))


def rho(aim, classes, parties, spectrum):
    size = affordable(aim.noise, spectrum, classes=classes, parties=parties, epsilon=aim.epsilon, delta=aim.delta)
    return aim.signal_to_noise((classes - 1) * (size + 1), parties)


@pytest.mark.parametrize("noise", ["pure", "gaussian"])
def test_it_is_the_largest_share_over_the_expected_noise(noise):
    mechanism = calibrate(noise, sensitivity=2 / 500, dimension=300, epsilon=0.7, delta=1e-6)
    found = Aim(noise, 0.7, 1e-6).signal_to_noise(300, 500)
    assert found == pytest.approx(1 / mechanism.expected_noise_norm(), rel=0.01)
    assert sensitivity_statistic(500) < 2 / 500


@settings(max_examples=examples(10))
@given(
    noise=st.sampled_from(["pure", "gaussian"]),
    epsilon=st.floats(0.2, 10),
    classes=st.integers(2, 10),
    parties=st.integers(2, 400),
)
def test_from_there_on_there_are_always_enough_and_one_less_was_not(noise, epsilon, classes, parties):
    aim = Aim(noise, epsilon, 1e-6)
    now = affordable(noise, SPECTRUM, classes=classes, parties=parties, epsilon=epsilon, delta=1e-6)
    needed = aim.parties_needed(classes, now + 1, parties, SPECTRUM)
    after = np.unique(np.geomspace(needed, 50 * needed, 60).astype(int))
    assert min(rho(aim, classes, int(more), SPECTRUM) for more in after) >= USEFUL * (1 - 1e-9)
    assert needed == 1 or rho(aim, classes, needed - 1, SPECTRUM) < USEFUL


VARIANTS_COLLECTED = {
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
PLANS_COLLECTED = tuple(VariantPlan(name, kind, options) for name, (kind, options) in VARIANTS_COLLECTED.items())


def test_releases_are_the_same_bytes_whatever_the_cohorts(make_plan):
    plan = make_plan(variants=PLANS_COLLECTED, parties=12, epsilons=(1.0,))
    _, summary = run_in_cohorts(plan, Reference("support.synthetic:Parties", {"broken": [3]}), (1, 7))
    assert summary["answered"] == 11


def test_every_variant_learns_and_says_what_it_costs_and_guarantees(make_plan, public):
    plan = make_plan(variants=PLANS_COLLECTED)
    _, summary = run(open_grid("inline"), plan, 40)
    costs = {name: cost[0] for name, cost in summary["bytes_per_party"].items()}
    rows, classes, width = len(public.rows), 3, 3
    for name in ("shares", "unit_shares", "probability_shares", "unit"):
        assert costs[name] == (classes - 1) * width * 8 + 8
    assert costs["probabilities"] == costs["output"] == rows * (classes - 1) + 8
    assert costs["votes"] == rows * 2 // 8 + 8
    for entry in summary["ledger"]["releases"]:
        assert entry["guarantee"]["unit"] == "party"
        assert entry["checks"]
        texts = " ".join(assumption["text"] for assumption in entry["guarantee"]["assumptions"])
        assert ("sums whole multiples of a public step" in texts) == (costs[entry["variant"]] == costs["unit"])
    names = {path.name for path in Path(plan.run.directory).iterdir()}
    assert names == {"world.json", *(f"{name}.npz" for name in VARIANTS_COLLECTED)}


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
    exact = SoftVote(noise="off").begin(world, math.inf, 3)
    assert exact.learn(0).shape == (3, exact.feature_map.dimension)
    np.testing.assert_array_equal(exact.learn(2), exact.learn(0))


def test_what_is_expected_falls_with_the_parties_and_noise_breaks_a_tie():
    known = PublicNumbers(1e-6, terms=TrustTerms(100), features=10, classes=2, public_rows=500)
    few, many = (SoftVote().expected_error(replace(known, terms=TrustTerms(count)), 1.0) for count in (100, 1000))
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
