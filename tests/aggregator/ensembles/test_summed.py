"""Protocols whose parties add vectors up unseen: places, sessions, and releases from end to end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.worlds import guarantees, run, run_in_cohorts

from aggregator.contract.protocol import Place, Refused, Trust
from aggregator.ensembles.sessions import SummedSession
from aggregator.protocols.majority_vote import MajorityVote
from aggregator.protocols.parameter_average import ParameterAverage
from aggregator.protocols.soft_vote.soft_vote import SoftVote
from aggregator.protocols.soft_vote.student import Student
from aggregator.releases.models import ReleasedModels
from aggregator.trial.plan import PublicNumbers, VariantPlan
from aggregator.trial.trial import Views, World
from federation.contract.errors import QuorumError
from federation.contract.guarantee import Check
from federation.contract.plugins import Reference
from federation.engines.inline import open_grid
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


@pytest.mark.parametrize(
    ("chosen", "instead"),
    [
        (SoftVote(submit="votes"), "submit: statistic"),
        (SoftVote(perturb="output"), "submit: statistic"),
        (SoftVote(perturb="votes", noise="gaussian"), "submit: statistic"),
        (MajorityVote(), "choose soft_vote"),
        (ParameterAverage(average="plain", sensitivity="tight"), "sensitivity: diameter"),
    ],
)
def test_what_cannot_be_added_up_unseen_says_what_can(chosen, instead):
    for trust in (Trust.SECURE, Trust.NONE):
        found = chosen.noise_at(trust)
        assert isinstance(found, Refused)
        assert instead in found.reason
    assert chosen.noise_at(Trust.AGGREGATOR) is Place.AGGREGATOR


@pytest.mark.parametrize("noise", ["pure", "gaussian"])
def test_it_promises_what_it_aims_at_and_sends_with_noise(noise):
    promise = SoftVote(noise=noise).promise(PublicNumbers(1e-6, classes=3, features=7), 0.5, Trust.SECURE)
    assert (promise.spends.epsilon, promise.spends.delta) == (0.5, 1e-6 if noise == "gaussian" else 0.0)
    [sent] = promise.sends
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


def test_the_norms_are_those_of_the_trusted_aggregator(make_plan):
    question = begun(make_plan, ParameterAverage(trust="secure", average="clipped", clip=0.7)).questions()[0].question
    assert isinstance(question, ParameterSumQuestion)
    assert (question.ball.norm, question.ball.scaled) == (0.7, False)
    for options in ({"average": "plain"}, {"average": "clipped"}):
        chosen, trusted = (ParameterAverage(trust=trust, **options) for trust in ("secure", "aggregator"))
        question = begun(make_plan, chosen).questions()[0].question
        [asked] = begun(make_plan, trusted).questions()
        assert question.ball == asked.collector.recipe[0]


def test_the_guarantee_says_who_makes_the_noise_and_how_many_may_collude(make_plan):
    texts = {one.text: one.check for one in begun(make_plan, SoftVote(trust="secure")).guarantee.assumptions}
    [collusion] = [text for text in texts if "at most 4 of them collude" in text]
    assert "at least 36 of 40 answer" in collusion
    [norm] = [text for text in texts if "scaled to norm 1 by the party itself" in text]
    assert texts[norm] is Check.DECLARED
    assert any("auxiliary rows are public" in text for text in texts)
    large = [begun(make_plan, SoftVote(trust="secure", noise=noise), delta=0.1) for noise in ("pure", "gaussian")]
    said = [any("although it exceeds parties^-1.1" in one.text for one in s.guarantee.assumptions) for s in large]
    assert said == [False, True]


def test_noise_that_is_louder_is_foretold(make_plan):
    trusted, secure = (begun(make_plan, SoftVote(trust=trust), 0.1).outlook() for trust in ("aggregator", "secure"))
    assert secure.signal_to_noise == pytest.approx(trusted.signal_to_noise * (32 / 40) ** 0.5)
    assert secure.parties_needed > trusted.parties_needed
    assert begun(make_plan, SoftVote(trust="secure"), 1e4).outlook() is None


def test_what_may_be_expected_is_less_by_the_louder_noise():
    public = PublicNumbers(1e-6, parties=1000, classes=6, features=5, public_rows=1000, quorum=0.9)
    for kind in KINDS.values():
        trusted, secure = (kind(trust=trust).expected_error(public, 0.3) for trust in ("aggregator", "secure"))
        assert secure.noise == pytest.approx(trusted.noise * (1000 / 800) ** 0.5)
        assert secure.error > trusted.error


def test_releases_are_the_same_bytes_whatever_the_cohorts_and_who_adds(make_plan):
    chosen = make_plan(variants=PLANS, parties=14, quorum=0.7, epsilons=(1.0, 100.0), draws=2)
    some = Reference("support.synthetic:Parties", {"broken": [3]})
    files, summary = run_in_cohorts(chosen, some, (5,))
    assert summary["answered"] == 13
    masked, told = run(open_grid("inline"), make_plan(**{**vars(chosen), "summation": NAME}), 14, some)
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
    load = lambda name: ReleasedModels.load(Path(plan.directory) / f"{name}.npz").weights[0]  # noqa: E731
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


def test_a_student_may_refine_what_nobody_saw(make_plan):
    secure = begun(make_plan, SoftVote(trust="secure"), features=AUTO)
    assert isinstance(secure, SummedSession)
    assert isinstance(secure._refinement, Student)
    assert secure.feature_map is secure._refinement.feature_map


def test_too_few_parties_release_nothing(make_plan):
    plan = make_plan(variants=PLANS[:1], quorum=0.9)
    with pytest.raises(QuorumError):
        run(open_grid("inline"), plan, 40, Reference("support.synthetic:Parties", {"broken": list(range(5))}))
