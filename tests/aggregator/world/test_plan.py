"""The public range of real labels in a plan."""

import math

import pytest

from aggregator.world.plan import WorldPlan
from federation.contract.errors import InputError


def test_a_range_survives_the_file(make_plan, tmp_path):
    plan = make_plan(classes=(), label_range=(0, 52.5))
    plan.save(tmp_path / "plan.json")
    found = WorldPlan.load(tmp_path / "plan.json")
    assert found.label_range == (0.0, 52.5)
    assert found.classes == ()
    assert make_plan().label_range is None


@pytest.mark.parametrize("ends", [(1.0, 1.0), (2.0, 1.0), (0.0, math.inf), (math.nan, 1.0)])
def test_a_range_has_two_finite_ends(make_plan, ends):
    with pytest.raises(InputError, match="two finite numbers lo < hi"):
        make_plan(classes=(), label_range=ends)


def test_classes_have_no_range(make_plan):
    with pytest.raises(InputError, match="without classes"):
        make_plan(label_range=(0.0, 1.0))
