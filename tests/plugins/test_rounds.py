"""Rounds with noise at the aggregator: planned before the first query, charged once, and audited as a whole."""

import json
import math
import tomllib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from support.exchanges import pair
from support.letter_sites import Post, deployed, in_no_time
from support.packages import describe

from aggregator.contract.ledger import Budget, Ledger
from aggregator.contract.protocol import Place
from aggregator.contract.session import RoundsOfNoise, RoundValue
from aggregator.exchange.app import main, outcome_of
from aggregator.releases.models import ReleasedModels
from aggregator.server import releasing
from aggregator.server.releasing import CentralNoise
from aggregator.trial.plan import PublicNumbers
from federation.contract.errors import BudgetExceededError, InputError, QuorumError
from federation.contract.query import RoundQuestion
from federation.contract.randomness import NoiseBits
from federation.engines.nodes import Placement
from federation.features.feature_map import FeatureMap
from federation.mechanisms.noise import gaussian
from federation.signed_messages.messages import Status, kind_of, read_question
from parties import app
from parties.guard import answering
from parties.guard.answering import question_type
from parties.site import worker
from scenarios.audits.auditor import audit_variant, replayed
from scenarios.settings.sweep import Variant
from scenarios.testing import small_trials as small

DELTA = 0.01
COMPLETE = Path(__file__).parent / "complete"


@pytest.fixture(autouse=True)
def protocol(monkeypatch, tmp_path):
    """The protocol `noisy_steps` of `complete`, importable with its entry points, as an installer would leave it."""
    folder = tmp_path / "installed"
    folder.mkdir()
    known = tomllib.loads((COMPLETE / "pyproject.toml").read_text())["project"]
    groups = known["entry-points"].items()
    describe(folder, known["name"], {group: [f"{one} = {of}" for one, of in named.items()] for group, named in groups})
    for path in (COMPLETE, folder):
        monkeypatch.syspath_prepend(str(path))
    for kind in answering.kinds():  # with the client app, which another test of this process may have loaded before
        with suppress(ValueError):  # it is registered already
            app.app.query(kind)(app._handler(kind))
    from noisy_steps.protocol import NoisySteps

    return NoisySteps


def variant(**options):
    return Variant("noisy_steps", "noisy_steps", options, {}, False)


def run(protocol, folder, options=(), mode="honest", grid=None, **changes):
    """The release of a small trial, and what was written about it."""
    plan = small.plan(protocol, "noisy_steps", dict(options), folder, **changes)
    provider = small.provider(protocol.requires, mode)
    path = small.run(plan, Placement(plan.terms.parties, plan.run.parties_per_node, provider, small.SEED), grid)
    return ReleasedModels.load(path), json.loads((folder / "world.json").read_text())


def noise_of(make_plan, planned, folder="", **changes):
    plan = make_plan(directory=str(folder), **changes)
    return CentralNoise(plan, "v", 1.0, planned, plan.public.draws)


@pytest.fixture
def make_plan(protocol, tmp_path):
    return lambda **changes: small.plan(protocol, "noisy_steps", {}, tmp_path / "plans", **changes)


PLANNED = RoundsOfNoise(3, 0.5, 2, noise="gaussian")
EXACT = RoundValue(np.zeros(2), 0.5)


@pytest.mark.parametrize("noise", ["gaussian", "pure"])
@pytest.mark.parametrize("rounds", [1, 3, 10])
def test_all_rounds_together_stand_close_to_the_claim_and_half_the_noise_is_caught(noise, rounds):
    runs = 100_000
    found = audit_variant(variant(noise=noise, rounds=rounds), 1.0, PublicNumbers(DELTA), runs)
    assert found.result.runs == runs
    if noise == "gaussian":
        assert 0.85 < found.result.lower_bound <= 1.0
        assert found.twin.lower_bound > 1.7
    else:  # with many rounds losses near the claim are rare
        assert {1: 0.85, 3: 0.55, 10: 0.2}[rounds] < found.result.lower_bound <= 1.0
    assert found.word == "stands" or (noise, rounds) == ("pure", 10)


