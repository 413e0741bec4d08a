import math
from collections.abc import Mapping
from typing import Any, Literal

import pytest

from federation.contract.validation import quoted_value as shown
from federation.contract.validation import typed


@pytest.mark.parametrize(
    ("hint", "value", "found"),
    [
        (float, 1, 1.0),
        (int | None, None, None),
        (tuple[int, ...], [1, 2], (1, 2)),
        (tuple[float, float], (0, 1.5), (0.0, 1.5)),
        (Literal["a", 1], 1, 1),
        (Mapping[str, float], {"epsilon": 1}, {"epsilon": 1.0}),
        (Mapping[str, Any], {"a": [1]}, {"a": [1]}),
        (Any, [1], [1]),
    ],
)
def test_a_value_of_the_declared_type_is_taken(hint, value, found):
    taken = typed(hint, value, "x")
    assert taken == found
    assert type(taken) is type(found)


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (int, True),
        (int, 1.0),
        (bool, 1),
        (str, None),
        (float, math.nan),
        (float, math.inf),
        (float, 10**400),
        (float, "1"),
        (tuple[int, int], [1]),
        (tuple[int, ...], [1, "2"]),
        (tuple[int, ...], "12"),
        (Literal["a", 1], True),
        (Mapping[str, float], {"epsilon": "1"}),
        (Mapping[str, float], {1: 1.0}),
        (Mapping[str, float], [1.0]),
        (int | None, "1"),
    ],
)
def test_a_value_of_another_type_is_refused_by_name(hint, value):
    with pytest.raises(TypeError, match="part"):
        typed(hint, value, "part")


def test_a_number_of_more_digits_than_python_writes_is_told_of():
    with pytest.raises(TypeError, match="more than 100 digits"):
        typed(str, 10**5000, "name")
    assert shown("x" * 1000) == repr("x" * 1000)[:100]
