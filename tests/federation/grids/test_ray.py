"""What a Ray grid shares, equal records once; and what it makes of errors that no handler catches."""

import numpy as np
import pytest
import ray
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict
from support.worlds import run

from federation.contract.reference import Reference
from federation.grids.launch import open_grid
from federation.grids.ray import _Shared


@pytest.fixture
def put(monkeypatch):
    stored = []
    monkeypatch.setattr(ray, "put", lambda content: stored.append(content) or len(stored))
    return stored


def records(value=1.0, text="a"):
    arrays = ArrayRecord({"rows": Array(np.full((3, 2), value))})
    return RecordDict({"settings": ConfigRecord({"json": text}), "arrays": arrays})


def test_equal_records_are_put_once_for_all_nodes_and_worlds(put):
    shared = _Shared()
    first = records()
    assert shared.reference(first) == shared.reference(first) == shared.reference(records())
    shared.forget_unused()
    assert shared.reference(records()) == 1
    assert len(put) == 1


@pytest.mark.parametrize("other", [records(value=2.0), records(text="b"), RecordDict({"settings": ConfigRecord({})})])
def test_different_records_are_kept_apart(put, other):
    shared = _Shared()
    assert shared.reference(records()) != shared.reference(other)


def test_what_the_last_world_did_not_ask_is_forgotten(put):
    shared = _Shared()
    shared.reference(records())
    shared.forget_unused()
    shared.reference(records(value=2.0))
    shared.forget_unused()
    shared.reference(records())
    assert len(put) == 3


def test_what_no_handler_catches_costs_one_party_only(make_plan, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")  # another run's cluster must not be taken for ours
    grid = open_grid("ray", workers=1)
    try:
        _, summary = run(grid, make_plan(parties=12), 4, Reference("support.sabotage:Unstoppable"))
    finally:
        grid.close()
    assert summary["answered"] == 11
    assert sum(summary["failures"].values()) == 1
