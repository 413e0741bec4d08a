"""Public feature maps against scikit-learn, against their own documented recipe, and their invariants."""

from __future__ import annotations

import json
import math
import tracemalloc
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from aggregator.world.fitting import fit, mixed_units
from federation.contract.errors import InputError
from federation.features.feature_map import FeatureMap, completed, text_code, with_fourier
from federation.features.steps import Append, Fourier, UnitNorm

_RNG = np.random.default_rng(0)
TALL = _RNG.normal(size=(80, 6)) @ _RNG.normal(size=(6, 6)) + 3.0
WIDE = _RNG.normal(size=(12, 40)) * np.linspace(1, 3, 40) - 1.0
NEAR_ONE = np.random.default_rng(0).normal(size=(30, 5)) + 1.0
STREAMED = np.random.default_rng(0).normal(size=(5000, 6)) * np.arange(1, 7)
STAGES = [
    "scale",
    "standardise",
    {"pca": 2},
    {"pca": 50},
    {"whiten": 2},
    {"whiten": 50},
    "constant",
    "unit_norm",
    "max_norm",
    {"fourier": 6},
    {"polynomial": 2},
    {"polynomial": 3},
]


def up_to_sign(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return b * np.sign(np.sum(a * b, axis=0))


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


@pytest.mark.parametrize("rows", [TALL, WIDE], ids=["covariance", "gram"])
@pytest.mark.parametrize("whiten", [False, True])
def test_projection_is_scikit_learns_up_to_sign(rows, whiten):
    oracle = PCA(4, whiten=whiten, svd_solver="full").fit(rows)
    expected = oracle.transform(rows)
    if whiten:  # scikit-learn divides by N - 1
        expected *= np.sqrt(len(rows) / (len(rows) - 1))
    ours = fit([{"whiten" if whiten else "pca": 4}], rows).transform(rows)
    np.testing.assert_allclose(up_to_sign(ours, expected), ours, atol=1e-9)


@pytest.mark.parametrize("rows", [TALL, WIDE], ids=["covariance", "gram"])
def test_largest_entry_of_every_direction_is_positive(rows):
    matrix = fit([{"pca": 5}], rows).steps[0].factor
    assert (matrix[np.abs(matrix).argmax(axis=0), np.arange(matrix.shape[1])] > 0).all()


@pytest.mark.parametrize("rows", [TALL, WIDE], ids=["covariance", "gram"])
def test_whitened_public_rows_have_unit_covariance_and_the_rank(rows):
    features = fit([{"whiten": 1000}], rows)
    assert features.dimension == min(rows.shape[1], len(rows) - 1)
    out = features.transform(rows)
    np.testing.assert_allclose(out.T @ out / len(rows), np.eye(features.dimension), atol=1e-9)
    np.testing.assert_allclose(out.mean(axis=0), 0, atol=1e-9)


def test_negligible_directions_are_dropped():
    rows = np.hstack([TALL, TALL @ _RNG.normal(size=(6, 4)), np.full((80, 2), 7.0)])
    assert fit([{"whiten": 12}], rows).dimension == 6
    assert fit([{"pca": 12}], rows).dimension == 6


def test_standardise_is_scikit_learns_and_centres_constant_columns():
    rows = np.hstack([TALL * [1, 10, 100, 1000, 0.1, 0.01], np.full((80, 1), 0.1)])
    out = fit(["standardise"], rows).transform(rows)
    np.testing.assert_allclose(out[:, :-1], StandardScaler().fit_transform(rows[:, :-1]), atol=1e-12)
    np.testing.assert_allclose(out[:, -1], 0, atol=1e-15)


def test_scale_standardises_only_columns_that_share_no_unit():
    digits, tumours = load_digits().data, load_breast_cancer().data
    counts = np.random.default_rng(1).gamma(0.05, 4.0, size=(300, 54)).clip(0, 30)
    spam = np.hstack([counts, np.random.default_rng(2).pareto(1.0, size=(300, 3)).clip(0, 300) * [3, 30, 50]])
    for rows, mixed in [(digits, False), (digits / 16, False), (tumours, True), (spam, True)]:
        for public in (rows[:100], rows):
            assert mixed_units(public) is mixed
            assert len(fit(["scale"], public).steps) == int(mixed)
    assert not mixed_units(np.ones((5, 3)))
    assert mixed_units(np.array([[0.0, 0.0], [1.0, 1000.0]]))
    np.testing.assert_array_equal(
        fit(["scale"], tumours).transform(tumours), fit(["standardise"], tumours).transform(tumours)
    )


def test_max_norm_divides_by_the_largest_public_norm_and_clips():
    features = fit(["max_norm"], np.array([[3.0, 4.0], [0.0, 1.0]]))
    out = features.transform(np.array([[3.0, 0.0], [0.0, 20.0], [0.0, 0.0], [1e300, 1e300]]))
    np.testing.assert_allclose(out, [[0.6, 0], [0, 1], [0, 0], [np.sqrt(0.5), np.sqrt(0.5)]], atol=1e-15)


def test_waves_approximate_the_gaussian_kernel_at_the_median_distance_of_the_public_rows():
    features = fit(["standardise", {"fourier": 4096}], TALL)
    out = features.transform(TALL)
    squares = pdist(fit(["standardise"], TALL).transform(TALL), "sqeuclidean")
    expected = squareform(np.exp(-squares / np.median(squares))) + np.eye(len(TALL))
    np.testing.assert_allclose(out @ out.T, expected, atol=5 / np.sqrt(4096))
    np.testing.assert_allclose([math.fsum(row * row) for row in out], 1, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(fit(["standardise", {"fourier": 4096}], TALL).transform(TALL), out)


def test_waves_can_follow_a_fitted_map():
    before = fit(["standardise"], TALL)
    after = with_fourier(before, 0.5, 64, 3)
    assert repr(after) == "FeatureMap(6 -> 64: affine, fourier)"
    step = Fourier.draw(6, 0.5, 64, 3)
    np.testing.assert_array_equal(after.transform(TALL), step.apply(before.transform(TALL)))
    phases = before.transform(TALL) @ step.frequencies
    direct = np.hstack([np.cos(phases), np.sin(phases)]) / np.sqrt(32)
    np.testing.assert_allclose(after.transform(TALL), direct, atol=1e-15)
    assert not np.array_equal(with_fourier(before, 0.5, 64, 4).transform(TALL), after.transform(TALL))
    with pytest.raises(InputError, match="gamma must be positive"):
        with_fourier(before, 0.0, 64, 3)
    with pytest.raises(InputError, match="features must be an even number"):
        with_fourier(before, 1.0, 65, 3)


@pytest.mark.parametrize("size", [5e-324, 1e-300, 1.0, 1e300])
def test_unit_norm_survives_extreme_sizes_and_keeps_zero_rows(size):
    out = fit(["unit_norm"], TALL).transform(np.vstack([np.full((1, 6), size), np.zeros((1, 6))]))
    np.testing.assert_allclose(np.linalg.norm(out, axis=1), [1, 0], atol=1e-15)


def test_text_columns_become_indicators_of_public_texts_only():
    red, blue, green = map(text_code, ("red", "blue", "green"))
    public = np.array([[red, 1.0, blue], [blue, 2.0, blue]])
    features = fit([], public, text_columns=[2, 0])
    out = features.transform(np.array([[red, 5.0, blue], [green, 6.0, green], [blue, 7.0, red]]))
    low_is_red = red < blue
    colour = {red: [1.0, 0.0] if low_is_red else [0.0, 1.0], blue: [0.0, 1.0] if low_is_red else [1.0, 0.0]}
    np.testing.assert_array_equal(
        out, [[5, 1, *colour[red]], [6, 0, 0, 0], [7, 0, *colour[blue]]]
    )  # number, then column 2's only text, then column 0's two


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
    ],
    ids=["none", "whitened", "clipped", "waves", "monomials"],
)
def test_arrays_round_trip_exactly_and_follow_the_documented_recipe(stages):
    rows = np.hstack([TALL, np.array([[text_code(t)] for t in "abcd" * 20])])
    features = fit(stages, rows, text_columns=[6])
    description, arrays = features.to_arrays()
    again = FeatureMap.from_arrays(description, {"other": np.ones(2), **arrays})
    private = rows[::-1] * 1.7
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


