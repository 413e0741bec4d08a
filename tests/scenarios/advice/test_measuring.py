"""Measurements within a time: real runs, kept as soon as they are there, and ended by the clock."""

from __future__ import annotations

import json
import math
import time

import pytest

from federation.contract.errors import InputError
from scenarios.advice.pilot_runs import BALANCED, NON_PRIVATE, Bench, Deadline, OutOfTimeError, Values
from scenarios.scores.scoring import ACCURACY

SCENARIO = {"data": {"source": "breast_cancer"}, "parties": {"count": 5}, "privacy": {"epsilon": 1}}
ENTRIES = [{"kind": "mean_operator"}, {"kind": "constant"}, {"kind": "pooled"}]


def bench(file=None, private=True, **changes):
    return Bench({**SCENARIO, **changes}, None, ACCURACY.name, file, private)


def test_it_measures_what_a_run_does_and_keeps_it(tmp_path, monkeypatch):
    file = tmp_path / "a.pilot.json"
    found = bench(file).measured(ENTRIES, 0, 2, [1.0, 3.0], Deadline(60))
    assert set(found) == {(0, 1.0), (0, 3.0), (1, math.inf), (2, math.inf)}
    assert len(found[0, 1.0].values) == 2
    assert found[2, math.inf].mean > found[1, math.inf].mean
    assert found[0, 3.0].balanced is not None
    kept = json.loads(file.read_text())
    assert kept["note"] == NON_PRIVATE
    again = bench(file)
    monkeypatch.setattr(again, "_run", None)  # nothing is run for what is known
    assert again.measured(ENTRIES, 0, 2, [1.0, 3.0], Deadline(60)) == found
    with pytest.raises(TypeError):
        again.measured(ENTRIES, 1, 2, [1.0, 3.0], Deadline(60))


def test_public_rows_are_not_marked_and_a_protocol_that_fails_gives_nothing(tmp_path):
    file = tmp_path / "a.json"
    found = bench(file, private=False, parties={"count": 2}).measured(
        [{"kind": "mean_operator", "summation": "secure"}], 0, 1, [1.0], Deadline(60)
    )  # of two parties one may collude, so that nobody is left to share a noise
    assert found == {}
    assert "NON-PRIVATE" not in file.read_text()


def test_the_clock_ends_what_takes_too_long():
    started = time.monotonic()
    with pytest.raises(OutOfTimeError), Deadline(0.05).kept():
        time.sleep(60)
    assert time.monotonic() - started < 30
    with pytest.raises(OutOfTimeError), Deadline(0.0).kept():
        pytest.fail("it is over before it begins")
    with Deadline(30).kept():
        pass


def test_other_files_are_refused_and_values_are_means(tmp_path):
    (tmp_path / "a.json").write_text("[]")
    with pytest.raises(InputError, match="no file of a pilot"):
        bench(tmp_path / "a.json")
    assert Values("accuracy", (0.5, 0.7)).mean == pytest.approx(0.6)
    assert BALANCED == "balanced_accuracy"
