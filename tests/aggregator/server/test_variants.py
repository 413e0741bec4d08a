"""The way from a plan to releases: what is refused before anybody is asked, and what failing variants cost.

A variant that fails costs its own releases: what is noted, what is raised, and what it is called.
"""

import errno
import json
import math
import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from support import bagged, linear_labels
from support.worlds import run

from aggregator.protocols.mean_operator.mean_operator import MeanOperator
from aggregator.protocols.private_labels import PrivateLabels
from aggregator.protocols.soft_vote.soft_vote import SoftVote
from aggregator.releases.models import ReleasedModels
from aggregator.server.releasing import Inquiry
from aggregator.server.variants import FailedVariants, VariantRun, Variants, blaming
from aggregator.trial.plan import VariantPlan
from aggregator.trial.trial import Views, World
from federation.contract.errors import DEBUG, BudgetExceededError, FederationError, InputError, QuorumError
from federation.contract.guarantee import Adjacency, Guarantee, NoGuarantee, Unit
from federation.contract.plugins import Reference
from federation.engines.inline import open_grid

DEPLOYED = {"simulation": False, "noise_seed": None, "draws": 1}
NOBODY = Reference("support.synthetic:NoSuchProvider")
REAL, BAGGED = linear_labels.FIELDS, bagged.FIELDS
TWO_CLASSES = {
    "public": Reference("support.two_class_parties:public_table"),
    "features": ("standardise",),
    "classes": ("no", "yes"),
    "parties": 6,
    "largest_bag": 67,
    "smallest_bag": 60,
    "private_rows": 381,
    "delta": 1e-5,
}


def variants(*kinds):
    """Variants by the kinds and options of their protocols, with numbers for names."""
    return tuple(VariantPlan(f"v{number}", kind, options) for number, (kind, options) in enumerate(kinds))


def begun(plan):
    """The variants of a plan, of whose parties nobody was asked, and what they would ask."""
    inquiry = Inquiry()
    return Variants(World(plan, Views(plan)), inquiry), inquiry


def test_the_others_are_released_and_the_app_fails(make_plan, monkeypatch):
    whole = VariantRun.finish

    def failing(self, ledger):
        if self._variant.name == "a":
            raise MemoryError("no room")
        if self._variant.name == "b":
            raise InputError("no room")
        return whole(self, ledger)

    monkeypatch.setattr(VariantRun, "finish", failing)
    plan = make_plan(variants=tuple(VariantPlan(name, "soft_vote", {}) for name in "abc"), **DEPLOYED)
    folder = Path(plan.run.directory)
    with pytest.raises(FederationError, match=r"'a'.*MemoryError"):
        run(open_grid("inline"), plan, 40)
    assert [path.name for path in folder.glob("*.npz")] == ["c.npz"]
    failed = json.loads((folder / "world.json").read_text())["failed_variants"]
    assert (list(failed), failed["b"]) == (["a", "b"], "no room")


def test_without_noise_there_is_one_release_of_one_draw_and_nothing_is_guaranteed(make_plan):
    plan = make_plan(variants=variants(("soft_vote", {"noise": "off"})), budget={"epsilon": 0.1, "delta": 0.0})
    _, summary = run(open_grid("inline"), plan, 40)
    found = ReleasedModels.load(Path(plan.run.directory) / "v0.npz")
    assert (found.epsilons.tolist(), found.draws(0)) == ([math.inf], 1)
    assert found.guarantees == ({"non_private": True, "reason": "noise is off"},)
    assert summary["ledger"]["non_private"]
    [entry] = summary["ledger"]["releases"]
    assert "answers were checked and clipped on arrival" in " ".join(entry["checks"])
    noisy = plan.changed(variants=variants(("soft_vote", {})), epsilons=(1e9,), budget=None)
    run(open_grid("inline"), noisy, 40)
    little = ReleasedModels.load(Path(plan.run.directory) / "v0.npz").weights[0][0]
    np.testing.assert_allclose(found.weights[0][0], little, atol=1e-6)  # the same but for the noise


def dishonest(honest, change):
    """A subclass of a protocol that promises something else, or with other numbers, and begins the same sessions."""

    @dataclass(frozen=True)
    class Dishonest(honest):
        def promise(self, public, epsilon, trust):
            promise = super().promise(public, epsilon, trust)
            return replace(promise, spends=replace(promise.spends, **change) if isinstance(change, dict) else change)

    return Dishonest


