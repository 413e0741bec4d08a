"""Bags of known proportions, the theorems beside what is measured, and the losses that Table 1's formulas sum up to."""

import numpy as np
import pytest

from federation.contract.randomness import generator
from scenarios.papers.patrini import theory


def drawn(setting, rows=400):
    random = generator(1, "rows of two classes")
    codes = (np.arange(rows) % 5 < 2).astype(int)
    data = random.normal(size=(rows, 3)) / 10 + np.where(codes[:, None] == 1, 1.0, -1.0) * [1.0, 0.5, 0.0]
    return theory.in_bags(data, codes, setting, random)


@pytest.mark.parametrize("setting", theory.SETTINGS)
def test_bags_are_disjoint_and_their_shares_rise(setting):
    bags = drawn(setting)
    rows = np.concatenate(bags.rows)
    assert len(np.unique(rows, axis=0)) == len(rows) > 380
    assert bags.proportions.sum(axis=1) == pytest.approx(1)
    assert bags.proportions[-1, 1] > bags.proportions[0, 1] + 0.2


def test_both_ways_agree_on_equal_bags_and_differ_where_rows_of_one_are_there_twice():
    bags = drawn(theory.EQUAL)
    found = {(series, role): moment for series, role, moment in theory.estimates(bags)}
    for series in ("Mean Map", "Laplacian Mean Map"):
        assert found[series, "published"] == pytest.approx(found[series, "default"], abs=1e-9)
    rows, codes = np.repeat(bags.rows[-1], 2, axis=0), np.repeat(bags.codes[-1], 2)
    twice = theory.Bags([*bags.rows[:-1], rows], [*bags.codes[:-1], codes])
    for (_, role, before), (_, _, after) in zip(theory.estimates(bags), theory.estimates(twice), strict=True):
        assert (np.abs(before - after).max() < 1e-12) == (role == "published")


def test_where_classes_drift_bags_are_in_the_order_of_a_feature():
    bags = drawn(theory.DRIFTING)
    means = [rows[codes == 1, 0].mean() for rows, codes in zip(bags.rows, bags.codes, strict=True)]
    assert means == sorted(means, reverse=True)


def values(found, setting, series, role="published", x=""):
    return [o.value for o in found if (o.setting, o.series, o.role, o.x) == (setting, series, role, x)]


def test_theorem_6_lacks_a_factor_without_which_it_is_wrong():
    found = list(theory.theorem_6(True, None))
    for setting, loss in theory.LOSSES.items():
        moved, allowed = values(found, setting, "moved"), values(found, setting, "allowed", "default")
        assert allowed == [loss.slope / 4] * 20
        assert 0.95 * allowed[0] < max(moved) <= allowed[0]
    assert max(values(found, "twice the square", "moved")) > 1.9


def test_algorithm_2_keeps_less_than_alpha_on_rows_of_norm_1_and_noise_is_longer_than_theorem_10_says():
    found = list(theory.theorem_9(True, None))
    [kept], [worst] = values(found, "breast cancer", "alpha"), values(found, "breast cancer", "alpha for all rows")
    assert 5 < kept < worst == pytest.approx(31**0.5)
    found = list(theory.theorem_10(True, None))
    for x, often in (("2", 0.061), ("10", 0.208), ("22", 0.566), ("50", 0.985)):
        measured = values(found, "noise", "longer", x=x)
        assert sum(measured) / 5 == pytest.approx(often, abs=0.02)
        assert max(values(found, "noise", "longer", "default", x)) < 0.05


@pytest.mark.parametrize("name", theory.PRINTED)
def test_even_and_odd_part_are_the_loss_with_this_factor_only(name):
    row = theory.PRINTED[name]
    assert theory.off_by(row.loss, row.even, row.a) < 1e-12
    assert theory.off_by(row.loss, row.even, 1.01 * row.a) > 0.03
    margins = np.linspace(-3, 3, 7)
    assert row.ours.value(margins) == pytest.approx(row.loss(margins))


def test_losses_that_are_not_linear_odd_are_off_and_the_figure_has_three_curves_of_each_that_agree():
    found = {one.setting: one.value for one in theory.table_1(True, None) if one.series == "off by"}
    assert found["hinge"] == pytest.approx(3.5)  # f(-8) - f(8) is 9, and 16 were needed
    assert all(value > 1 for name, value in found.items() if name not in theory.PRINTED)
    found = list(theory.figure_1(True, None))
    assert len(found) == len(theory.FIGURE) * len(theory.PLACES) * 6
    for published, default in zip(found[::2], found[1::2], strict=True):
        assert default.value == pytest.approx(published.value)
