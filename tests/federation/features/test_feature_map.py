"""Public feature maps against scikit-learn, against their own documented recipe, and their invariants.

Vectors are brought into a ball, each by itself, and never leave it by more than what is charged.
"""

import json
import math
import re
import tracemalloc
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from support.refusals import refused

from aggregator.trial.feature_fitting import fit
from federation.contract.errors import InputError
from federation.features.feature_map import Ball, FeatureMap, completed, text_code
from federation.features.steps import Append, UnitNorm

_RNG = np.random.default_rng(0)
TALL = _RNG.normal(size=(80, 6)) @ _RNG.normal(size=(6, 6)) + 3.0
NEAR_ONE = np.random.default_rng(0).normal(size=(30, 5)) + 1.0
STREAMED = np.random.default_rng(0).normal(size=(5000, 6)) * np.arange(1, 7)
STAGES = [
    *("scale", "signed_log", "standardise", "constant", "unit_norm", "max_norm"),
    *({name: size} for name in ("pca", "whiten") for size in (2, 50)),
    *({"fourier": 6}, {"polynomial": 2}, {"polynomial": 3}),
]


def by_recipe(description: str, arrays: dict[str, np.ndarray], rows: np.ndarray) -> np.ndarray:
    """The map applied as `FeatureMap.to_arrays` documents, with numpy alone."""
    x = rows
    for step in json.loads(description)["steps"]:
        field = {name: arrays.get(value, value) for name, value in step.items()}
        if step["kind"] == "one_hot":
            parts = [np.delete(x, field["columns"], axis=1)]
            for i, column in enumerate(field["columns"]):
                codes = field["codes"][field["starts"][i] : field["starts"][i + 1]]
                parts.append(1.0 * (x[:, [column]] == codes))
            x = np.hstack(parts)
        elif step["kind"] == "affine":
            centred = x - field["offset"]
            x = centred * field["factor"] if field["factor"].ndim == 1 else centred @ field["factor"]
        elif step["kind"] == "impute":
            x = np.hstack([np.where(np.isnan(x), field["fill"], x), np.isnan(x)[:, field["flags"]]])
        elif step["kind"] == "signed_log":
            scales = field["scales"] * np.ones(x.shape[1])
            logarithms = np.sign(x) * np.log(1 + np.abs(x) / np.where(scales > 0, scales, 1))
            x = np.where(scales > 0, logarithms, x)
        elif step["kind"] == "append":
            x = np.hstack([x, np.full((len(x), 1), field["value"])])
        elif step["kind"] == "fourier":
            z = x @ field["frequencies"]
            x = np.hstack([np.cos(z), np.sin(z)]) / np.sqrt(z.shape[1])
        elif step["kind"] == "polynomial":
            parts = []
            for places in combinations_with_replacement(range(x.shape[1]), field["degree"]):
                repeats = np.unique(places, return_counts=True)[1]
                orders = math.factorial(field["degree"]) / math.prod(map(math.factorial, repeats))
                parts.append(np.sqrt(orders) * x[:, places].prod(axis=1))
            x = np.stack(parts, axis=1)
        else:
            x = x / field["largest"] if step["kind"] == "clip_norm" else x
            norms = np.linalg.norm(x, axis=1, keepdims=True)
            divide = norms > (1 if step["kind"] == "clip_norm" else 0)
            x = x / np.where(divide, norms, 1)
    return x


@pytest.mark.parametrize("size", [5e-324, 1e-300, 1.0, 1e300])
def test_unit_norm_survives_extreme_sizes_and_keeps_zero_rows(size):
    out = fit(["unit_norm"], TALL).transform(np.vstack([np.full((1, 6), size), np.zeros((1, 6))]))
    np.testing.assert_allclose(np.linalg.norm(out, axis=1), [1, 0], atol=1e-15)


def test_text_codes_are_exact_and_fixed():
    # The first 6 bytes of the SHA-256 of "abc" (FIPS 180-4, example B.1) are ba7816bf8f01.
    assert text_code("abc") == 0xBA7816BF8F01
    assert text_code("é") != text_code("e") != text_code("E")


@pytest.mark.parametrize(
    "stages",
    [
        [],
        [{"whiten": 10}, "unit_norm"],
        ["standardise", {"pca": 3}, "constant", "max_norm"],
        ["scale", {"fourier": 32}],
        [{"whiten": 4}, "unit_norm", {"polynomial": 3}],
        ["impute", "scale", "constant"],
        ["signed_log", "unit_norm"],
    ],
    ids=["none", "whitened", "clipped", "waves", "monomials", "imputed", "logarithms"],
)
def test_arrays_round_trip_exactly_and_follow_the_documented_recipe(stages):
    rows = np.hstack([TALL, np.array([[text_code(t)] for t in "abcd" * 20])])
    features = fit(stages, rows, text_columns=[6])
    description, arrays = features.to_arrays()
    again = FeatureMap.from_arrays(description, {"other": np.ones(2), **arrays})
    private = rows[::-1] * 1.7
    private[::5, 3] = np.nan if features.imputes else 0.0
    np.testing.assert_array_equal(again.transform(private), features.transform(private))
    assert again.to_arrays()[0] == description
    np.testing.assert_allclose(by_recipe(description, arrays, private), features.transform(private), atol=1e-12)


