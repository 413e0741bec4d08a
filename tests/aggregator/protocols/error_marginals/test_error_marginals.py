"""Exchanges through the two apps, round after round: what is asked, what is learned, and what is promised."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.two_class_parties import draw, plan_fixture
from support.worlds import guarantees, run, run_in_cohorts

from aggregator.contract.protocol import Refused
from aggregator.protocols.error_marginals import session as exchange_session
from aggregator.protocols.error_marginals.error_marginals import ErrorMarginals
from aggregator.protocols.mean_operator.mean_operator import MeanOperator
from aggregator.releases.models import ReleasedClassifiers
from aggregator.server.app import run_plan
from aggregator.trial.plan import PublicNumbers, VariantPlan
from federation.contract.errors import InputError
from federation.contract.plugins import Reference
from federation.contract.trust import TrustTerms
from federation.engines.inline import open_grid
from federation.engines.nodes import Placement
from federation.queries.marginals import MarginalsNoise, exchange_noise
from parties.guard import answering
from scenarios.testing.small_trials import SitesGrid

HONEST = Reference("support.two_class_parties:Parties")
SMALL = {"learner": "linear"}
VARIANTS = {
    "default": SMALL,
    "pure": {**SMALL, "noise": "pure", "memory": "instantaneous"},
    "replace": {**SMALL, "noise": "gaussian", "adjacency": "replace"},
    "label": {**SMALL, "protect": "label"},
    "published": {**SMALL, "noise": "published", "protect": "label", "labels": "least_squares", "rounding": "hard"},
    "shares": {**SMALL, "trust": "secure"},
    "weighted": {**SMALL, "importance": "always"},
    "network": {"hidden": (4,), "rounds": 1, "noise": "off"},
    "off": {**SMALL, "noise": "off"},
}
UNSAFE = {"network", "off"}

plan = plan_fixture("error_marginals", VARIANTS)


def models(plan, name):
    return ReleasedClassifiers.load(Path(plan.run.directory) / f"{name}.npz")


@pytest.mark.slow
def test_releases_are_the_same_bytes_whatever_the_cohorts(plan):
    _, summary = run_in_cohorts(plan(), Reference("support.two_class_parties:Parties", {"broken": [3]}))
    assert summary["answered"] == 5
    [(text, count)] = summary["failures"].items()
    assert "labels must be one number per row" in text
    assert count == 1


@pytest.mark.slow
def test_every_variant_learns_where_noise_leaves_something(plan):
    chosen = plan()
    run(open_grid("inline"), chosen, 6, HONEST)
    rows, labels = draw(7777, 2000)
    for name in VARIANTS:
        released = models(chosen, name)
        last = len(released.epsilons) - 1
        found = released.predict(last, 0, released.feature_maps[last].transform(rows))
        assert np.mean(found == labels) > 0.8, name


def test_every_draw_is_an_exchange_of_its_own_and_numbers_of_rows_are_used_only_where_they_are_public(plan):
    chosen = plan("default", epsilons=(1.0,))
    run(open_grid("inline"), chosen, 6, HONEST)
    first, second = (models(chosen, "default").hypotheses(0, draw) for draw in range(2))
    assert (first[0].parameters != second[0].parameters).any()

    def released(**changes):
        chosen = plan("default", "replace", epsilons=(1.0,), draws=1, **changes)
        return run(open_grid("inline"), chosen, 6, HONEST)[0]

    many, few = released(private_rows=381), released(private_rows=40)
    assert many["default.npz"] == few["default.npz"]
    assert many["replace.npz"] != few["replace.npz"]


def test_a_guarantee_is_for_all_queries_together(plan):
    _, summary = run(open_grid("inline"), plan(epsilons=(1.0,), draws=1), 6, HONEST)
    found = guarantees(summary)
    assert {name for name, guarantee in found.items() if guarantee.get("non_private")} == UNSAFE
    for name in set(VARIANTS) - UNSAFE:
        guarantee = found[name]
        assert guarantee["epsilon"] == 1.0
        assert guarantee["parameters"]["queries"] == (3 if name == "weighted" else 2)
        assert guarantee["unit"] == ("label" if name in ("label", "published") else "row")
        added = name in ("default", "pure", "shares", "weighted")
        assert guarantee["adjacency"] == ("add_remove" if added else "replace")


@pytest.mark.slow
def test_shifted_rows_are_weighted_unless_the_variant_says_otherwise(plan):
    variants = tuple(
        VariantPlan(name, "error_marginals", {**SMALL, "noise": "pure", "importance": name})
        for name in ("auto", "never", "always")
    )
    for shifted, expected in ((False, [2, 2, 3]), (True, [3, 2, 3])):
        chosen = plan(variants=variants, shifted=shifted, epsilons=(1.0,), draws=1)
        _, summary = run(open_grid("inline"), chosen, 6, HONEST)
        queries = [entry["guarantee"]["parameters"]["queries"] for entry in summary["ledger"]["releases"]]
        assert queries == expected


def test_only_the_published_form_takes_its_bins_and_what_is_expected_is_behind_the_mean_operator():
    published = {"noise": "published", "protect": "label"}
    assert ErrorMarginals(**published).settings(shifted=False).bins == "four_deviations"
    assert ErrorMarginals(**published, bins=5).settings(shifted=False).bins == 5
    assert ErrorMarginals().settings(shifted=False).bins is None
    assert ErrorMarginals(bins="four_deviations").settings(shifted=False).bins == "four_deviations"
    known = PublicNumbers(1e-6, terms=TrustTerms(10), rows=2000, features=20, classes=2)
    found, other = (kind.expected_error(known, 1.0) for kind in (ErrorMarginals(), MeanOperator(protect="row")))
    assert found.error > other.error
    drowned = ErrorMarginals().expected_error(replace(known, majority=0.9), 0.01)
    assert drowned.error == pytest.approx(0.1)
    assert ErrorMarginals(noise="off").expected_error(known, 1.0) is None
    assert ErrorMarginals(noise="off").idle().keys() == {"protect", "adjacency", "expected_rows"}
    assert ErrorMarginals().idle() == {}
    many = replace(known, terms=TrustTerms(50))
    alone, shared = (ErrorMarginals(trust=how).expected_error(many, 1.0) for how in ("none", "secure"))
    assert shared.error < alone.error


def test_every_answer_has_noise_of_its_own(plan, monkeypatch):
    """Equal bits for two answers would let their difference tell the counts."""
    taken, honest = [], answering.NoiseBits

    def noted(seed, key, party):
        taken.append((key, party))
        return honest(seed, key, party)

    monkeypatch.setattr(answering, "NoiseBits", noted)
    run(open_grid("inline"), plan("default", "weighted"), 6, HONEST)
    assert len(taken) >= 6 * 2 * 2 * (1 + 2)  # parties, epsilons, draws, queries of both
    assert len(set(taken)) == len(taken)


@pytest.fixture
def told(monkeypatch):
    """What learners are told when they begin, and the noise of the totals of which they count the rows."""
    begun, counted = [], []

    class Noted(exchange_session.ErrorMarginalsLearner):
        def __init__(self, *arguments, **known):
            begun.append(known)
            super().__init__(*arguments, **known)

        def count_rows(self, deviation):
            counted.append(deviation)
            super().count_rows(deviation)

    monkeypatch.setattr(exchange_session, "ErrorMarginalsLearner", Noted)
    return begun, counted


def test_the_learner_knows_the_noise_of_all_that_came(plan, told):
    begun, counted = told
    chosen = plan("replace", epsilons=(1.0,), draws=1)
    run(open_grid("inline"), chosen, 6, HONEST)
    alone = exchange_noise(MarginalsNoise("gaussian", 1.0, 1e-5), 3, 2, "row", "replace").deviation
    assert begun[0]["deviation"] == pytest.approx(alone * 6**0.5)
    assert (begun[0]["rows"], counted) == (381, [])
    run(open_grid("inline"), chosen, 6, Reference("support.two_class_parties:Parties", {"broken": [3]}))
    assert counted == pytest.approx([alone * 5**0.5] * 2)
    begun.clear()
    counted.clear()
    chosen = plan("shares", epsilons=(1.0,), draws=1, quorum=4 / 6, colluding=0.1)
    run(open_grid("inline"), chosen, 6, Reference("support.two_class_parties:Parties", {"broken": [3]}))
    noise = MarginalsNoise("auto", 1.0, 1e-5)
    whole = exchange_noise(noise, 3, 2, "row", "add_remove", contributors=3).deviation
    assert whole == pytest.approx(exchange_noise(noise, 3, 2, "row", "add_remove").deviation, rel=2e-3)
    assert [known["deviation"] for known in begun] == pytest.approx([whole * (6 / 3) ** 0.5])
    assert counted == pytest.approx([whole * (5 / 3) ** 0.5] * 2)


def test_of_shares_the_ledger_says_who_must_be_honest_and_that_nobody_saw_an_answer(plan):
    _, summary = run(open_grid("inline"), plan("shares", epsilons=(1.0,), quorum=4 / 6), 6, HONEST)
    [guarantee] = guarantees(summary).values()
    assert guarantee["parameters"]["contributors"] == 3
    told = json.dumps(summary["ledger"])
    assert "at least 4 of 6 answer, and at most 1 of them collude" in told
    assert "nobody saw a party's answer" in told
    rates = ErrorMarginals(noise="published", protect="label", trust="secure")  # which cannot be shared
    assert isinstance(rates.place, Refused)
    assert "cannot be added; use noise: auto, pure or gaussian" in rates.place.reason


def test_a_deployment_answers_each_query_once(plan, tmp_path):
    """Two rounds at a site, which remembers both queries.

    Its noise follows no seed, so epsilon is large: much noise would now and then teach the learner the constant class
    that it asked about first, which it does not ask about again.
    """
    chosen = plan("default", epsilons=(1000.0,), draws=1, parties=1, simulation=False, noise_seed=None)
    chosen = chosen.changed(parties_per_node=1)
    grid = SitesGrid()
    grid.assign(Placement(1, 1, HONEST, seed=1))
    run_plan(grid, chosen)
    assert [cost.query for cost in grid.costs[0]] == [0, 1]
    assert len({cost.release for cost in grid.costs[0]}) == 1
    assert models(chosen, "default").hypotheses(0, 0)


def test_more_than_two_classes_are_refused(plan):
    with pytest.raises(InputError, match=r"data\.positive"):
        run(open_grid("inline"), plan("default", classes=("a", "b", "c")), 6, HONEST)


@pytest.mark.slow
def test_under_much_noise_the_guard_releases_a_constant_class(plan):
    rows, _ = draw(7777, 500)
    kept = []
    for guard in (False, True):
        variants = (VariantPlan("same", "error_marginals", {**SMALL, "noise": "pure", "guard": guard}),)
        chosen = plan(variants=variants, epsilons=(0.01,), draws=8)
        run(open_grid("inline"), chosen, 6, HONEST)
        released = models(chosen, "same")
        features = released.feature_maps[0].transform(rows)
        kept.append(sum(len(np.unique(released.predict(0, each, features))) == 2 for each in range(8)))
    assert 0 < kept[1] < kept[0]
