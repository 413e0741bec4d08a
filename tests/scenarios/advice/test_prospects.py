"""Curves of what is expected over epsilon, parties and rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aggregator.advice import Wish, rank
from aggregator.contract.protocol import Trust
from federation.contract.errors import InputError
from scenarios.advice.texts import draw, prospects

WISH = Wish("binary", "label", Trust.NONE, rows=900, features=20, parties=9, majority=0.6)


def test_curves_pass_through_what_is_expected_as_it_is_and_rise():
    panels = {panel.axis: panel for panel in prospects(WISH)}
    assert list(panels) == ["epsilon", "parties", "rows"]
    first = rank(WISH).ranked[0]
    for axis, now in (("epsilon", 1.0), ("parties", 9), ("rows", 900)):
        curve = panels[axis].curves["mean_operator"]
        assert panels[axis].now == now
        assert curve[now] == pytest.approx(1 - first.expected.error)
        assert panels[axis].constant == pytest.approx(0.6)
    rising = [list(panels[axis].curves["mean_operator"].values()) for axis in ("epsilon", "rows")]
    assert all(values == sorted(values) for values in rising)
    assert max(panels["parties"].curves["mean_operator"]) <= 900  # a row each


def test_errors_are_drawn_as_they_are_and_what_has_no_formula_is_refused(tmp_path):
    real = replace(WISH, task="regression", label_range=(0.0, 1.0), majority=None)
    values = list(prospects(real)[0].curves["private_labels"].values())
    assert values == sorted(values, reverse=True)
    for suffix in ("svg", "png"):
        path = tmp_path / f"a.{suffix}"
        draw(prospects(real), real, path)
        assert path.stat().st_size > 1000
    assert b"mathdefault" not in (tmp_path / "a.svg").read_bytes()
    with pytest.raises(InputError, match="must end in"):
        draw(prospects(real), real, tmp_path / "a.txt")
    with pytest.raises(InputError, match="has a formula"):
        prospects(replace(WISH, features=None))
