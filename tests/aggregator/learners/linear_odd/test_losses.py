"""Losses against Table 1 of Patrini et al. 2015, symmetric proper ones against conjugates found numerically.

Losses by name, what makes a loss linear-odd, and refusals that say why.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from support.generators import MIXED

from aggregator.learners.linear_odd.losses import (
    GENERATORS,
    NAMES,
    Generator,
    SymmetricProper,
    loss,
    require_linear_odd,
)
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


def test_a_generator_of_ones_own_scale_and_offset():
    """The even part (x² + sqrt(1 + x²)) / 2 with a = 1: phi*(x) = even(x) + x / 2."""
    loss, x = SymmetricProper(MIXED), np.linspace(-4, 4, 17)
    np.testing.assert_allclose(loss.value(x), (x**2 + np.hypot(1, x) - x) / 2, atol=1e-14)
    loss = SymmetricProper("entropy", scale=np.log(2), offset=1.0)
    assert loss.slope == 1 / np.log(2)
    np.testing.assert_allclose(loss.value(np.zeros(1)), 2.0)  # 1 more than log2(1 + e^0)


@pytest.mark.parametrize(("changes", "message"), [
    ({"conjugate": np.exp}, None), ({"slope": lambda x: np.tanh(x)}, None),
    ({"curvature": lambda x: 0.2 + 0 * x}, None), ({"curvature_range": (0.0, 0.2)}, None),
    ({"curvature_range": (0.0, np.inf)}, "curvature_range"), ({"scale": 0.0}, "scale"),
])  # fmt: skip
def test_generators_that_are_not_permissible_are_refused(changes, message):
    fields = {name: getattr(GENERATORS["entropy"], name) for name in ("conjugate", "slope", "curvature")}
    with pytest.raises(InputError, match=message):
        Generator(**{"name": "own", **fields, "curvature_range": (0.0, 0.25), **changes})


@pytest.mark.parametrize(("call", "message"), [
    (lambda: SymmetricProper("entropie"), "entropy"), (lambda: SymmetricProper("gini", scale=-1.0), "scale"),
    (lambda: SymmetricProper("gini", offset=np.nan), "offset"), (lambda: loss("logisitc"), "logistic"),
    (lambda: loss("square", rho=1.0), r"square.*rho"), (lambda: loss("rho", width=1.0), r"rho.*rho.*width"),
    *((lambda rho=rho: loss("rho", rho=rho), "rho") for rho in (0.0, -1.0, float("nan"), float("inf"))),
    (lambda: require_linear_odd(lambda x: np.maximum(0, 1 - x), "hinge"), r"2.*2.*1"),
    (lambda: require_linear_odd(lambda x: x), None), (lambda: require_linear_odd(np.abs), None),
    (lambda: require_linear_odd(lambda x: np.full(len(x), np.nan)), "finite"),
    (lambda: require_linear_odd(lambda x: 0.0), None),
])  # fmt: skip
def test_unknown_names_bad_parameters_and_losses_that_cannot_be_learned_from_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


MARGINS = np.concatenate([-np.geomspace(1e-8, 1e8, 60), [0.0], np.geomspace(1e-8, 1e8, 60)])

# name: value, even part, a
TABLE = {
    "logistic": (lambda x: np.logaddexp(0, -x), lambda x: np.logaddexp(x / 2, -x / 2), 1),
    "square": (lambda x: (1 - x) ** 2, lambda x: 1 + x**2, 4),
    "matsushita": (
        lambda x: np.where(x > 0, 1 / (np.hypot(1, x) + np.abs(x)), np.hypot(1, x) - x),
        lambda x: np.hypot(1, x),
        2,
    ),
    "rho": (lambda x: 2 * np.maximum(-x, 0) + 1, lambda x: np.abs(x) + 1, 2),
    "linear": (lambda x: -x, lambda x: 0 * x, 2),
    "unhinged": (lambda x: 1 - x, lambda x: 0 * x + 1, 2),
    "perceptron": (lambda x: np.maximum(-x, 0), lambda x: np.abs(x) / 2, 1),
    "double_hinge": (
        lambda x: np.maximum(-x, np.maximum(0, 1 - x) / 2),
        lambda x: np.maximum(1, np.abs(x)) / 2,
        1,
    ),
}


def test_every_loss_is_linear_odd_with_its_slope_and_symmetric_proper_ones_take_their_generator():
    for name in NAMES:
        assert require_linear_odd(loss(name).value) == pytest.approx(loss(name).slope, rel=1e-14)
    assert loss("symmetric_proper", generator="gini", scale=0.5).slope == 2.0


@pytest.mark.parametrize("name", TABLE)
def test_values_and_parts_are_those_of_the_table_and_the_mean_operator_is_sufficient(name):
    value, even, slope = TABLE[name]
    found = loss(name)
    assert found.slope == slope
    assert found.bounded_slope == (name != "square")
    np.testing.assert_allclose(found.value(MARGINS), value(MARGINS), rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(found.even(MARGINS), even(MARGINS), rtol=1e-14)
    np.testing.assert_array_equal(found.even(MARGINS), found.even(-MARGINS))
    scale = 1 + np.abs(found.value(MARGINS)) + np.abs(found.value(-MARGINS))
    assert (np.abs(found.even(MARGINS) - slope / 2 * MARGINS - found.value(MARGINS)) <= 1e-12 * scale).all()
    # Patrini et al. 2015, Theorem 3: the empirical risk from margins y <w, x>, and from mu.
    rng = np.random.default_rng(1)
    rows, signs, weights = rng.normal(size=(40, 3)), rng.choice([-1, 1], 40), rng.normal(size=3)
    direct = found.value(signs * (rows @ weights)).mean()
    from_moment = found.even(rows @ weights).mean() - found.slope / 2 * weights @ (signs @ rows / 40)
    assert abs(direct - from_moment) < 1e-12


@pytest.mark.parametrize("rho", [0.2, 3.0])
def test_rho_scales_the_slope(rho):
    found, x = loss("rho", rho=rho), np.linspace(-3, 3, 13)
    np.testing.assert_allclose(found.value(x), rho * np.abs(x) - rho * x + 1, atol=1e-15)
    assert found.slope == 2 * rho


@pytest.mark.parametrize(
    ("name", "off"),
    [("hinge", "1"), ("squared_hinge", "1"), ("exponential", "2.553"), ("zero_one", "1"), ("ramp", "1")],
)
def test_common_losses_that_are_not_linear_odd_are_refused(name, off):
    with pytest.raises(InputError, match=rf"'{name}'.*2.*{off}"):
        loss(name)


@given(st.floats(0.01, 100), st.floats(0, 3), st.floats(0, 3))
def test_any_even_part_and_slope_is_accepted(slope, bend, power):
    found = require_linear_odd(lambda x: bend * np.abs(x) ** power - slope / 2 * x)
    assert found == pytest.approx(slope, rel=1e-6, abs=1e-7)


@given(st.floats(1e-3, 1.0))
def test_an_odd_part_that_bends_is_refused(bend):
    with pytest.raises(InputError, match="not linear-odd"):
        require_linear_odd(lambda x: -x - bend * np.tanh(x))
