"""Feature stages of scenario files that take a size."""

import pytest
from pydantic import TypeAdapter, ValidationError
from support.json_schemas import accepted

from scenarios.settings.problems import problems
from scenarios.settings.values import Stage

STAGE: TypeAdapter = TypeAdapter(Stage)


def test_stages_are_taken_and_others_refused_and_editors_are_told_the_same():
    valid = accepted(STAGE.json_schema())
    for stage in (
        "scale", {"pca": 3}, {"whiten": 1}, {"whiten": "auto"}, {"fourier": 2}, {"fourier": 512}, {"polynomial": 3},
    ):  # fmt: skip
        assert STAGE.validate_python(stage) == stage
        assert valid(stage)
    for stage in (
        "scales",
        {"pca": 0},
        {"fourier": 7},
        {"fourier": 100_002},
        {"polynomial": 4},
        {"pca": 2, "whiten": 2},
    ):
        assert not valid(stage)
    for stage, part in (
        ({"fourier": 7}, "must be a multiple of 2"),
        ({"fourier": 0}, "must be at least 1"),
        ({"fourier": 100_002}, "must be at most 100000"),
        ({"fourier": True}, "must be a whole number"),
        ({"fourier": "auto"}, "must be a whole number"),
        ({"fourier": 2, "pca": 2}, "must be one of impute, scale"),
        ("fourier", "must be one of impute, scale"),
        ({"whiten": "atuo"}, "must be auto or a whole number from 1 to 100000, got the text"),
        ({"polynomial": 4}, "must be 2 or 3, got 4"),
        ({"polynomial": 2.0}, "must be 2 or 3"),
        ({"polynomial": [2]}, "must be 2 or 3"),
    ):
        with pytest.raises(ValidationError) as refused:
            STAGE.validate_python(stage)
        [(_, told)] = problems(refused.value)
        assert part in told