BROKEN = {
    "less epsilon": ({}, {"epsilon": 0.999}),
    "less delta": ({"noise": "gaussian"}, {"delta": 0.0}),
    "a wider unit": ({}, {"unit": Unit.PARTY}),
    "another unit": ({}, {"unit": Unit.PERSON}),
    "another adjacency": ({}, {"adjacency": Adjacency.ADD_REMOVE}),
    "no guarantee": ({}, NoGuarantee("it misses its aim", (1.0, 0.0))),
}


@pytest.mark.parametrize("case", BROKEN)
@pytest.mark.parametrize("changes", [{}, DEPLOYED], ids=["simulation", "deployment"])
def test_a_session_that_spends_otherwise_than_promised_is_refused_before_anybody_is_asked(
    make_plan, monkeypatch, case, changes
):
    options, change = BROKEN[case]
    plan = make_plan(variants=variants(("private_labels", options)), epsilons=(1.0,), **{**REAL, **changes})
    begun(plan)  # honest
    monkeypatch.setattr("aggregator.server.variants.protocol", lambda kind: dishonest(PrivateLabels, change))
    said = r"^variant 'v0': the protocol 'private_labels' promised .* at most and would be charged epsilon=1, "
    with pytest.raises(InputError, match=said + ".*; its package must be repaired$"):
        run(open_grid("inline"), plan, 6, NOBODY)


def test_less_than_was_promised_may_be_spent_and_a_guarantee_that_is_not_kept_is_refused(make_plan, monkeypatch):
    """And what covers more than was promised covers that, too."""
    modest = dishonest(MeanOperator, {"epsilon": 2.0, "delta": 1e-3, "unit": Unit.LABEL})
    monkeypatch.setattr("aggregator.server.variants.protocol", lambda kind: modest)
    plan = make_plan(variants=variants(("mean_operator", {"protect": "row"})), epsilons=(1.0,), **TWO_CLASSES)
    _, inquiry = begun(plan)
    [(question, _)] = inquiry.questions()
    assert (question.promise().unit, question.promise().epsilon) == (Unit.ROW, 1.0)
    lies = dishonest(PrivateLabels, Guarantee(1.0, 0.0, Unit.LABEL, Adjacency.REPLACE, "a dream"))
    monkeypatch.setattr("aggregator.server.variants.protocol", lambda kind: lies)
    plan = make_plan(variants=variants(("private_labels", {"noise": "off"})), epsilons=(1.0,), **REAL)
    with pytest.raises(InputError, match=r"epsilon.*1"):
        run(open_grid("inline"), plan, 6, NOBODY)


@pytest.mark.parametrize(
    "change", [{"epsilon": 0.999}, {"delta": 0.0}, {"unit": Unit.PARTY_AND_AUXILIARY_ROW}], ids=str
)
def test_an_aggregator_that_spends_more_than_promised_writes_nothing(make_plan, monkeypatch, change):
    lies = dishonest(SoftVote, change)
    plan = make_plan(variants=variants(("soft_vote", {"noise": "gaussian"})), epsilons=(1.0,))
    monkeypatch.setattr("aggregator.server.variants.protocol", lambda kind: lies)
    with pytest.raises(InputError, match=r"soft_vote.*epsilon.*1.*delta.*1e-06"):
        run(open_grid("inline"), plan, 40)
    assert not list(Path(plan.run.directory).glob("*.npz"))


BUDGET = {"epsilon": 1.5, "delta": 1e-3}


@pytest.mark.parametrize(("kind", "fields"), [
    ("soft_vote", {}), ("private_labels", REAL), ("class_ratio", BAGGED), ("mean_operator", TWO_CLASSES),
    ("error_marginals", TWO_CLASSES),
])  # fmt: skip
def test_a_deployment_with_a_budget_releases_nothing_without_a_guarantee(make_plan, kind, fields):
    known = {"variants": variants((kind, {"noise": "off"})), "epsilons": (1.0,), **fields}
    deployed = {**known, **DEPLOYED}
    with pytest.raises(BudgetExceededError, match=r"'v0'.*budget.*noise"):
        run(open_grid("inline"), make_plan(budget=BUDGET, **deployed), 6, NOBODY)
    for allowed in (make_plan(**deployed), make_plan(budget=BUDGET, **known)):  # no budget, or a simulation
        assert begun(allowed)[1].questions()


