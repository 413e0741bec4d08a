"""A sample of what `python -m benchmarks.fuzz` tries by the ten thousand, of files, of sites and of sums."""

import pytest

from benchmarks.fuzz.files import Files
from benchmarks.fuzz.inputs import Input
from benchmarks.fuzz.sites import Sites
from benchmarks.fuzz.sums import Sums
from benchmarks.fuzz.worker import KINDS, REFUSED, TAKEN, TRACEBACK, made, tried
from federation.secure_aggregation.messages import AGREE, KEYS, MASKED, SHARES, UNMASK


def opened(kind, tmp_path_factory):
    target = kind(tmp_path_factory.mktemp(kind.__name__))
    return target, target.seeds()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return opened(Files, tmp_path_factory)


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    return opened(Sites, tmp_path_factory)


@pytest.fixture(scope="module")
def sums(tmp_path_factory):
    return opened(Sums, tmp_path_factory)


@pytest.mark.parametrize(("name", "count"), [("files", 80), ("sites", 40), ("sums", 80)])
def test_seeds_are_the_same_in_every_process_and_no_mutated_input_ends_unexpectedly(request, tmp_path, name, count):
    target, seeds = request.getfixturevalue(name)
    assert type(target)(tmp_path).seeds() == seeds
    outcomes = [tried(target, made(target, seeds, len(seeds), 0, number)) for number in range(count)]
    assert [one.text for one in outcomes if one.kind in KINDS] == []
    assert {one.kind for one in outcomes} == {TAKEN, REFUSED}


def test_every_file_can_be_read_or_applied_and_a_kept_one_has_the_ending_of_its_format(files):
    target, seeds = files
    assert {tried(target, one).kind for one in dict.fromkeys(seeds)} == {TAKEN}
    assert {target.suffix(one) for one in seeds} == {".csv", ".npz", ".parquet"}


def test_every_file_of_a_site_is_read_and_the_usual_site_is_ready(sites):
    target, seeds = sites
    outcomes = {one: tried(target, one) for one in seeds}
    assert {one.kind for one in outcomes.values()} == {TAKEN}
    ready = {one.route for one, outcome in outcomes.items() if " 0 errors" in outcome.place}
    assert ready == {"site", "plan", "journal", "approval", "rows"}
    [masks] = [outcome.place for one, outcome in outcomes.items() if one.route == "masks"]
    assert "told the sum of the masks of 4 of 4 sites" in masks


def test_whatever_is_said_in_a_sum_is_a_seed_and_ends_it_well(sums):
    target, seeds = sums
    outcomes = {one.route: tried(target, one) for one in seeds}
    assert {route: one.text for route, one in outcomes.items() if one.kind in KINDS} == {}
    for how in ("asked", "told"):
        for adversary, order in (("active", (KEYS, SHARES, MASKED, AGREE, UNMASK)), ("semi_honest", None)):
            known = {int(route.rpartition("+")[2]) for route in outcomes if route.startswith(f"{how}+{adversary}")}
            assert known == {*(order or (KEYS, SHARES, MASKED, UNMASK))}
    told = [outcome.place for route, outcome in outcomes.items() if route.startswith(("told", "upload"))]
    assert all(place.endswith("5 are in the sum") for place in told)


@pytest.mark.parametrize(
    ("name", "broken", "lacking", "route", "other"),
    [
        ("sites", "scenarios.deployment.site_texts.contents", "rows", None, Input("site", b"name = 3")),
        (
            "sums",
            "aggregator.secure_aggregation.server.masks.recovered",
            "shares",
            f"told+active+{UNMASK}",
            Input("head", b""),
        ),
    ],
    ids=["sites", "sums"],
)
def test_an_error_that_nobody_foresaw_is_found(request, monkeypatch, name, broken, lacking, route, other):
    target, seeds = request.getfixturevalue(name)
    monkeypatch.setattr(broken, lambda *_: {}[lacking])
    assert tried(target, next(one for one in seeds if route in (None, one.route))).kind == TRACEBACK
    assert tried(target, other).kind == REFUSED
