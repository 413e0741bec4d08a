"""Feature stages of scenario files that take a size."""

from __future__ import annotations

import json

import pytest
from pydantic import TypeAdapter, ValidationError

from scenarios.settings.values import Stage

STAGE: TypeAdapter = TypeAdapter(Stage)


@pytest.mark.parametrize(
    "stage",
    ["scale", {"pca": 3}, {"whiten": 1}, {"whiten": "auto"}, {"fourier": 2}, {"fourier": 512}, {"polynomial": 3}],
)
def test_stages(stage):
    assert STAGE.validate_python(stage) == stage


@pytest.mark.parametrize(
    ("stage", "part"),
    [
        ({"fourier": 7}, "must have an even number of features, {fourier: EVEN}"),
        ({"fourier": 0}, "{fourier: DIMENSIONS}"),
        ({"fourier": 100_002}, "must have at most 100000 features"),
        ({"fourier": True}, "must be one of scale"),
        ({"fourier": "auto"}, "must be one of scale"),
        ({"fourier": 2, "pca": 2}, "must be one of scale"),
        ("fourier", "must be one of scale"),
        ({"polynomial": 4}, "{whiten: auto}, {polynomial: 2} or {polynomial: 3}"),
        ({"polynomial": 2.0}, "must be one of scale"),
        ({"polynomial": [2]}, "must be one of scale"),
    ],
)
def test_other_stages_are_refused(stage, part):
    with pytest.raises(ValidationError) as refused:
        STAGE.validate_python(stage)
    assert part in str(refused.value)


def test_editors_are_told_the_same():
    options = STAGE.json_schema()["anyOf"]
    (waves,) = [option for option in options if "fourier" in option.get("properties", {})]
    assert waves["properties"]["fourier"] == {"type": "integer", "minimum": 2, "maximum": 100_000, "multipleOf": 2}
    assert waves["additionalProperties"] is False
    (monomials,) = [option for option in options if "polynomial" in option.get("properties", {})]
    assert monomials["properties"]["polynomial"] == {"enum": [2, 3]}
    json.dumps(options)
