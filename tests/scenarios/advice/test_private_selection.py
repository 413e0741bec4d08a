"""The private selection scores on rows it did not learn from, pays for all tries, and tells no number of tries."""

import json
import logging
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from support.refusals import refused

from aggregator.advice import Wish, rank
from aggregator.contract.protocol import Trust
from federation.contract.errors import FederationError
from federation.contract.guarantee import SEEDED, Adjacency, Guarantee, Unit
from federation.contract.trust import TrustTerms
from federation.mechanisms.accounting.private_selection import RandomStopping, weakest_curve
from federation.mechanisms.noise.additive import calibrate_laplace
from scenarios.advice import private_selection as selecting
from scenarios.advice.target import of_scenario
from scenarios.advice.texts import named
from scenarios.runs.trial import World


def subject(tmp_path, protect="label", task="binary", trust=Trust.NONE, features=True, **sections):
    """Of a generated file with 16 sites and 40 people, whose public rows are in another."""
    random = np.random.default_rng(1)
    for name, count in (("own", 240), ("public", 60)):
        rows = random.normal(size=(count, 2))
        lines = [
            f"{a:.3f},{b:.3f},s{i % 16},{i % 40},{'ill' if a + b > 0 else 'well'},{np.clip(a - b, -1, 1):.3f}"
            for i, (a, b) in enumerate(rows)
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join(["age,dose,site,who,outcome,gain", *lines]) + "\n")
    label, other = ("outcome", "gain") if task == "binary" else ("gain", "outcome")
    data = {
        "source": str(tmp_path / "own.csv"), "label": label, "auxiliary": str(tmp_path / "public.csv"),
        "drop": ["site", "who", other],
    }  # fmt: skip
    plain = {
        "data": data if task == "binary" else {**data, "range": [-1, 1]}, "parties": {"count": 4},
        "privacy": {"epsilon": 1.0}, "protocols": [{"kind": "pooled"}], "trials": {"splits": 1},
    }  # fmt: skip
    for name, changes in sections.items():
        plain[name] = {**plain[name], **changes}
    (tmp_path / "own.yaml").write_text(json.dumps(plain))
    return of_scenario(tmp_path / "own.yaml", Wish(task, protect, trust, features), None)


def plan(found, tries=4):
    return selecting.planned(found, rank(found.wish).ranked, tries)


def test_a_try_is_scored_on_rows_that_it_did_not_learn_from_and_all_are_paid_for(tmp_path, monkeypatch, capfd):
    found = plan(subject(tmp_path))
    monkeypatch.setattr(RandomStopping, "draw", lambda *_: 3)
    tried, run = [], World.run

    def watched(world, *arguments, **named):
        tried.append(world)
        return run(world, *arguments, **named)

    monkeypatch.setattr(World, "run", watched)
    made = found.made()
    assert len(tried) == 3
    cut = tried[0].split.cut
    assert not {*cut.test} & {*np.asarray(cut.order)}
    assert {world.scenario.privacy.entropy for world in tried} == {"system"}
    assert found.noise.sensitivity == pytest.approx(1 / len(cut.test), rel=1e-6)
    assert found.noise.epsilon == 1.0
    whole = made.guarantee
    assert (whole.epsilon, whole.delta) == found.law.spent(weakest_curve(1.0, found.delta), 1.0)
    assert whole.epsilon <= 3.0
    assert whole.delta == pytest.approx(1e-6)
    assert made.chosen in found.candidates
    assert abs(made.score - 0.9) < 0.3
    assert [Guarantee.from_dict(one) for one in made.released.guarantees] == [whole]
    assert capfd.readouterr() == ("", "")  # or it could be counted
    assert logging.root.manager.disable == 0


def test_whole_parties_are_held_out_and_each_has_one_share_of_the_score(tmp_path):
    by_site = {"data": {"drop": ["who", "gain"]}, "parties": {"count": None, "partition": {"by": "site"}}}
    found = plan(subject(tmp_path, "party", trust=Trust.AGGREGATOR, features=False, **by_site))
    assert (found.unit, found.column) == (Unit.PARTY, "site")
    [pieces] = {world.split for world in found._worlds[:1]}
    sites = pieces.table.groups["site"]
    tested = {*sites[pieces.cut.test]}
    assert len(tested) == len(found._held_out) == 4
    assert not tested & {*sites[pieces.cut.order]}
    assert pieces.cut.parties == 12
    assert found.noise.sensitivity == pytest.approx(1 / 4, rel=1e-6)


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_one_unit_moves_a_score_by_its_share_at_most_whatever_a_model_says(tmp_path, task):
    found = plan(subject(tmp_path, task=task))
    pieces = found._worlds[0].split
    true = pieces.table.labels[pieces.cut.test].astype(float)
    wild = np.where(np.arange(len(true)) % 2, np.nan, np.inf) if task == "regression" else 1 - true

    def scored(answers):
        return found._score(SimpleNamespace(predicted=lambda release, draw, rows: answers))

    assert scored(true) == 1.0
    assert scored(wild) == 0.0
    assert scored(np.append(wild[:1], true[1:])) == pytest.approx(1 - found.noise.sensitivity, rel=1e-6)