@pytest.mark.parametrize("noise", ["gaussian", "pure"])
def test_noise_that_two_rounds_share_is_found_out(monkeypatch, noise):
    monkeypatch.setattr(releasing, "NoiseBits", lambda seed, purpose: NoiseBits(seed, purpose.split("|round")[0]))
    assert audit_variant(variant(noise=noise), 1.0, PublicNumbers(DELTA)).word == "REFUTED"


def test_noise_of_one_round_in_place_of_three_is_found_out(monkeypatch):
    honest = RoundsOfNoise.mechanism
    monkeypatch.setattr(RoundsOfNoise, "mechanism", lambda own, *target: honest(replace(own, rounds=1), *target))
    monkeypatch.setattr(CentralNoise, "_require_planned", lambda *_: None)
    assert audit_variant(variant(), 1.0, PublicNumbers(DELTA)).word == "REFUTED"


def test_gaussian_rounds_have_the_exact_noise_of_their_composition(make_plan):
    """The standard deviation is sqrt(T) sensitivity/mu (Dong, Roth, Su 2022), in each round, independent of others."""
    made = noise_of(make_plan, replace(PLANNED, dimension=20_000), draws=1)
    wide = replace(EXACT, value=np.zeros(20_000))
    rounds = np.array([made.add(wide, Ledger(), ())[0] for _ in range(3)])
    expected = math.sqrt(3) * 0.5 / gaussian.mu(1.0, 1e-3)
    np.testing.assert_allclose(rounds.std(axis=1), expected, rtol=0.03)
    assert np.abs(np.corrcoef(rounds) - np.eye(3)).max() < 0.04


def test_what_was_not_planned_is_refused_and_charges_nothing_more(make_plan):
    made, ledger = noise_of(make_plan, PLANNED), Ledger()
    with pytest.raises(BudgetExceededError):  # a budget is asked before the first noise
        made.add(EXACT, Ledger(Budget(0.5, 1e-2)), ())
    made.add(EXACT, ledger, ("checked",))
    for wrong in (replace(EXACT, sensitivity=0.5000001), replace(EXACT, sensitivity=math.nan)):
        with pytest.raises(InputError, match=r"0\.5"):
            made.add(wrong, ledger, ())
    for shape in ((3,), (2, 3), (3, 2), (1,), (1, 2, 2)):
        with pytest.raises(InputError, match="2"):
            made.add(replace(EXACT, value=np.zeros(shape)), ledger, ())
    made.add(replace(EXACT, value=np.zeros((2, 2))), ledger, ())  # of two draws
    made.add(EXACT, ledger, ())
    with pytest.raises(InputError, match=r"3.*4"):
        made.add(EXACT, ledger, ())
    [entry] = ledger.entries
    assert (entry["guarantee"]["epsilon"], entry["checks"]) == (1.0, ["checked"])


def test_one_release_is_charged_once_with_what_all_rounds_spend(protocol, tmp_path):
    model, world = run(protocol, tmp_path, epsilons=(5.0, 8.0))
    releases = world["ledger"]["releases"]
    assert [one["guarantee"]["epsilon"] for one in releases] == [5.0, 8.0]
    guarantee = releases[0]["guarantee"]
    assert (guarantee["unit"], guarantee["delta"], guarantee["parameters"]["rounds"]) == ("party", 1e-3, 3)
    texts = [one["text"] for one in guarantee["assumptions"]]
    assert any("releases 3 noisy values at most" in text for text in texts)
    assert model.guarantees[0]["epsilon"] == 5.0
    _, once = run(protocol, tmp_path / "once", {"rounds": 1})
    assert world["bytes_per_party"]["checked"][0] == 3 * once["bytes_per_party"]["checked"][0]


def test_the_draws_are_different_chains_from_one_first_query(protocol, tmp_path):
    grid = small.CountingGrid()
    model, _ = run(protocol, tmp_path, grid=grid, draws=3)
    assert grid.asked == 1 + 3 + 3
    weights = model.weights[0]
    assert len({one.tobytes() for one in weights}) == 3


