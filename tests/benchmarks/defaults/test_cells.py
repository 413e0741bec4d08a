"""Arithmetic of the tables, on small cases that are counted by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.defaults.cells import BANDS, Cell, Table, grouped, in_bands, rho, share
from benchmarks.defaults.records import Record
from federation.mechanisms.noise import gaussian

NAMES = ("new", "old", "other")


def _record(variant: str, split: int, value: float, epsilon: float = 1.0, **place: str) -> Record:
    where = {"set": "toy", "world": "K=20", "noise": "pure", "metric": "accuracy", **place}
    name, world, noise, metric = where["set"], where["world"], where["noise"], where["metric"]
    return Record("party", name, world, split, "", variant, noise, epsilon, metric, value)


def _table(values: dict[str, list[float]], epsilon: float = 1.0) -> Table:
    return Table(_record(name, split, v, epsilon) for name, of in values.items() for split, v in enumerate(of))


def test_a_mean_over_cells_has_the_deviation_between_splits_and_one_split_has_none() -> None:
    sets = {"a": (0.5, 0.7), "b": (0.6, 1.0)}
    table = Table(_record("new", split, value, set=name) for name, of in sets.items() for split, value in enumerate(of))
    mean = table.mean(table.cells(["new"], "accuracy"), "new", "accuracy")
    assert mean.value == pytest.approx(0.7)
    assert mean.error == pytest.approx((0.85 - 0.55) / 2)  # of the splits' means .55 and .85
    single = _table({"new": [0.5]})
    assert math.isnan(single.mean(single.cells(["new"], "accuracy"), "new", "accuracy").error)


def test_the_best_of_a_cell_is_chosen_on_the_other_splits_where_there_are_any() -> None:
    table = _table({"new": [0.8, 0.8, 0.8], "old": [0.9, 0.9, 0.5], "other": [0.1, 0.2, 0.7]})
    [cell] = table.cells(NAMES, "accuracy")
    # On splits {1, 2}, {0, 2}, {0, 1} the best are new, new and old: gaps 0, 0 and .5 - .8.
    assert table.gaps([cell], "new", NAMES)[0].value == pytest.approx(-0.1)
    assert table.gaps([cell], "old", NAMES)[0].value == pytest.approx((-0.1 - 0.1 + 0.0) / 3)
    single = _table({"new": [0.8], "old": [0.9], "other": [0.1]})
    assert single.gaps(single.cells(NAMES, "accuracy"), "new", NAMES)[0].value == pytest.approx(0.1)


@given(st.lists(st.tuples(*[st.floats(0, 1)] * 3), min_size=2, max_size=5))
def test_no_gap_exceeds_that_to_the_best_of_every_split(rows: list[tuple[float, float, float]]) -> None:
    table = _table(dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True)))
    gap = table.gaps(table.cells(NAMES, "accuracy"), "new", NAMES)[0]
    assert gap.value <= np.mean([max(row) - row[0] for row in rows]) + 1e-12


def test_luck_alone_makes_no_gap() -> None:
    random = np.random.default_rng(0)
    table = Table(
        _record(name, split, random.normal(), set=str(number))
        for number in range(400) for name in NAMES for split in range(3)
    )  # fmt: skip
    gaps = [gap.value for gap in table.gaps(table.cells(NAMES, "accuracy"), "new", NAMES)]
    assert abs(np.mean(gaps)) < 3 * np.std(gaps) / 20


def test_cells_lack_what_one_variant_lacks() -> None:
    table = Table([_record("new", 0, 0.5), _record("old", 0, 0.5), _record("new", 0, 0.5, 3.0)])
    assert [cell.epsilon for cell in table.cells(["new", "old"], "accuracy")] == [1.0]


def test_the_largest_fall_is_found_between_any_two_epsilons() -> None:
    values = {0.3: (0.7, 0.7), 1.0: (0.9, 0.8), 3.0: (0.85, 0.85), 10.0: (0.8, 0.8)}
    table = Table(_record("new", split, v, epsilon) for epsilon, of in values.items() for split, v in enumerate(of))
    [fall] = table.falls(table.cells(["new"], "accuracy"), "new")
    assert (fall.low.epsilon, fall.high.epsilon) in {(1.0, 10.0), (3.0, 10.0)}
    # Of the splits .1 and 0, so that two standard errors, .1, exceed it.
    assert (fall.amount, fall.error, fall.clear) == pytest.approx((0.05, 0.05, -0.05))


def test_falls_are_of_one_set_and_noise_and_negative_where_nothing_falls() -> None:
    rows = [("a", 0.9, 1.0), ("b", 0.1, 3.0), ("b", 0.2, 10.0)]
    table = Table(_record("new", 0, value, epsilon, set=name) for name, value, epsilon in rows)
    [fall] = table.falls(table.cells(["new"], "accuracy"), "new")
    assert fall.low.set == "b"
    assert fall.amount == pytest.approx(-0.1)


def test_a_reference_has_neither_noise_nor_epsilon() -> None:
    constant = _record("constant", 0, 0.6, math.inf, noise="")
    table = Table([_record("new", 0, 0.5), constant, constant._replace(split=1, value=0.8)])
    [cell] = table.cells(["new"], "accuracy")
    assert table.below_reference([cell], "new", "constant").tolist() == pytest.approx([0.2])
    assert math.isnan(table.reference(cell, "pooled", "accuracy"))


def test_rho_is_what_the_noise_of_unit_shares_leaves() -> None:
    # 50 parties at epsilon 2 and 10 coordinates: radius D S / epsilon = 10 (2 / 50) / 2 = .2 of shares up to 1.
    assert rho("pure", 50, 2.0, 10, 1e-6) == pytest.approx(1 / 0.2)
    sigma = (2 / 50) / gaussian.mu(2.0, 1e-6)
    assert rho("gaussian", 50, 2.0, 16, 1e-6) == pytest.approx(1 / (4 * sigma))


def test_every_rho_lies_in_one_band_whose_lower_end_belongs_to_it() -> None:
    values = [0.0, 0.49, 0.5, 1.0, 1.5, 4.0, 7.9, 8.0, 1e9]
    found = in_bands(values)
    assert [band.tolist() for band in found] == [[0, 1], [2], [3, 4], [], [5, 6], [7, 8]]
    assert len(found) == len(BANDS) - 1


def test_a_cell_knows_its_parties_and_groups_keep_their_order() -> None:
    cells = [Cell("b", "K=5", "pure", 1.0), Cell("a", "K=20", "pure", 1.0), Cell("b", "K=20", "pure", 1.0)]
    assert [cell.parties for cell in cells] == [5, 20, 20]
    assert list(grouped(cells, lambda cell: cell.set)) == ["b", "a"]
    assert share(np.array([True, False])) == 0.5
    assert math.isnan(share(np.array([], dtype=bool)))