def test_memory_order_changes_no_bit():
    rows = np.random.default_rng(3).normal(size=(200, 119))
    description, arrays = fit([{"whiten": 10}], rows).to_arrays()
    by_row = FeatureMap.from_arrays(description, {n: np.ascontiguousarray(a) for n, a in arrays.items()})
    by_column = FeatureMap.from_arrays(description, {n: np.asfortranarray(a) for n, a in arrays.items()})
    np.testing.assert_array_equal(by_row.transform(rows), by_column.transform(rows))
    for features in (by_row, fit(["unit_norm"], rows), fit(["max_norm"], rows), fit([{"fourier": 64}], rows)):
        np.testing.assert_array_equal(features.transform(np.asfortranarray(rows)), features.transform(rows))


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ("}$", ""),  # which is no JSON
        ("^.*$", "[]"),
        ("affine", "lambda"),
        *(('"columns": 6', f'"columns": {columns}') for columns in (0, 4)),
        *((r'"value": [\d.]+', f'"value": {value}') for value in ("[1]", "Infinity")),
        (r'"largest": [\d.]+', '"largest": -1.0'),
    ],
)
def test_damaged_maps_are_refused(said, instead):
    description, arrays = fit([{"pca": 2}, "constant", "max_norm"], TALL).to_arrays()
    damaged = re.sub(said, instead, description)
    assert damaged != description
    short = {name: array[:3] if name.endswith("offset") else array for name, array in arrays.items()}
    not_finite = {name: array * np.nan for name, array in arrays.items()}
    for text, held in ((damaged, arrays), *((description, wrong) for wrong in ({}, short, not_finite))):
        refused(None, FeatureMap.from_arrays, text, held)


@pytest.mark.parametrize(
    ("columns", "codes", "starts"),
    [
        ([0], [2.0, 1.0], [0, 2]),
        ([0, 0], [1.0, 2.0], [0, 1, 2]),
        ([9], [1.0], [0, 1]),
        ([-1], [1.0], [0, 1]),
        ([0], [1.0], [0, 2]),
        ([0, 1], [1.0], [0, 1]),
        ([0.0], [1.0], [0, 1]),
        ([], [], [0]),
    ],
)
def test_damaged_vocabularies_are_refused(columns, codes, starts):
    step = {"kind": "one_hot", "columns": "c", "codes": "v", "starts": "s"}
    arrays = {"c": np.array(columns), "v": np.array(codes), "s": np.array(starts)}
    with pytest.raises(InputError):
        FeatureMap.from_arrays(json.dumps({"columns": 2, "steps": [step]}), arrays)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_are_named(value):
    rows = TALL.copy()
    rows[7, 2] = value
    for use in (lambda: fit(["scale"], rows), lambda: fit(["scale"], TALL).transform(rows)):
        refused(r"7.*2", use)


@pytest.mark.parametrize(
    ("scale", "rows", "part"),
    [
        (1, TALL[:, :4], r"6.*4"),
        (1, TALL[0], None),
        (1, [["a"] * 6], "numbers"),
        (1e-10, TALL * 1e305, "features"),  # which overflow
    ],
)
def test_rows_of_the_wrong_shape_and_features_that_overflow_are_refused(scale, rows, part):
    features = fit(["standardise"], TALL * scale)
    assert features.transform(TALL[:0]).shape == (0, 6)
    with pytest.raises(InputError, match=part):
        features.transform(rows)


def test_description_of_a_map():
    features = fit([{"whiten": 3}, "constant", "unit_norm"], TALL)
    assert repr(features) == "FeatureMap(6 -> 4: affine, append, unit_norm)"
    out = features.transform(TALL.astype(np.float32))
    assert out.dtype == np.float64
    assert out.flags.c_contiguous


@settings(derandomize=True)
@given(
    stages=st.lists(st.sampled_from(STAGES), max_size=4),
    seed=st.integers(0, 2**16),
    count=st.integers(2, 40),
    columns=st.integers(1, 9),
    text=st.booleans(),
)
def test_any_map_round_trips_and_treats_every_row_alone(stages, seed, count, columns, text):
    rng = np.random.default_rng(seed)
    public = rng.normal(size=(count, columns)) * 10.0 ** rng.integers(-2, 3, size=columns)
    if text:
        public[:, 0] = rng.integers(0, 3, size=count)
    try:
        features = fit(stages, public, [0] if text else [])
    except InputError:  # a single direction, normalised, leaves rows without variance
        assume(False)
    private = rng.normal(size=(2100, columns)) * 100
    out = features.transform(private)
    assert out.shape == (2100, features.dimension)
    refitted = fit(stages, public.copy(), [0] if text else [])
    for again in (FeatureMap.from_arrays(*features.to_arrays()), refitted):
        np.testing.assert_array_equal(again.transform(private), out)
    for part in (slice(0, 1), slice(3, 10), slice(1020, 1030), slice(2099, 2100)):
        np.testing.assert_array_equal(features.transform(private[part]), out[part])
    last = stages[-1] if stages else None
    norms = np.linalg.norm(out, axis=1)
    if last in ("unit_norm", "max_norm"):
        assert norms.max() <= 1 + 1e-15
    if last == "unit_norm":
        np.testing.assert_allclose(norms[np.abs(out).max(axis=1) > 0], 1, atol=1e-15)
    if last == "max_norm":
        np.testing.assert_allclose(np.linalg.norm(features.transform(public), axis=1).max(), 1, atol=1e-12)