def test_without_noise_it_is_gradient_descent(protocol, tmp_path):
    """Against the steps computed here."""
    model, world = run(protocol, tmp_path, {"noise": "off", "rounds": 4, "rate": 2.0})
    assert world["ledger"]["non_private"]
    parties = small.Parties(real=False, bags=1)
    features = model.feature_maps[0]
    weights = np.zeros(4)
    for _ in range(4):
        step = np.zeros(4)
        for party in range(small.PARTIES):
            held = parties.holdings(party)
            rows = features.transform(held.rows)
            step += ((1 / (1 + np.exp(-rows @ weights)) - held.labels) @ rows) / len(rows)
        weights -= 2.0 * step / small.PARTIES
    np.testing.assert_allclose(model.weights[0][0][1], weights / 2, atol=1e-12)


def test_a_party_that_misses_a_round_counts_as_zero_and_below_the_quorum_nothing_is_released(
    protocol, tmp_path, monkeypatch
):
    model, world = run(protocol, tmp_path / "some", mode="dropped")
    assert world["answered"] == small.PARTIES - 1
    whole, _ = run(protocol, tmp_path / "whole")
    assert not np.array_equal(model.weights[0], whole.weights[0])
    served, honest = [], small.Parties.holdings

    def holdings(own, party):
        served.append(party)
        if len(served) > small.PARTIES and party > 1:
            raise small.DroppedOut
        return honest(own, party)

    monkeypatch.setattr(small.Parties, "holdings", holdings)
    with pytest.raises(QuorumError, match=r"2.*6"):
        run(protocol, tmp_path, draws=1)
    assert not (tmp_path / "checked.npz").exists()


def test_a_promise_that_rounds_do_not_keep_is_refused_before_anybody_is_asked(protocol, tmp_path, monkeypatch):
    honest, grid = protocol.promise, small.CountingGrid()

    def promise(own, public, epsilon, trust):
        found = honest(own, public, epsilon, trust)
        return replace(found, spends=replace(found.spends, epsilon=epsilon / 2))

    monkeypatch.setattr(protocol, "promise", promise)
    with pytest.raises(InputError, match=r"epsilon.*2\.5.*epsilon.*5"):
        run(protocol, tmp_path, grid=grid)
    assert grid.asked == 0


def test_a_session_that_releases_nothing_or_elsewhere_than_its_protocol_says_is_refused(
    protocol, tmp_path, monkeypatch
):
    from noisy_steps.protocol import StepsSession

    with monkeypatch.context() as nowhere:
        nowhere.setattr(protocol, "noise_at", lambda own, trust: Place.NOWHERE)
        with pytest.raises(InputError, match="nowhere"):
            run(protocol, tmp_path)
    monkeypatch.setattr(StepsSession, "value", lambda own: setattr(own, "_round", 3))
    with pytest.raises(InputError):
        run(protocol, tmp_path)


def test_the_worst_case_moves_every_round_as_far_as_was_planned(protocol):
    chosen = variant()
    found = replayed(protocol().worst_case(1, PublicNumbers(DELTA)), chosen, 1.0, DELTA)
    moved = np.linalg.norm(found.values[0] - found.values[1], axis=1)
    assert len(moved) == 3
    assert (moved > 0.999 * found.planned.sensitivity).all()
    assert (moved <= found.planned.sensitivity).all()


@pytest.fixture
def deploy(tmp_path, monkeypatch, flower_process):
    in_no_time(monkeypatch)
    return lambda **options: Post(*deployed(tmp_path, kind="noisy_steps", options=options))


def exchange(post):
    config = {"dir": str(post.folder.path), "exchange": "001", "patience": 60.0, "wait": 60.0}
    main(post, SimpleNamespace(run_config=config, run_id=7))
    return outcome_of(post.folder.path, "001")