def corrupt(description: str, arrays: dict[str, np.ndarray], how: str) -> tuple[str, dict[str, np.ndarray]]:
    record = json.loads(description)
    match how:
        case "no json":
            return description[:-1], arrays
        case "no object":
            return "[]", arrays
        case "unknown kind":
            record["steps"][0]["kind"] = "lambda"
        case "no columns":
            record["columns"] = 0
        case "other width":
            record["columns"] = 4
        case "missing array":
            arrays = {}
        case "nan":
            arrays = {n: a * np.nan for n, a in arrays.items()}
        case "short array":
            arrays = {n: a[:3] if n.endswith("offset") else a for n, a in arrays.items()}
        case "text value":
            record["steps"][1]["value"] = [1]
        case "infinite value":
            record["steps"][1]["value"] = float("inf")
        case "negative norm":
            record["steps"][2]["largest"] = -1.0
    return json.dumps(record), arrays


@pytest.mark.parametrize(
    "how",
    [
        "no json",
        "no object",
        "unknown kind",
        "no columns",
        "other width",
        "missing array",
        "nan",
        "short array",
        "text value",
        "infinite value",
        "negative norm",
    ],
)
def test_damaged_maps_are_refused(how):
    description, arrays = fit([{"pca": 2}, "constant", "max_norm"], TALL).to_arrays()
    with pytest.raises(InputError):
        FeatureMap.from_arrays(*corrupt(description, arrays, how))


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


