"""What a described feature map may say: each field is of the type that its step declares, or the map is refused."""

import json

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from federation.contract.errors import InputError
from federation.features.feature_map import FeatureMap
from federation.features.steps import Affine, Append, ClipNorm, Fourier, OneHot, Polynomial, SignedLog, UnitNorm

DESCRIPTION, ARRAYS = FeatureMap(
    3,
    (
        OneHot(np.array([1]), np.array([2.0, 5.0]), np.array([0, 2])),
        Affine(np.zeros(4), np.full(4, 2.0)),
        Append(1.0),
        SignedLog(),
        ClipNorm(3.0),
        Affine(np.ones(5), np.ones((5, 2))),
        Polynomial(2),
        UnitNorm(),
        Fourier(np.ones((3, 4))),
    ),
).to_arrays()
STRANGE = {
    "three axes": np.ones((1, 1, 1)),
    "no axis": np.ones(()),
    "empty": np.zeros(0),
    "complex": np.ones(4) + 1j,
    "dates": np.array(["2020-01-01"], dtype="datetime64[D]"),
    "texts": np.array(["a", "b"]),
    "booleans": np.ones(4, dtype=bool),
    "objects": np.array([None, {}], dtype=object),
    "nan": np.full(4, np.nan),
    "one nan": np.array([np.nan]),
    "huge": np.full(4, 1e308),
    "huge indices": np.array([2**64 - 1], dtype=np.uint64),
    "falling": np.array([5, 2], dtype=np.uint64),
    "unsigned": np.array([0, 2], dtype=np.uint64),
    "long": np.full(4, np.longdouble(10) ** 400),
    "half": np.ones(4, dtype=np.float16),
    "swapped": np.ones(4, dtype=">f8"),
}
NAMES = [*ARRAYS, *STRANGE, "unknown"]
NUMBERS = [0, 2, 3, -1, 2.5, 1e308, 5e-324, float("nan"), float("inf"), 10**400, 10**18]
FIELDS = [(i, name) for i, step in enumerate(json.loads(DESCRIPTION)["steps"]) for name in step]
VALUES = st.sampled_from([*NAMES, *NUMBERS, True, None, [1.0], {}, "1.0", "affine", "one_hot"])


def described(changes):
    record = json.loads(DESCRIPTION)
    for (i, name), value in changes.items():
        record["steps"][i][name] = value
    return json.dumps(record)


@given(st.dictionaries(st.sampled_from(FIELDS), VALUES, min_size=1, max_size=2))
@example({(4, "largest"): "three axes"})
@example({(0, "codes"): "falling"})
@example({(0, "starts"): "unsigned"})
def test_a_map_with_other_fields_is_refused_or_makes_what_it_says(changes):
    try:
        feature_map = FeatureMap.from_arrays(described(changes), ARRAYS | STRANGE)
        features = feature_map.transform(np.zeros((2, 3)))
    except InputError:  # of a map, or of features that it makes infinite
        return
    assert (features.shape, features.dtype) == ((2, feature_map.dimension), np.float64)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ((4, "largest"), "three axes", "largest"),
        ((2, "value"), "complex", "value"),
        ((6, "degree"), "no axis", "degree"),
        ((0, "codes"), "dates", r"codes.*datetime64"),
        ((0, "codes"), "falling", None),
        ((1, "factor"), "complex", "factor"),
        ((1, "offset"), "long", None),
        ((1, "offset"), 0.0, "KeyError"),
        ((4, "largest"), 10**400, None),
    ],
    ids=lambda part: str(part)[:30],
)
def test_a_field_of_another_type_is_refused(field, value, words):
    with pytest.raises(InputError, match=words):
        FeatureMap.from_arrays(described({field: value}), ARRAYS | STRANGE)


@pytest.mark.parametrize(
    "description",
    [
        "[" * 100_000,
        '{"columns": 1e999, "steps": []}',
        '{"columns": 3.5, "steps": []}',
        '{"columns": true, "steps": []}',
        '{"columns": 3, "steps": {"kind": 1}}',
        '{"columns": 3, "steps": [{"kind": ["append"]}]}',
    ],
)
def test_a_text_of_another_form_is_refused(description):
    with pytest.raises(InputError):
        FeatureMap.from_arrays(description, {})


@pytest.mark.parametrize("count", [64, 65])
def test_a_map_has_so_many_steps_as_somebody_waits_for(count):
    """Each takes its time on every row, and whoever asks writes them."""
    text = json.dumps({"columns": 3, "steps": [{"kind": "unit_norm"}] * count})
    if count <= 64:
        assert FeatureMap.from_arrays(text, {}).dimension == 3
    else:
        with pytest.raises(InputError, match=r"0.*64.*65"):
            FeatureMap.from_arrays(text, {})