@pytest.mark.parametrize("changes", [{}, DEPLOYED], ids=["simulation", "deployment"])
def test_what_claims_a_guarantee_and_misses_it_is_refused_wherever_there_is_a_budget(make_plan, changes):
    known = {"variants": variants(("class_ratio", {"noise": "published_dirichlet"})), **BAGGED, **changes}
    assert begun(make_plan(**known))[1].questions()
    with pytest.raises(BudgetExceededError):
        run(open_grid("inline"), make_plan(budget=BUDGET, **known), 6, NOBODY)


def test_one_release_beyond_the_budget_is_refused_and_one_within_it_charged_as_it_was_foretold(make_plan):
    for changes in ({}, DEPLOYED):
        plan = make_plan(variants=variants(("soft_vote", {})), epsilons=(1.0, 1.6), budget=BUDGET, **changes)
        with pytest.raises(BudgetExceededError, match=r"'v0'.*epsilon.*1\.6"):
            run(open_grid("inline"), plan, 40, NOBODY)
    kinds = (("soft_vote", {}), ("majority_vote", {}))
    plan = make_plan(variants=variants(*kinds), epsilons=(0.5,), budget={"epsilon": 1.0, "delta": 0.0}, **DEPLOYED)
    _, summary = run(open_grid("inline"), plan, 40)
    [total] = summary["ledger"]["published_together"]
    assert (total["epsilon"], total["releases"]) == (1.0, 2)


TOGETHER = {
    "two variants": ({}, (("soft_vote", {}), ("majority_vote", {})), (1.0,)),
    "two epsilons": ({}, (("soft_vote", {}),), (0.75, 0.8)),
    "of parties": (REAL, (("private_labels", {}), ("label_sums", {})), (1.0,)),
    "epsilons of parties": (REAL, (("private_labels", {}),), (0.75, 0.8)),
    "whom one is part of": (TWO_CLASSES, (("soft_vote", {}), ("mean_operator", {})), (1.0,)),
}


@pytest.mark.parametrize("name", TOGETHER)
def test_a_deployment_refuses_releases_that_only_together_exceed_the_budget(make_plan, name):
    fields, kinds, epsilons = TOGETHER[name]
    known = {**fields, "variants": variants(*kinds), "epsilons": epsilons, "budget": BUDGET}
    with pytest.raises(BudgetExceededError):
        run(open_grid("inline"), make_plan(**{**known, **DEPLOYED}), 6, NOBODY)
    # Each world of a simulation is one of many that might have been; none is published beside another.
    assert begun(make_plan(**known))[1].questions()
    for kind in kinds:
        for epsilon in epsilons:
            alone = {**known, **DEPLOYED, "variants": variants(kind), "epsilons": (epsilon,)}
            assert begun(make_plan(**alone))[1].questions()
    assert begun(make_plan(**{**known, **DEPLOYED, "budget": {"epsilon": 2.0, "delta": 1e-3}}))[1].questions()


SENT = {"noise": "gaussian", "submit": "embedding"}


@pytest.mark.parametrize(("fields", "kind", "twins", "other"), [
    (REAL, "private_labels", [{"learner": learner} for learner in ("linear", "network")], {"noise": "laplace"}),
    (BAGGED, "class_ratio", [{**SENT, "estimator": one} for one in ("whitened", "class_means")], {"noise": "pure"}),
], ids=["labels", "bags"])  # fmt: skip
def test_releases_of_one_source_count_once(make_plan, fields, kind, twins, other):
    known = {**fields, **DEPLOYED, "epsilons": (1.0,), "budget": BUDGET}
    same = [(kind, options) for options in twins]
    assert begun(make_plan(variants=variants(*same), **known))[1].questions()
    with pytest.raises(BudgetExceededError, match=r"epsilon.*2"):
        begun(make_plan(variants=variants(*same, (kind, other)), **known))


