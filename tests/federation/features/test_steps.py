"""Steps of feature maps: monomials are those of the polynomial kernel, waves have norm 1; damaged ones are refused."""

import json
import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics.pairwise import polynomial_kernel
from support.refusals import refused

from aggregator.trial.feature_fitting import fit
from federation.contract.errors import InputError
from federation.features.feature_map import FeatureMap, with_polynomial
from federation.features.steps import (
    MOST_MONOMIALS,
    Affine,
    Append,
    ClipNorm,
    Fourier,
    Impute,
    OneHot,
    Polynomial,
    SignedLog,
    UnitNorm,
    waves,
)

_ROWS = np.random.default_rng(0).normal(size=(30, 5)) + 1.0

_NUMBERS = st.floats(-1e3, 1e3).map(lambda number: round(number, 9))  # whose powers do not vanish


@settings(derandomize=True)
@given(
    st.integers(1, 6).flatmap(lambda columns: arrays(np.float64, (4, columns), elements=_NUMBERS)),
    st.sampled_from([2, 3]),
)
def test_inner_products_are_the_kernels(rows, degree):
    out = Polynomial(degree).apply(rows)
    expected = polynomial_kernel(rows, degree=degree, gamma=1.0, coef0=0.0)
    largest = np.linalg.norm(rows, axis=1).max() ** (2 * degree)
    np.testing.assert_allclose(out @ out.T, expected, rtol=0, atol=1e-14 * largest)
    np.testing.assert_allclose(np.linalg.norm(out, axis=1), np.linalg.norm(rows, axis=1) ** degree, rtol=1e-14)


@pytest.mark.parametrize("degree", [2, 3])
def test_rows_of_norm_1_keep_it_whatever_rows_they_come_with(degree):
    features = fit(["standardise", "constant", "unit_norm", {"polynomial": degree}], _ROWS)
    assert features.dimension == math.comb(6 + degree - 1, degree)
    out = features.transform(_ROWS)
    np.testing.assert_allclose(np.linalg.norm(out, axis=1), 1, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(features.transform(_ROWS[7:9]), out[7:9])
    again = FeatureMap.from_arrays(*features.to_arrays())
    assert isinstance(again.steps[-1].degree, int)
    np.testing.assert_array_equal(again.transform(_ROWS), out)
    before = fit(["standardise", "constant", "unit_norm"], _ROWS)
    np.testing.assert_array_equal(with_polynomial(before, degree).transform(_ROWS), out)


def test_too_many_features_are_refused_before_they_are_computed():
    assert Polynomial(2).width(199) == 19_900 <= MOST_MONOMIALS
    for degree, columns, monomials in ((2, 200, 20_100), (3, 50, 22_100)):
        refused(rf"{monomials}.*{degree}.*{columns}", with_polynomial, FeatureMap(columns, ()), degree)
        refused(None, fit, [{"polynomial": degree}], np.ones((2, columns)))


@pytest.mark.parametrize("degree", [1, 4, 0, -2, 2.5, True, None, "2"])
def test_other_degrees_are_refused(degree):
    with pytest.raises(InputError, match=r"polynomial.*2.*3"):
        fit([{"polynomial": degree}], _ROWS)


@pytest.mark.parametrize(
    ("step", "fields", "words"),
    [
        *(("polynomial", {"degree": degree}, r"polynomial step|cannot be read") for degree in (1.0, 2.5, 1e300, [2])),
        *(
            ("fourier", {"frequencies": frequencies}, None)
            for frequencies in (
                np.ones(3),
                np.empty((3, 0)),
                np.empty((0, 2)),
                np.full((3, 2), np.nan),
                np.ones((2, 2)),
            )
        ),
        ("impute", {"fill": [0.0, np.inf, 0.0], "flags": np.empty(0, int)}, None),
        ("impute", {"fill": [0.0, 1.0], "flags": np.empty(0, int)}, "3"),
        *(("impute", {"fill": [0.0, 1.0, 2.0], "flags": flags}, "3") for flags in ([3], [-1])),
        *(("impute", {"fill": [0.0, 1.0, 2.0], "flags": flags}, None) for flags in ([1, 1], [1.0])),
        ("impute", {"fill": [[0.0, 1.0, 2.0]], "flags": [1]}, None),
        ("signed_log", {"scales": [1.0, 2.0]}, "3"),
        *(("signed_log", {"scales": [1.0, scale, 1.0]}, "0") for scale in (-2.0, np.nan)),
        ("signed_log", {"scales": np.empty(0)}, None),
    ],
)
def test_steps_that_do_not_fit_are_refused(step, fields, words):
    named = {name: value if name == "degree" else name for name, value in fields.items()}
    described = json.dumps({"columns": 3, "steps": [{"kind": step, **named}]})
    with pytest.raises(InputError, match=words):
        FeatureMap.from_arrays(described, {name: np.asarray(value) for name, value in fields.items()})


@settings(derandomize=True)
@given(arrays(np.float64, (3, 2), elements=st.floats(-1e12, 1e12)))
def test_waves_are_cosines_and_sines_of_norm_one(phases):
    out = np.hstack(waves(phases.copy()))
    direct = np.hstack([np.cos(phases), np.sin(phases)]) / np.sqrt(2)
    np.testing.assert_allclose(out, direct, rtol=0, atol=1e-15)
    np.testing.assert_allclose(np.einsum("nd,nd->n", out, out), 1, rtol=0, atol=1e-15)


def test_waves_of_a_row_do_not_depend_on_its_company():
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(150, 37))
    rows[::7] *= 1e9  # phases that are reduced in another way
    for features in (2, 30, 512):
        step = Fourier.draw(37, 0.1, features, 0)
        out = step.apply(rows)
        for size in (1, 2, 7, 33):
            chosen = rng.choice(len(rows), size, replace=False)
            np.testing.assert_array_equal(step.apply(np.ascontiguousarray(rows[chosen])), out[chosen])