def test_what_a_try_does_not_promise_is_not_counted_on(tmp_path, monkeypatch):
    found = plan(subject(tmp_path))
    monkeypatch.setattr(RandomStopping, "draw", lambda *_: 1)

    def seeded(world):
        privacy = world.scenario.privacy.model_copy(update={"entropy": "seed"})
        return replace(world, scenario=world.scenario.model_copy(update={"privacy": privacy}))

    own = found._worlds
    for changes, worlds in (({"epsilon": 0.9}, own), ({"unit": Unit.PARTY}, own), ({}, [*map(seeded, own)])):
        other = replace(found, **changes)
        other.__dict__["_worlds"] = worlds
        refused(None, other.made)
    monkeypatch.setattr(World, "run", lambda *_: ([], {"failed_variants": {"candidate": "a secret"}}))
    with pytest.raises(FederationError) as raised:
        found.made()
    assert "secret" not in str(raised.value)
    assert SEEDED.text not in {one.text for one in found.guarantee.assumptions}


SECRET_PARTY = {"protect": "party", "trust": Trust.AGGREGATOR}


@pytest.mark.parametrize(
    ("changes", "sections", "why"),
    [
        ({"features": False, "protect": "row"}, {"data": {"auxiliary": 0.2}}, None),
        (SECRET_PARTY, {"data": {"auxiliary": 0.2}}, None),
        ({}, {"parties": {"partition": {"dirichlet": 0.5}}}, None),
        ({"features": False, **SECRET_PARTY}, {}, "--group"),
        ({"features": False, "protect": "row"}, {}, "mean_operator"),
    ],
)
def test_what_cannot_be_proved_is_refused(tmp_path, changes, sections, why):
    refused(why, plan, subject(tmp_path, **changes, **sections))


def test_it_needs_candidates_tries_and_rows_that_can_be_scored(tmp_path):
    found = subject(tmp_path)
    ranked, ratio = rank(found.wish).ranked, replace(found.wish, task="ratio")
    for changes, candidates, tries, why in (
        ({"counted": ""}, ranked, 4, None), ({"deployed": True}, ranked, 4, None), ({"wish": ratio}, ranked, 4, None),
        ({}, [], 4, None), ({}, ranked, 1, "tries"),
    ):  # fmt: skip
        refused(why, selecting.planned, replace(found, **changes), candidates, tries)
    assert selecting.MOST_CANDIDATES >= len(selecting.planned(found, ranked, 4).candidates) > 1


RANKED = rank(Wish("binary", "label", Trust.NONE, rows=900, features=5, terms=TrustTerms(9))).ranked
SPENT = Guarantee(2.5, 1e-6, Unit.LABEL, Adjacency.REPLACE, "private_selection")


def selection(left_out=()):
    noise = calibrate_laplace(l1_sensitivity=0.01, dimension=1, epsilon=1.0)
    law = RandomStopping.of_mean(8)
    return SimpleNamespace(candidates=RANKED[:2], left_out=left_out, law=law, noise=noise)


@pytest.mark.parametrize("place", [0, 1])
def test_the_choice_and_its_cost_are_told_beside_what_costs_nothing(place):
    found = selecting.Selected(RANKED[place], 0.812, None, SPENT)
    told = selecting.sentences(selection(["x (why)"]), found)
    assert any("epsilon 2.5 and delta 1e-06 for one label (replace)" in line for line in told)
    assert any(f"Use {named(RANKED[place])}" in line and "0.812, give or take 0.014" in line for line in told)
    assert ("choose the same, for nothing" in told[-1]) is (place == 0)
    assert "Left out: x (why)." in told
    assert not any(" s." in line for line in told)
    [row] = selecting.rows(selection(), found)
    assert row["chosen"] == named(RANKED[place])
    record = json.loads(json.dumps(selecting.record(selection(), found)))
    assert (record["charged"], record["guarantee"]["epsilon"]) == (True, 2.5)
    assert "every ledger counts that" in selecting.why(found)
