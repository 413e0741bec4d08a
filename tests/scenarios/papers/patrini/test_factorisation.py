"""Table 1's formulas sum up to its losses, and other losses have no such parts."""

import numpy as np
import pytest

from scenarios.papers.patrini.theory import FIGURE, PLACES, PRINTED, figure_1, off_by, table_1


@pytest.mark.parametrize("name", PRINTED)
def test_even_and_odd_part_are_the_loss_with_this_factor_only(name):
    row = PRINTED[name]
    assert off_by(row.loss, row.even, row.a) < 1e-12
    assert off_by(row.loss, row.even, 1.01 * row.a) > 0.03
    margins = np.linspace(-3, 3, 7)
    assert row.ours.value(margins) == pytest.approx(row.loss(margins))


def test_losses_that_are_not_linear_odd_are_off():
    found = {one.setting: one.value for one in table_1(True, None) if one.series == "off by"}
    assert found["hinge"] == pytest.approx(3.5)  # f(-8) - f(8) is 9, and 16 were needed
    assert all(value > 1 for name, value in found.items() if name not in PRINTED)


def test_the_figure_has_three_curves_of_each_loss_that_agree():
    found = list(figure_1(True, None))
    assert len(found) == len(FIGURE) * len(PLACES) * 6
    for published, default in zip(found[::2], found[1::2], strict=True):
        assert default.value == pytest.approx(published.value)
