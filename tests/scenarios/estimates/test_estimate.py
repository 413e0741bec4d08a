"""What a dry run says of a whole scenario: sums over splits and settings, calibrated once where only parties differ."""

import json

import pytest

from scenarios.estimates import estimate as module
from scenarios.estimates.estimate import PHASES, estimate


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


def test_settings_that_differ_in_parties_only_are_calibrated_once(scenario, calibrations):
    found = estimate(scenario("parties.count=[100, 1000]", "trials.splits=3"), None, 0.5)
    assert [swept for swept, _ in calibrations] == [{"parties.count": 1000}]
    assert found.largest == "parties.count=1000"
    assert "secure sums" not in found.found
    assert found.answers == pytest.approx(3 * 1100 * found.bytes_per_party, rel=0.2)
    assert found.seconds["collect"].likely > 3 * found.largest_seconds.low * 0.1
    assert set(found.seconds) == set(PHASES)
    assert found.all.low <= found.all.likely <= found.all.high


def test_of_many_kinds_of_settings_some_stand_for_all(scenario, calibrations, monkeypatch):
    monkeypatch.setattr(module, "_MOST_CALIBRATED", 2)
    vote = "protocols=[{kind: soft_vote, trust: secure}]"
    found = estimate(scenario("parties.count=40", "parties.rows=[3, 4, 5]", vote), None, 0.1)
    assert len(calibrations) == 2
    assert "of secure sums the answers alone are counted" in found.found
    assert "2 of 3 kinds of settings were tried" in found.found


def test_the_record_is_json_and_names_what_is_left_out(scenario, calibrations, monkeypatch):
    found = estimate(scenario("parties.count=40", "engine={kind: ray, workers: 3}"), None, 0.1)
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["largest"] == "the only setting"
    assert plain["mebibytes"]["each_worker"] > 0
    assert "3 workers on" in plain["found"]
    assert "left_out" not in plain
    assert all(low <= likely <= high for low, likely, high in plain["seconds"].values())


def test_a_cluster_is_not_asked(scenario, calibrations):
    found = estimate(scenario("parties.count=40", "engine={kind: ray, ray: {address: 'host:1'}}"), None, 0.1)
    assert "of a cluster that was not asked; give engine.workers" in found.found
