"""Which baselines are put beside protocols."""

from __future__ import annotations

import pytest

from scenarios.settings.baselines import baselines_beside


@pytest.mark.parametrize(
    ("kinds", "alone", "beside"),
    [
        (["soft_vote"], False, ["constant", "pooled", "individual"]),
        (["soft_vote"], True, ["constant", "pooled"]),
        (["pooled", "soft_vote"], False, ["constant", "individual"]),
        (["class_ratio"], False, ["constant", "pooled"]),
        (["label_sums"], False, ["constant", "pooled"]),
        (["pooled"], False, []),
        (["unknown", None], False, []),
    ],
)
def test_those_of_the_task_that_are_not_listed(kinds: list[str], alone: bool, beside: list[str]) -> None:
    assert baselines_beside(kinds, alone) == beside