@pytest.mark.parametrize(
    "stages",
    [["unit_norm"], ["max_norm"], [{"fourier": 8}], ["unit_norm", {"polynomial": 2}], ["max_norm", {"polynomial": 3}]],
)
def test_maps_to_rows_of_norm_1_are_complete(stages):
    features = fit(stages, NEAR_ONE)
    assert completed(features) is features
    assert np.linalg.norm(features.transform(100 * NEAR_ONE), axis=1).max() <= 1 + 1e-15


@pytest.mark.parametrize(
    "stages", [[], ["standardise"], ["unit_norm", "constant"], [{"polynomial": 2}], ["constant", {"polynomial": 2}]]
)
def test_other_maps_are_completed_by_a_constant_and_unit_norm(stages):
    features = fit(stages, NEAR_ONE)
    whole = completed(features)
    assert whole.dimension == features.dimension + ("constant" not in stages)
    assert sum(isinstance(step, Append) for step in whole.steps) == 1
    assert isinstance(whole.steps[-1], UnitNorm)
    np.testing.assert_allclose(np.linalg.norm(whole.transform(100 * NEAR_ONE), axis=1), 1, atol=1e-15)
    assert completed(whole) is whole


@pytest.mark.parametrize("stages", [["standardise", {"fourier": 32}], [{"whiten": 3}, "unit_norm"], []])
def test_means_are_those_of_the_features(stages):
    features = fit(stages, STREAMED[:300])
    for count in (1, 1023, 1024, 5000):
        direct = features.transform(STREAMED[:count]).mean(axis=0)
        np.testing.assert_allclose(features.mean(STREAMED[:count]), direct, atol=1e-13)
    np.testing.assert_array_equal(features.mean(STREAMED), features.mean(np.asfortranarray(STREAMED)))


def test_replacing_a_row_moves_the_mean_by_at_most_two_over_n():
    features = fit([{"fourier": 64}], STREAMED[:300])
    for count in (1, 10, 2000):
        moved = STREAMED[:count].copy()
        moved[-1] += 50.0
        step = np.linalg.norm(features.mean(moved) - features.mean(STREAMED[:count]))
        assert 0.5 / count < step <= 2 / count + 1e-14


def test_memory_does_not_grow_with_the_rows():
    features = fit([{"fourier": 256}], STREAMED[:300])
    tracemalloc.start()
    features.mean(np.broadcast_to(STREAMED, (8, 5000, 6)).reshape(-1, 6)[:30_000])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30_000 * 256 * 8 / 4


@pytest.mark.parametrize("rows", [np.empty((0, 6)), np.ones(6), np.full((2, 6), np.nan), np.ones((2, 5))])
def test_refuses_what_has_no_mean(rows):
    with pytest.raises(InputError):
        fit([{"fourier": 8}], STREAMED[:50]).mean(rows)


ANY = arrays.arrays(
    np.float64,
    st.tuples(st.integers(1, 4), st.integers(1, 9)),
    elements=st.floats(allow_nan=False, allow_infinity=False, width=64),
)


@given(ANY, st.sampled_from([1e-3, 1.0, 52.8]), st.booleans())
def test_no_vector_is_longer_than_its_norm_and_what_is_charged(vectors, norm, scaled):
    ball = Ball(norm, scaled)
    found = ball.of(vectors)
    lengths = np.sqrt(np.square(found.astype(np.longdouble) / norm).sum(axis=1))
    assert lengths.max() <= 1 + ball.excess(vectors.shape[1])
    if scaled:
        assert (np.abs(lengths - 1) < 1e-12)[np.abs(vectors).max(axis=1) > 0].all()
    alone = np.concatenate([ball.of(row[None]) for row in vectors])
    assert found.tobytes() == alone.tobytes()


@pytest.mark.parametrize("norm", [0.0, -1.0, np.nan, np.inf])
def test_vectors_inside_a_ball_stay_as_they_are_and_directions_are_kept(norm):
    vectors = np.array([[0.3, 0.4], [3.0, 4.0], [0.0, 0.0], [1e300, 1e300]])
    np.testing.assert_allclose(Ball(1.0).of(vectors), [[0.3, 0.4], [0.6, 0.8], [0, 0], [0.5**0.5] * 2])
    np.testing.assert_allclose(Ball(2.0, scaled=True).of(vectors), [[1.2, 1.6], [1.2, 1.6], [0, 0], [2**0.5] * 2])
    assert [Ball(1.0, scaled=True).told, Ball(0.5).told] == ["scaled to norm 1", "shortened to norm 0.5 at most"]
    with pytest.raises(InputError, match="norm"):
        Ball(norm)
