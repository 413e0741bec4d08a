"""A sample of what `python -m benchmarks.fuzz sites` tries by the ten thousand."""

import pytest

from benchmarks.fuzz.inputs import Input
from benchmarks.fuzz.sites import Sites
from benchmarks.fuzz.worker import KINDS, REFUSED, TAKEN, TRACEBACK, made, tried


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    target = Sites(tmp_path_factory.mktemp("sites"))
    return target, target.seeds()


def test_every_seed_is_read_and_the_usual_site_is_ready(target):
    target, seeds = target
    outcomes = {one: tried(target, one) for one in seeds}
    assert {one.kind for one in outcomes.values()} == {TAKEN}
    ready = {one.route for one, outcome in outcomes.items() if " 0 errors" in outcome.place}
    assert ready == {"site", "plan", "journal", "approval", "rows"}
    [masks] = [outcome.place for one, outcome in outcomes.items() if one.route == "masks"]
    assert "told the sum of the masks of 4 of 4 sites" in masks


def test_no_mutated_file_ends_unexpectedly(target):
    target, seeds = target
    outcomes = [tried(target, made(target, seeds, len(seeds), 0, number)) for number in range(40)]
    assert [one.text for one in outcomes if one.kind in KINDS] == []
    assert {one.kind for one in outcomes} == {TAKEN, REFUSED}


def test_an_error_that_nobody_foresaw_is_found(target, monkeypatch):
    target, seeds = target
    monkeypatch.setattr("scenarios.deployment.site_texts.contents", lambda *_: {}["rows"])
    assert tried(target, seeds[0]).kind == TRACEBACK
    assert tried(target, Input("site", b"name = 3")).kind == REFUSED


def test_seeds_are_the_same_in_every_process(target, tmp_path):
    assert Sites(tmp_path).seeds() == target[1]
