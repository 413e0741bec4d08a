"""A sample of what `python -m benchmarks.fuzz sums` tries by the ten thousand."""

import pytest

from benchmarks.fuzz.inputs import Input
from benchmarks.fuzz.sums import Sums
from benchmarks.fuzz.worker import KINDS, REFUSED, TAKEN, TRACEBACK, made, tried
from federation.secure_aggregation.messages import AGREE, KEYS, MASKED, SHARES, UNMASK


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    target = Sums(tmp_path_factory.mktemp("sums"))
    return target, target.seeds()


def test_whatever_is_said_in_a_sum_is_a_seed_and_ends_it_well(target):
    target, seeds = target
    outcomes = {one.route: tried(target, one) for one in seeds}
    assert {route: one.text for route, one in outcomes.items() if one.kind in KINDS} == {}
    for how in ("asked", "told"):
        for adversary, order in (("active", (KEYS, SHARES, MASKED, AGREE, UNMASK)), ("semi_honest", None)):
            known = {int(route.rpartition("+")[2]) for route in outcomes if route.startswith(f"{how}+{adversary}")}
            assert known == {*(order or (KEYS, SHARES, MASKED, UNMASK))}
    told = [outcome.place for route, outcome in outcomes.items() if route.startswith(("told", "upload"))]
    assert all(place.endswith("5 are in the sum") for place in told)


def test_no_mutated_message_ends_unexpectedly(target):
    target, seeds = target
    outcomes = [tried(target, made(target, seeds, len(seeds), 0, number)) for number in range(80)]
    assert [one.text for one in outcomes if one.kind in KINDS] == []
    assert {one.kind for one in outcomes} == {TAKEN, REFUSED}


def test_an_error_that_nobody_foresaw_is_found(target, monkeypatch):
    target, seeds = target
    monkeypatch.setattr("aggregator.secure_aggregation.server.masks.recovered", lambda *_: {}["shares"])
    told = next(one for one in seeds if one.route == f"told+active+{UNMASK}")
    assert tried(target, told).kind == TRACEBACK
    assert tried(target, Input("head", b"")).kind == REFUSED


def test_seeds_are_the_same_in_every_process(target, tmp_path):
    assert Sums(tmp_path).seeds() == target[1]
