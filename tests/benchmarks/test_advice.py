"""The arithmetic of the benchmark of advice, and one small run of it."""

import pytest

from aggregator.contract.protocol import Trust
from benchmarks.advice import UNITS, judged, needed, planned, regret, scenario_of, variants_of, wish_of
from benchmarks.defaults.cells import Table
from benchmarks.defaults.records import Record
from benchmarks.defaults.sets import prepared


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    unit = UNITS["label"]
    return prepared("breast_cancer", unit.sets["breast_cancer"], 300, tmp_path_factory.mktemp("sets"))


def test_regret_is_how_far_the_choice_is_behind_the_best_on_other_splits():
    values = {"a": {0: 0.9, 1: 0.7, 2: 0.7}, "b": {0: 0.5, 1: 0.8, 2: 0.8}}
    found = regret("a", values, [1, 2], 0.6, "accuracy")
    assert (round(found.amount, 3), found.near, found.possible) == (0.1, False, True)
    errors = regret("b", {"a": {0: 10.0}, "b": {0: 10.9}}, [0], 9.0, "mse")
    assert (round(errors.amount, 3), errors.near, errors.possible) == (0.09, True, False)


def test_every_protocol_that_advice_would_rank_is_run(small):
    scenario = scenario_of(small, 10, 2)
    wish = wish_of(UNITS["label"], scenario)
    names = [one.name for one in variants_of(wish, (Trust.NONE, Trust.SECURE))]
    assert "mean_operator trust: secure" in names
    assert "mean_operator trust: secure" not in [one.name for one in variants_of(wish, (Trust.NONE,))]
    assert (wish.parties, wish.trust, wish.public_features) == (10, Trust.SECURE, True)
    jobs = list(planned("label", [small], [10], 2, 2))
    assert [(setting.trust, job.split) for job, setting in jobs] == 2 * [
        (Trust.NONE, 0), (Trust.SECURE, 0), (Trust.NONE, 1), (Trust.SECURE, 1),
    ]  # fmt: skip
    kinds = [{name.split()[0] for name, _ in job.labels} for job, _ in jobs]
    assert kinds == 4 * [{"mean_operator", "constant", "pooled"}] + 4 * [{"error_marginals"}]


def test_what_is_best_by_luck_on_one_split_is_no_regret_on_the_others():
    same = {"a": {0: 0.7, 1: 0.8, 2: 0.7, 3: 0.8}, "b": {0: 0.8, 1: 0.7, 2: 0.8, 3: 0.7}}
    assert regret("a", same, [0], 0.5, "accuracy").amount == pytest.approx(0.1)
    assert regret("a", same, [0, 1, 2, 3], 0.5, "accuracy").amount <= 0
    worse = {"a": {0: 0.7, 1: 0.7, 2: 0.7}, "b": {0: 0.8, 1: 0.8, 2: 0.8}}
    assert regret("a", worse, [0, 1, 2], 0.5, "accuracy").amount == pytest.approx(0.1)
    assert regret("b", worse, [0, 1, 2], 0.9, "accuracy").possible is False


def test_choices_are_scored_on_splits_that_they_did_not_see(small):
    setting = next(setting for _, setting in planned("label", [small], [10], 1, 2))
    names = [one.name for one in variants_of(setting.wish, (setting.trust,))]
    records = [
        Record("p", small.name, "K=10", split, "k", name, "", epsilon, "accuracy", 0.7 + place * luck + epsilon / 50)
        for place, name in enumerate(names)
        for split, luck in enumerate((0.01, 0.0, 0.0))
        for epsilon in (0.1, 0.3, 1.0, 3.0, 10.0)
    ]
    for split in range(3):
        for kind, value in (("constant", 0.6), ("pooled", 0.95)):
            records.append(Record("p", small.name, "K=10", split, "k", kind, "", float("inf"), "accuracy", value))
    table = Table(records)
    ways = {}
    for way, one in judged(setting, table):
        ways.setdefault(way, []).append(one)
    assert len(ways["stage 1"]) == 3  # epsilons
    assert len(ways["pilot of 1 split"]) == len(ways["pilot of 2 splits"]) == 9
    assert all(one.possible for found in ways.values() for one in found)
    ratios = list(needed(setting, table))
    assert ratios
    assert all(ratio > 0 for ratio in ratios)
