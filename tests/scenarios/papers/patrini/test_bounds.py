"""What the theorems allow, and what is measured."""

import pytest

from scenarios.papers.patrini.theory import LOSSES, theorem_6, theorem_9, theorem_10


def values(found, setting, series, role="published", x=""):
    return [o.value for o in found if (o.setting, o.series, o.role, o.x) == (setting, series, role, x)]


def test_theorem_6_lacks_a_factor_without_which_it_is_wrong():
    found = list(theorem_6(True, None))
    for setting, loss in LOSSES.items():
        moved, allowed = values(found, setting, "moved"), values(found, setting, "allowed", "default")
        assert allowed == [loss.slope / 4] * 20
        assert 0.95 * allowed[0] < max(moved) <= allowed[0]
    assert max(values(found, "twice the square", "moved")) > 1.9


def test_algorithm_2_keeps_less_than_alpha_on_rows_of_norm_1():
    found = list(theorem_9(True, None))
    [kept], [worst] = values(found, "breast cancer", "alpha"), values(found, "breast cancer", "alpha for all rows")
    assert 5 < kept < worst == pytest.approx(31**0.5)


def test_noise_is_longer_than_theorem_10_says():
    found = list(theorem_10(True, None))
    for x, often in (("2", 0.061), ("10", 0.208), ("22", 0.566), ("50", 0.985)):
        measured = values(found, "noise", "longer", x=x)
        assert sum(measured) / 5 == pytest.approx(often, abs=0.02)
        assert max(values(found, "noise", "longer", "default", x)) < 0.05