def test_a_variant_that_cannot_begin_costs_itself_alone_and_two_adjacencies_have_no_total(make_plan):
    known = {**TWO_CLASSES, **DEPLOYED, "epsilons": (0.5,), "budget": {"epsilon": 100.0, "delta": 0.5}}
    exchange, moments = ("error_marginals", {"learner": "linear"}), ("mean_operator", {})
    replaced = ("error_marginals", {"learner": "linear", "adjacency": "replace"})
    with pytest.raises(BudgetExceededError):
        run(open_grid("inline"), make_plan(variants=variants(exchange, moments), **known), 6, NOBODY)
    for kinds in ([exchange, exchange], [replaced, moments]):
        assert begun(make_plan(variants=variants(*kinds), **known))[1].questions()
    kinds = variants(("soft_vote", {}), ("mean_operator", {}))
    with pytest.raises(InputError, match="'v1'"):
        begun(make_plan(variants=kinds))
    going, inquiry = begun(make_plan(variants=kinds, sparing=True))
    assert list(going.failed) == ["v1"]
    assert list(going.costs()) == ["v0"]
    assert [question.kind for question, _ in inquiry.questions()] == ["statistic"]


def test_a_reference_stands_in_no_ledger_fails_alone_and_a_deployment_has_none(make_plan):
    plain = make_plan(individual=5, features=({"whiten": "auto"}, "unit_norm"))
    run(open_grid("inline"), plain, 40)
    folder = Path(plain.run.directory)
    before, alone = ((folder / name).read_bytes() for name in ("soft_vote.npz", "world.json"))
    reference = VariantPlan("noise_free", "soft_vote", {"noise": "off"}, reference=True)
    run(open_grid("inline"), replace(plain, variants=(*plain.variants, reference)), 40)
    beside, known = json.loads((folder / "world.json").read_text()), json.loads(alone)
    assert (folder / "soft_vote.npz").read_bytes() == before
    assert (beside["ledger"], beside["individual"]) == (known["ledger"], known["individual"])
    exact = ReleasedModels.load(folder / "noise_free.npz")
    assert [one["non_private"] for one in exact.guarantees] == [True]
    reference = VariantPlan("noise_free", "mean_operator", {"noise": "off"}, reference=True)
    going, _ = begun(make_plan(variants=(*variants(("soft_vote", {})), reference)))
    assert going.failed == {}
    going.begin_references()
    assert (list(going.failed), list(going.missing)) == ([], ["noise_free"])
    assert list(going.costs()) == ["v0"]
    with pytest.raises(InputError):
        make_plan(variants=(replace(reference, kind="soft_vote"),), **DEPLOYED)


@pytest.fixture(autouse=True)
def nobody_debugs(monkeypatch):
    monkeypatch.delenv(DEBUG, raising=False)


def fail(failed, name, error):
    with failed.sparing_others(name):
        raise error


def test_an_error_is_noted_in_one_line_and_that_of_the_last_variant_is_raised():
    failed = FailedVariants(["a", "b", "c"])
    for cause in ("first", "too few rows"):
        fail(failed, "a", InputError(cause))
    assert failed.causes == {"a": "too few rows"}
    fail(failed, "b", ZeroDivisionError("odd\nthing"))
    assert re.search(rf"ZeroDivisionError.*{DEBUG}.*1", failed.causes["b"])
    with failed.sparing_others("c"):
        pass
    with pytest.raises(InputError, match=r"'c'.*second"):
        fail(failed, "c", InputError("second"))
    assert list(failed.causes) == ["a", "b"]


@pytest.mark.parametrize("error", [BudgetExceededError("too much"), QuorumError("too few")])
def test_budgets_and_quorums_are_for_the_whole_world(error):
    failed = FailedVariants(["a", "b"])
    with pytest.raises(type(error), match=rf"'a'.*{error}"):
        fail(failed, "a", error)
    assert failed.causes == {}


FULL_DISK = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(("error", "debug"), [(KeyboardInterrupt(), ""), (FULL_DISK, ""), (InputError("x"), "1")])
def test_who_leaves_the_program_full_disks_and_debugged_errors_are_raised_as_they_are(error, debug, monkeypatch):
    failed = FailedVariants(["a", "b"])
    with monkeypatch.context() as context:
        context.setenv(DEBUG, debug)
        with pytest.raises(type(error)) as raised:
            fail(failed, "a", error)
    assert raised.value is error
    assert failed.causes == {}
    if error is FULL_DISK:
        fail(failed, "b", InputError("noted, as the other is left still"))
        assert list(failed.causes) == ["b"]


@pytest.mark.parametrize(("error", "kind"), [(InputError("x"), InputError), (KeyError("x"), FederationError)])
def test_blame_keeps_the_kind_of_an_error_and_its_cause(error, kind):
    with pytest.raises(FederationError, match="'a'") as raised, blaming("a"):
        raise error
    assert type(raised.value) is kind
    assert raised.value.__cause__ is error
