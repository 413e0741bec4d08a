"""Seconds add up by phase, also of phases that fail, and memory is the process's peak."""

import resource

import pytest

from scenarios.runs.progress import Costs


def test_seconds_of_a_phase_add_up_and_memory_never_falls(monkeypatch):
    times = iter([0.0, 2.0, 10.0, 13.5])
    monkeypatch.setattr(Costs, "clock", staticmethod(lambda: next(times)))
    costs = Costs()
    with costs.phase("data"):
        pass
    first = costs.peak_mebibytes["data"]
    with pytest.raises(KeyError), costs.phase("data"):
        raise KeyError
    assert costs.seconds == {"data": 5.5}
    assert costs.peak_mebibytes["data"] >= first > 10
    assert first <= resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10 + 1


def test_seconds_from_elsewhere_are_added():
    costs = Costs({"scoring": 1.0})
    costs.add("scoring", 0.25)
    costs.add("report", 3.0)
    assert costs.seconds == {"scoring": 1.25, "report": 3.0}