def test_real_sites_are_asked_in_every_round_and_agree_to_all_of_them(deploy):
    post = deploy(rounds=11)
    [asked] = post.agreement.asked
    assert (asked.times, "weights" in asked.same, asked.same["rounds"]) == (11, False, 11)
    outcome = exchange(post)
    assert outcome["exit_code"] == 0, outcome
    assert sorted({number for _, number in post.asked}) == list(range(11))
    [spent] = outcome["spent"]
    assert (spent["unit"], spent["releases"], spent["epsilon"]) == ("party", 1, pytest.approx(1.0, abs=1e-4))
    lengths = [len(path.read_bytes()) for path in post.folder.exchange("001").glob("*.question")]
    assert max(lengths) == post.agreement.longest_question


def test_an_exchange_that_was_interrupted_goes_on_with_the_noise_that_it_had(deploy, monkeypatch):
    """Later queries were made of it: other noise on the same sum would show the sum."""
    post, honest = deploy(), CentralNoise.add

    def stop(own, *known):
        if own.made == 2:
            raise KeyboardInterrupt
        return honest(own, *known)

    with monkeypatch.context() as patch:
        patch.setattr(CentralNoise, "add", stop)
        with pytest.raises(KeyboardInterrupt):
            exchange(post)
    working = post.folder.exchange("001") / "working"
    before = {path.name: path.read_bytes() for path in working.glob("*.npy")}
    assert len(before) == 2
    assert exchange(post)["exit_code"] == 0
    folder = post.folder.release("001")
    assert {name: (folder / name).read_bytes() for name in before} == before
    noisy = np.array([np.load(path)[0] for path in sorted(folder.glob("*.npy"))])
    assert len(noisy) == 3
    model = ReleasedModels.load(folder / "noisy_steps.npz")
    np.testing.assert_allclose(model.weights[0][0][1], -noisy.sum(axis=0) / 2, rtol=1e-12)
    packets = [path.read_bytes() for path in sorted(post.folder.exchange("001").glob("*.question"))]
    questions = [read_question(packet, question_type(kind_of(packet))) for packet in packets]
    assert [one.round for one in questions] == [0, 1, 2]
    assert all(isinstance(one, RoundQuestion) for one in questions)
    for one in questions:
        np.testing.assert_allclose(one.weights, -noisy[: one.round].sum(axis=0), atol=1e-12)


@pytest.mark.parametrize("damage", [b"", b"x", b"other"])
def test_a_noisy_value_that_was_damaged_ends_the_exchange_in_a_sentence(make_plan, tmp_path, damage):
    changes = {"in_letters": True, "noise_seed": None, "simulation": False, "draws": 1}
    first = noise_of(make_plan, PLANNED, tmp_path, **changes)
    kept = first.add(EXACT, Ledger(), ())
    np.testing.assert_array_equal(noise_of(make_plan, PLANNED, tmp_path, **changes).add(EXACT, Ledger(), ()), kept)
    [path] = tmp_path.glob("*.npy")
    if damage == b"other":
        np.save(path, np.zeros((1, 3)))
    else:
        path.write_bytes(damage)
    with pytest.raises(InputError):
        noise_of(make_plan, PLANNED, tmp_path, **changes).add(EXACT, Ledger(), ())


def test_a_site_responds_once_in_every_round_and_is_charged_once(tmp_path):
    from noisy_steps.gradient import GradientQuestion

    worker.prepare()
    first = GradientQuestion(FeatureMap(3, ()), np.zeros(3), rounds=3)
    second, other = (replace(first, round=1, weights=np.full(3, weight)) for weight in (0.5, 0.6))
    longer = replace(second, rounds=4)
    asked = pair(tmp_path, first)
    found = [asked.said(question, number) for number, question in enumerate((first, second, other, longer))]
    assert found == [Status.ANSWER, Status.ANSWER, Status.REFUSED, Status.REFUSED]
    assert asked.reasons == [
        "another question was answered in this place of the exchange",
        "'rounds' of the question is not what was agreed on",
    ]
    assert asked.events.count("charged") == 1
    assert asked.site.accounts.spent()["trusted"] == (1.0, 0.0)