@pytest.mark.parametrize(
    ("stages", "part"),
    [
        (["sclae"], "did you mean 'scale'"),
        ([{"whitten": 3}], "did you mean 'whiten'"),
        (["pca"], "pca needs a whole number"),
        ([{"pca": 0}], "whole number of dimensions from 1, got 0"),
        ([{"whiten": True}], "got True"),
        ([{"whiten": 2.5}], "got 2.5"),
        ([{"pca": 1, "whiten": 2}], "is not a stage"),
        ([{"fourier": 7}], "fourier needs an even number of features from 2, got 7"),
        ([{"fourier": 0}], "got 0"),
        ([{"fourier": True}], "got True"),
        (["fourier"], "got None"),
        ([{"furrier": 8}], r"\{fourier: D\}, \{polynomial: p\}; did you mean 'fourier'"),
        ([3], "is not a stage"),
        ([{"scale": 3}], "is not a stage"),
    ],
)
def test_unknown_stages_are_named(stages, part):
    with pytest.raises(InputError, match=part):
        fit(stages, TALL)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_are_named(value):
    rows = TALL.copy()
    rows[7, 2] = value
    with pytest.raises(InputError, match=r"public rows must be finite: row 7, column 2 .* is "):
        fit(["scale"], rows)
    with pytest.raises(InputError, match=r"^rows must be finite: row 7, column 2"):
        fit(["scale"], TALL).transform(rows)


def test_rows_of_the_wrong_shape_are_refused():
    features = fit(["standardise"], TALL)
    for rows, part in [(TALL[:, :4], "6 columns.*got 4"), (TALL[0], "two axes"), ([["a"] * 6], "numbers")]:
        with pytest.raises(InputError, match=part):
            features.transform(rows)
    assert features.transform(TALL[:0]).shape == (0, 6)


def test_rows_that_cannot_be_fitted_are_refused():
    for rows in (np.zeros((0, 3)), np.zeros((3, 0))):
        with pytest.raises(InputError, match="must not be empty"):
            fit(["scale"], rows)
    with pytest.raises(InputError, match="1 public rows are all equal"):
        fit([{"whiten": 2}], TALL[:1])
    with pytest.raises(InputError, match="max_norm needs"):
        fit(["max_norm"], np.zeros((3, 2)))
    with pytest.raises(InputError, match="1001 different texts"):
        fit([], np.arange(1001.0)[:, None], text_columns=[0])
    with pytest.raises(InputError, match=r"text columns must lie in 0\.\.5"):
        fit([], TALL, text_columns=[6])


def test_features_that_overflow_are_refused():
    with pytest.raises(InputError, match="features must be finite"):
        fit(["standardise"], TALL * 1e-10).transform(TALL * 1e305)


def test_columns_of_almost_no_spread_do_not_overflow():
    rows = np.array([[0.0, 1.0], [5e-324, 2.0]])
    assert np.isfinite(fit(["standardise"], rows).transform(rows)).all()


def test_description_of_a_map():
    features = fit([{"whiten": 3}, "constant", "unit_norm"], TALL)
    assert repr(features) == "FeatureMap(6 -> 4: affine, append, unit_norm)"
    out = features.transform(TALL.astype(np.float32))
    assert out.dtype == np.float64
    assert out.flags.c_contiguous


@settings(derandomize=True, deadline=None, max_examples=60)
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
    np.testing.assert_array_equal(FeatureMap.from_arrays(*features.to_arrays()).transform(private), out)
    for part in (slice(0, 1), slice(3, 10), slice(1020, 1030), slice(2099, 2100)):
        np.testing.assert_array_equal(features.transform(private[part]), out[part])
    refitted = fit(stages, public.copy(), [0] if text else [])
    np.testing.assert_array_equal(refitted.transform(private), out)
    last = stages[-1] if stages else None
    norms = np.linalg.norm(out, axis=1)
    if last in ("unit_norm", "max_norm"):
        assert norms.max() <= 1 + 1e-15
    if last == "unit_norm":
        np.testing.assert_allclose(norms[np.abs(out).max(axis=1) > 0], 1, atol=1e-15)
    if last == "max_norm":
        np.testing.assert_allclose(np.linalg.norm(features.transform(public), axis=1).max(), 1, atol=1e-12)


@pytest.mark.parametrize("stage", ["scale", "standardise", {"pca": 1}, {"whiten": 1}, "max_norm"])
def test_numbers_whose_squares_overflow_are_refused(stage):
    rows = np.column_stack([np.arange(5.0), 1e200 * np.arange(5.0)])
    with pytest.raises(InputError, match=r"column 1 \(counted from 0\) of the public rows holds numbers up to 4e\+200"):
        fit([stage], rows)
    with pytest.raises(InputError, match=r"column 0 .* up to 1e\+308"):
        fit([stage], np.array([[1e308, 0.0], [-1e308, 1.0]]))
    fit([stage], rows / 1e50)


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
