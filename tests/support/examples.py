"""How many examples and cases run by default, where each takes long."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings

DEFAULT = 25  # examples of a property in the default profile


def examples(number: int) -> int:
    """Return `number` in the default profile, and in proportion more in a profile with more examples."""
    return number * settings.default.max_examples // DEFAULT


def every_third(cases: Iterable[Any]) -> list[Any]:
    """Mark all cases of a table slow but each third: the default run checks these, and the marked run the others."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=() if turn % 3 == 0 else pytest.mark.slow)
        for turn, case in enumerate(cases)
    ]
