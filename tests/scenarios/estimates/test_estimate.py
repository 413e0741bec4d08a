"""A dry run sums up rates over splits and settings, for workers side by side, and tells the estimate to people."""

import json
from dataclasses import replace

import pytest

from scenarios.estimates import estimate as module
from scenarios.estimates.rates import Line, Rates


@pytest.fixture
def calibrations(monkeypatch):
    """The worlds that were calibrated, with little time each."""
    seen = []
    real = module.calibrated

    def watched(world, per_node, seconds):
        seen.append((world.swept, per_node))
        return real(world, per_node, 0.0)

    monkeypatch.setattr(module, "calibrated", watched)
    return seen


@pytest.mark.slow
def test_settings_that_differ_in_parties_only_are_calibrated_once(scenario, calibrations):
    found = module.estimate(scenario("parties.count=[100, 1000]", "trials.splits=3"), None, 0.5)
    assert [swept for swept, _ in calibrations] == [{"parties.count": 1000}]
    assert found.largest == "parties.count=1000"
    assert "secure sums" not in found.found
    assert found.answers == pytest.approx(3 * 1100 * found.bytes_per_party, rel=0.2)
    assert found.seconds["collect"].likely > 3 * found.largest_seconds.low * 0.1
    assert set(found.seconds) == set(module.PHASES)
    assert found.all.low <= found.all.likely <= found.all.high


@pytest.mark.slow
def test_of_many_kinds_of_settings_some_stand_for_all(scenario, calibrations, monkeypatch):
    monkeypatch.setattr(module, "_MOST_CALIBRATED", 2)
    vote = "protocols=[{kind: soft_vote, trust: secure}]"
    found = module.estimate(scenario("parties.count=40", "parties.rows=[3, 4, 5]", vote), None, 0.1)
    assert len(calibrations) == 2
    assert "of secure sums the answers alone are counted" in found.found
    assert "2 of 3 kinds of settings were tried" in found.found


@pytest.mark.slow
def test_the_record_is_json_and_names_what_is_left_out_and_a_cluster_is_not_asked(scenario, calibrations):
    found = module.estimate(scenario("parties.count=40", "engine={kind: ray, workers: 3}"), None, 0.1)
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["largest"] == "the only setting"
    assert plain["mebibytes"]["each_worker"] > 0
    assert "3 workers on" in plain["found"]
    assert "left_out" not in plain
    assert all(low <= likely <= high for low, likely, high in plain["seconds"].values())
    cluster = module.estimate(scenario("parties.count=40", "engine={kind: ray, ray: {address: 'host:1'}}"), None, 0.1)
    assert "engine.workers" in cluster.found


def line(fixed, each):
    return Line(fixed, each, each, each)


RATES = Rates(
    answering=line(0.0, 1e-3), gathering=line(0.0, 1e-6), release=line(2.0, 0.0), scoring=line(3.0, 0.0),
    sent=line(0.0, 100.0), held=line(1e6, 2.0), alone=0.0, once=0.5, crowding=1.0, asked=1000, messages=2,
    peaks=dict.fromkeys(("data", "collect", "release", "scoring"), 200.0), served=(32, 1000), missing=(),
)  # fmt: skip
INLINE = module.Site("inline", 1, 2)


def test_inline_all_parties_are_served_one_after_another_and_else_those_on_their_own_in_the_first_nodes():
    found = module.cost(RATES, 1_000_000, 1000, 0.0, INLINE)
    assert found.seconds["collect"].likely == pytest.approx(1000 + 1 + 2000 * 0.0002)
    assert (found.seconds["release"].likely, found.seconds["scoring"].likely) == (2.0, 3.0)
    assert (found.bytes_per_party, found.answers, found.questions) == (100.0, 1e8, 1e3)
    assert found.aggregator["collect"] == pytest.approx(200 + 2e6 / 2**20 + 2000 * 4e-3)
    assert found.worker == 0.0
    rates = replace(RATES, alone=500.0)
    found = module.cost(rates, 1_000_000, 1000, 0.0, module.Site("ray", 100, 200)).seconds["collect"].likely
    assert found == pytest.approx(501.0)


@pytest.mark.parametrize(
    ("site", "gathering", "expected"),
    [
        (module.Site("ray", 10, 100), 1e-6, 100.0),  # workers bound it
        (module.Site("ray", 10, 5), 1e-6, (1000 + 1 + 2.1) / 5),  # processors do, which they share
        (module.Site("ray", 1000, 1001), 1e-5, 10 + 2.1),  # the aggregator does, which takes in all answers
    ],
)
def test_workers_processors_or_the_aggregator_bound_what_goes_side_by_side(site, gathering, expected):
    rates = replace(RATES, gathering=line(0.0, gathering))
    found = module.cost(rates, 1_000_000, 1000, 7.0, site).seconds["collect"].likely
    assert found == pytest.approx(7.0 + expected, rel=1e-3)  # 7 s: workers load their data


def test_a_busy_machine_widens_the_range_upwards_and_one_release_for_all_both_ways():
    found = module.cost(replace(RATES, crowding=3.0), 1000, 1000, 0.0, INLINE).seconds["scoring"]
    assert (found.low, found.likely) == (pytest.approx(2.4), pytest.approx(9.0))
    assert found.high > 9.0
    sure, rough = (
        module.cost(replace(RATES, rough=one), 1000, 1000, 0.0, INLINE).seconds["release"] for one in (False, True)
    )
    assert rough.low < sure.low < sure.likely == rough.likely < sure.high < rough.high


def test_what_is_done_once():
    found = module.beside(module.Site("ray", 2, 2), 4.0, 1.0, RATES)
    assert found["data"] == module.Span(4.0, 5.0, 6.25)
    assert found["start"].low < found["start"].likely < found["start"].high
    assert set(found) == {"start", "data", "report"}


def found(**changes):
    span = module.Span(1.0, 2.0, 4.0)
    fields = {
        "seconds": dict.fromkeys(module.PHASES, span), "largest": "a=1", "largest_seconds": span,
        "bytes_per_party": 258, "answers": 2.58e9, "questions": 1e6, "peak": {"data": 100.4}, "worker": 0.0,
        "crowding": 1.0, "found": "so", "missing": (),
    }  # fmt: skip
    return module.Estimate(**{**fields, **changes})


def test_all_of_it_with_workers_and_what_is_left_out_where_there_are_any():
    told = module.spoken(found())
    assert told["seconds"]["all"] == "12 s (6 s to 24 s)"
    assert told["bytes"] == {"each party sends": "258 bytes", "all answers": "2.6 GB", "all questions": "1.0 MB"}
    assert told["memory"] == {"data": "100 MiB"}
    assert told["largest"] == "a=1: 2 s (1 s to 4 s) a split"
    assert "left out" not in told
    told = module.spoken(found(worker=50.0, missing=("a",)))
    assert told["memory"]["each worker"] == "50 MiB"
    assert told["left out"] == ["a"]


def test_units():
    assert [module.seconds(one) for one in (0, 119, 121, 59 * 60, 3600, 86400 * 20)] == [
        "0 s", "119 s", "2.0 min", "59 min", "1.0 h", "20 days",
    ]  # fmt: skip
    expected = ["0 bytes", "999 bytes", "1.0 kB", "50 PB", "10000 PB"]
    assert [module.size(one) for one in (0, 999, 1000, 5e16, 1e19)] == expected
    assert module.between(module.Span(1, 2, 3)) == "2 s (1 s to 3 s)"
