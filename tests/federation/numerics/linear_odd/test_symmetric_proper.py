"""Symmetric proper losses against convex conjugates found numerically, and what a generator must be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from aggregator.learners.linear_odd.losses import GENERATORS, Generator, SymmetricProper
from federation.contract.errors import InputError

PHI = {
    "entropy": (lambda u: u * np.log(u) + (1 - u) * np.log(1 - u), (1e-15, 1 - 1e-15)),
    "gini": (lambda u: -u * (1 - u), (-10, 10)),
    "matsushita": (lambda u: -np.sqrt(u * (1 - u)), (0, 1)),
}


@pytest.mark.parametrize("name", PHI)
@pytest.mark.parametrize("score", [-3.0, -0.4, 0.0, 1.7])
def test_the_conjugate_is_that_of_the_generator(name, score):
    phi, bounds = PHI[name]
    best = minimize_scalar(lambda u: phi(u) - u * score, bounds=bounds, method="bounded", options={"xatol": 1e-12})
    generator = GENERATORS[name]
    np.testing.assert_allclose(generator.conjugate(np.array(score)), -best.fun, atol=1e-10)
    np.testing.assert_allclose(generator.slope(np.array(score)), best.x, atol=1e-5)


@pytest.mark.parametrize("name", GENERATORS)
def test_derivatives_of_the_even_part(name):
    loss, x, step = SymmetricProper(name), np.linspace(-6, 6, 41), 1e-5
    slope = (loss.even(x + step) - loss.even(x - step)) / (2 * step)
    curvature = (loss.even_slope(x + step) - loss.even_slope(x - step)) / (2 * step)
    np.testing.assert_allclose(loss.even_slope(x), slope, atol=1e-8)
    np.testing.assert_allclose(loss.even_curvature(x), curvature, atol=1e-8)
    assert loss.curvature_range[0] <= loss.even_curvature(x).min()
    np.testing.assert_allclose(loss.even_curvature(np.zeros(1)), loss.curvature_range[1], rtol=1e-14)


@pytest.mark.parametrize("name", GENERATORS)
def test_probabilities_have_the_least_expected_loss(name):
    loss = SymmetricProper(name)
    for score in (-0.9, 0.0, 0.6):
        p = float(loss.probability(np.array(score)))
        best = minimize_scalar(lambda z, p=p: p * loss.value(z) + (1 - p) * loss.value(-z), bounds=(-5, 5))
        assert abs(best.x - score) < 1e-5
    assert loss.probability(np.array(-1e8)) <= 1e-16
    assert loss.probability(np.array(1e8)) == 1.0


def test_scale_and_offset():
    loss = SymmetricProper("entropy", scale=np.log(2), offset=1.0)
    assert loss.slope == 1 / np.log(2)
    np.testing.assert_allclose(loss.value(np.zeros(1)), 2.0)  # 1 more than log2(1 + e^0)


def test_a_generator_of_ones_own():
    """The even part (x² + sqrt(1 + x²)) / 2 with a = 1: phi*(x) = even(x) + x / 2."""
    own = Generator(
        "mixed",
        lambda x: (x**2 + np.hypot(1, x) + x) / 2,
        lambda x: x + x / np.hypot(1, x) / 2 + 0.5,
        lambda x: 1 + np.hypot(1, x) ** -3.0 / 2,
        (1.0, 1.5),
        bounded_slope=False,
    )
    loss, x = SymmetricProper(own), np.linspace(-4, 4, 17)
    np.testing.assert_allclose(loss.value(x), (x**2 + np.hypot(1, x) - x) / 2, atol=1e-14)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"conjugate": np.exp}, r"phi\*\(-x\) differs"),
        ({"slope": lambda x: np.tanh(x)}, "slope differs"),
        ({"curvature": lambda x: 0.2 + 0 * x}, "curvature differs"),
        ({"curvature_range": (0.0, 0.2)}, "curvature leaves"),
        ({"curvature_range": (0.0, np.inf)}, "curvature_range"),
        ({"scale": 0.0}, "scale"),
    ],
)
def test_generators_that_are_not_permissible_are_refused(changes, message):
    logistic = GENERATORS["entropy"]
    fields = {
        "name": "own",
        "conjugate": logistic.conjugate,
        "slope": logistic.slope,
        "curvature": logistic.curvature,
        "curvature_range": (0.0, 0.25),
    }
    with pytest.raises(InputError, match=message):
        Generator(**fields | changes)


def test_unknown_generators_and_bad_scales_are_refused():
    with pytest.raises(InputError, match="did you mean 'entropy'"):
        SymmetricProper("entropie")
    with pytest.raises(InputError, match="scale"):
        SymmetricProper("gini", scale=-1.0)
    with pytest.raises(InputError, match="offset"):
        SymmetricProper("gini", offset=np.nan)