_ANY = st.floats(width=64) | st.sampled_from([np.nan, np.inf, -np.inf, 5e-324, -1.7e308, 0.0, -0.0])
_ALL_STEPS = (
    OneHot(np.array([1]), np.array([2.0, 5.0]), np.array([0, 2])),
    Impute(np.array([1.0, -1e308, 0.0]), np.array([2, 0])),
    Affine(np.full(3, -1e308), np.full(3, 1e300)),
    Affine(np.ones(3), np.ones((3, 2))),
    Append(2.0),
    UnitNorm(),
    ClipNorm(5e-324),
    SignedLog(),
    SignedLog(np.array([0.0, 5e-324, 1e308])),
    Polynomial(3),
    Fourier(np.ones((3, 2))),
)


@settings(derandomize=True)
@given(arrays(np.float64, st.tuples(st.integers(0, 5), st.just(3)), elements=_ANY), st.sampled_from(_ALL_STEPS))
def test_every_step_takes_whatever_numbers_a_party_holds(rows, step):
    """Whoever asks chooses the map: no row may break the others', warn of itself, or change the form of the answer."""
    features = FeatureMap(3, (step,))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = features.apply(rows)
    assert (out.shape, out.dtype) == ((len(rows), features.dimension), np.float64)
    assert out.flags.c_contiguous
    for i in range(len(rows)):
        np.testing.assert_array_equal(features.apply(rows[i : i + 1])[0], out[i])


@settings(derandomize=True)
@given(arrays(np.float64, (6, 3), elements=st.floats(-1e6, 1e6) | st.just(np.nan)), st.sets(st.integers(0, 2)))
def test_missing_cells_are_filled_in_and_told(rows, flags):
    step = Impute(np.array([3.0, 0.0, -7.5]), np.array(sorted(flags), dtype=np.int64))
    out, missing = FeatureMap(3, (step,)).transform(rows), np.isnan(rows)
    np.testing.assert_array_equal(out[:, :3][~missing], rows[~missing])
    np.testing.assert_array_equal(out[:, :3][missing], np.broadcast_to(step.fill, rows.shape)[missing])
    np.testing.assert_array_equal(out[:, 3:], 1.0 * missing[:, sorted(flags)])


@settings(derandomize=True)
@given(arrays(np.float64, (4, 3), elements=st.floats(-1e9, 1e9)), st.tuples(*[st.sampled_from([0, 0.1, 1, 40])] * 3))
def test_logarithms_can_be_undone(rows, scales):
    """Odd, increasing, 0 at 0 with slope 1/s: compared with the exact inverse s (e^|y| - 1)."""
    out = SignedLog(np.array(scales, dtype=float)).apply(rows)
    for column, scale in enumerate(scales):
        back = np.sign(out[:, column]) * scale * np.expm1(np.abs(out[:, column])) if scale else out[:, column]
        np.testing.assert_allclose(back, rows[:, column], rtol=1e-13, atol=1e-300)


def test_maps_from_before_logarithms_had_scales_can_be_read():
    old = FeatureMap.from_arrays(json.dumps({"columns": 2, "steps": [{"kind": "signed_log"}]}), {})
    rows = np.array([[0.0, -1.0], [999.0, 5.0]])
    np.testing.assert_array_equal(old.transform(rows), fit(["signed_log"], _ROWS[:, :2]).transform(rows))
    np.testing.assert_allclose(old.transform(rows), np.sign(rows) * np.log1p(np.abs(rows)))
