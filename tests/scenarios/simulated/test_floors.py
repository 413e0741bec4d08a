"""Declared floors against the bags of a simulation, before any party is asked."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import scenarios
from federation.contract.errors import InputError
from federation.queries.bags import Bags
from parties.party_data.cohort import Cohort
from parties.responses.bags import bags_of
from scenarios.data.tables import Table
from scenarios.runs.runner import preview, usable_data
from scenarios.runs.trial import split_of, worlds
from scenarios.settings.schema import resolve
from scenarios.simulated.partition import cut, smallest_count
from scenarios.simulated.simulation import split


def document(floor, **changes):
    return {
        "data": {"source": "digits", "auxiliary": 100, "test": 300},
        "parties": {"count": 2, "partition": {"majority": 0.05}},
        "protocols": [{"kind": "class_ratio"}, {"kind": "class_ratio", "noise": "dirichlet_floor", "floor": floor}],
        "privacy": {"epsilon": 4, "delta": 0.05},
        "trials": {"splits": 2, "noise": 1},
        **changes,
    }


def smallest(known, number):
    world = split(split_of(resolve(known), number, None))
    return smallest_count(world.cut, world.table)


def test_a_floor_that_the_bags_do_not_keep_is_refused_before_anything_is_written(tmp_path):
    least = smallest(document(1), 0)
    assert least > 2
    usable_data(worlds(resolve(document(least - 1)), None))
    with pytest.raises(
        InputError,
        match=rf"'class_ratio-dirichlet_floor-floor={least}' declares the floor {least}.* in split 0 a bag has {least} "
        rf"of a class; lower it to {least - 1}, .*dirichlet_shifted",
    ):
        scenarios.run(document(least), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match="declares the floor"):
        preview(resolve(document(least)), None)


def test_every_swept_floor_and_every_split_is_looked_at():
    known = document(2, parties={"count": 4, "partition": {"dirichlet": 100.0}})
    found = [smallest(known, number) for number in range(8)]
    later = next(number for number, least in enumerate(found) if least < found[0])
    floors = {**known, "protocols": [{"kind": "class_ratio", "noise": "dirichlet_floor", "floor": [1, found[0] - 1]}]}
    usable_data(worlds(resolve({**floors, "trials": {"splits": 1, "noise": 1}}), None))
    with pytest.raises(InputError, match=f"floor={found[0] - 1}' .* in split {later} a bag has {found[later]} of"):
        usable_data(worlds(resolve({**floors, "trials": {"splits": 8, "noise": 1}}), None))


def test_no_floor_is_proposed_where_none_is_true():
    known = document(1, parties={"count": 40, "partition": {"dirichlet": 0.1}})
    with pytest.raises(InputError, match=r"a bag has 0 of a class; deal larger") as refused:
        usable_data(worlds(resolve(known), None))
    assert "lower it" not in str(refused.value)


@settings(derandomize=True, deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1)), min_size=12, max_size=40), st.integers(1, 3))
def test_of_a_persons_rows_those_count_that_the_party_counts(people, most):
    """One party, bags by site: what a party would count, counted from its own answer."""
    person, label = (np.array(part) for part in zip(*people, strict=True))
    table = Table(
        "toy",
        ("row",),
        ("0", "1"),
        label,
        (np.arange(len(label))[:, None],),
        groups={"who": person, "site": np.arange(len(label)) % 3},
    )
    pieces = cut(
        table, auxiliary=2, test=2, parties=1, rows=None, partition="iid", seed=1, bags={"by": "site"}, person="who"
    )  # fmt: skip
    holdings = _Holding(person[pieces.party(0)], label[pieces.party(0)], pieces.bags(0))
    held = bags_of(_Given(holdings), 0, Bags(pieces.bags_per_party, 2, most))
    assert smallest_count(pieces, table, person, most) == held.counts[held.sizes > 0].min()
    assert smallest_count(pieces, table) >= held.counts.min()


class _Holding:
    """Holdings without the checks of the real ones."""

    def __init__(self, persons, labels, bags):
        self.party, self.persons, self.labels, self.bags, self.rows = 0, persons, labels, bags, np.zeros((len(bags), 1))

    def holdings(self, party):
        return self

    def class_codes(self, classes):
        return self.labels

    def require_usable(self):
        pass


class _Given(Cohort):
    """A cohort whose provider is given, not loaded."""

    def __init__(self, provider):
        super().__init__("", 0, 1, seed=1)
        object.__setattr__(self, "_provider", provider)

    @property
    def provider(self):
        return self._provider


def test_a_floor_counts_persons_as_parties_do(tmp_path):
    """Every person has two rows in its bag, of which one counts: half the rows are a floor of no use."""
    labels = np.tile([0, 1], 100)
    path = tmp_path / "pairs.csv"
    lines = [f"{k / 10},{k // 4},{k % 7},{'no' if label == 0 else 'yes'}" for k, label in enumerate(labels)]
    path.write_text("\n".join(["x,who,z,label", *lines]) + "\n")
    known = document(1, parties={"count": 1})
    known["data"] = {"source": str(path), "label": "label", "auxiliary": 20, "test": 80, "targets": {"shares": [0.5]}}
    rows = smallest(known, 0)
    world = split(split_of(resolve({**known, "data": {**known["data"], "person": "who"}}), 0, None))
    people = smallest_count(world.cut, world.table, world.table.groups["who"], 1)
    assert people < rows - 5
    floor = people + 1
    known["protocols"] = [{"kind": "class_ratio", "noise": "dirichlet_floor", "floor": floor}]
    usable_data(worlds(resolve(known), None))
    known["data"]["person"] = "who"
    with pytest.raises(InputError, match=f"a bag has {people} of a class"):
        usable_data(worlds(resolve(known), None))
