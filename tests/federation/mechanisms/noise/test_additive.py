"""Calibrated releases: the accountants confirm the claim, values stay on the grid, bad input is refused."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.discrete_laws import exact_delta, laplace_law
from support.refusals import refused

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Assumption, Check, Unit
from federation.contract.randomness import NoiseBits
from federation.mechanisms.accounting.composition import GaussianCurve, compose
from federation.mechanisms.noise import discrete, gaussian
from federation.mechanisms.noise.additive import calibrate, calibrate_laplace

KINDS = [("pure", 1, "discrete_laplace"), ("pure", 4, "l2_gamma"), ("gaussian", 1, "discrete_gaussian")]


@given(
    st.sampled_from(["pure", "gaussian"]),
    st.floats(1e-6, 1e6),
    st.integers(1, 2000),
    st.floats(0.01, 100),
    st.floats(-40, -3),
)
@settings(derandomize=True)
def test_noise_is_calibrated_within_a_thousandth(noise, sensitivity, dimension, epsilon, log_delta) -> None:
    delta = math.exp(log_delta)
    mechanism = calibrate(noise, sensitivity=sensitivity, dimension=dimension, epsilon=epsilon, delta=delta)
    mantissa, _ = math.frexp(mechanism.step)
    assert mantissa == 0.5  # a power of two
    charged = mechanism.parameters["charged_sensitivity"]
    scale = mechanism.parameters["scale"]
    # The integers move by at most this much: |v - v'| <= S/step + sqrt(D), and whole steps in one dimension.
    bound = sensitivity / mechanism.step + math.sqrt(dimension)
    if mechanism.name == "discrete_laplace":
        bound = math.floor(bound)
    assert charged / mechanism.step >= bound
    ideal = sensitivity / (epsilon if noise == "pure" else gaussian.mu(epsilon, delta))
    assert ideal < scale < ideal * 1.001
    assert mechanism.delta_at(epsilon) <= (delta if noise == "gaussian" else 0.0)
    if noise == "gaussian":
        sigma = mechanism.parameters["grid_scale"]
        assert sigma >= 2**16
        assert mechanism.gaussian_mu == charged / scale
        assert discrete.delta_bound(epsilon, charged / scale, dimension, sigma) <= delta
        assert gaussian.delta(epsilon, charged / scale) <= delta
    else:
        assert (mechanism.delta, mechanism.gaussian_mu) == (0, None)
        assert charged / scale <= epsilon * (1 + 1e-15)


@given(st.floats(1e-6, 1e6), st.integers(1, 2000), st.floats(0.01, 100))
@settings(derandomize=True)
def test_laplace_noise_is_calibrated_within_a_thousandth(sensitivity: float, dimension: int, epsilon: float) -> None:
    mechanism = calibrate_laplace(l1_sensitivity=sensitivity, dimension=dimension, epsilon=epsilon)
    charged, scale = mechanism.parameters["charged_sensitivity"], mechanism.parameters["scale"]
    # |v - v'|_1 is whole on the grid, and rounding moves every coordinate by a step at most.
    assert charged / mechanism.step == math.floor(sensitivity / mechanism.step) + dimension
    assert sensitivity / epsilon < scale < 1.001 * sensitivity / epsilon
    assert discrete.epsilon(round(charged / mechanism.step), mechanism.grid_scale) <= epsilon
    assert mechanism.delta_at(epsilon) == mechanism.delta == 0.0


ROUNDS = [("pure", 1), ("pure", 4), ("gaussian", 1), ("gaussian", 30)]


@pytest.mark.parametrize(("noise", "dimension"), ROUNDS)
@pytest.mark.parametrize("rounds", [1, 2, 3, 10, 1000])
def test_all_rounds_spend_what_as_many_releases_of_their_noise_spend_together(noise, dimension, rounds) -> None:
    """Against the composition of single releases, which knows nothing of rounds."""
    known = {"sensitivity": 0.3, "dimension": dimension, "epsilon": 0.7, "delta": 1e-6}
    found = calibrate(noise, **known, rounds=rounds)
    assert (found == calibrate(noise, **known)) == (rounds == 1)
    assert ("rounds" in found.parameters) == (rounds > 1)
    each = 0.7 / rounds
    single = replace(found, rounds=1, epsilon=each if noise == "pure" else 0.7)
    if noise == "pure":
        assert found.charged / found.scale <= each < 1.001 * found.charged / found.scale
    once, together = (one.guarantee(Unit.PARTY, Adjacency.REPLACE) for one in (single, found))
    epsilon, delta = compose([once] * rounds, together.delta)
    assert epsilon == pytest.approx(0.7, rel=1e-3)
    assert epsilon <= 0.7 * (1 + 1e-9)
    assert delta == together.delta == (1e-6 if noise == "gaussian" else 0.0)
    assert compose([together], together.delta)[0] <= 0.7 * (1 + 1e-9)
    if noise == "gaussian":
        assert found.gaussian_mu == pytest.approx(math.sqrt(rounds) * found.charged / found.scale, rel=1e-12)
        assert found.gaussian_mu >= math.sqrt(rounds) * found.charged / found.scale
        curves = GaussianCurve.of([once] * rounds), GaussianCurve.of([together])
        assert curves[0].grid == curves[1].grid
        for at in (0.1, 0.7, 2.0):
            assert found.delta_at(at) == pytest.approx(curves[0].delta(at), rel=1e-9)


@pytest.mark.parametrize("rounds", [2, 3, 10])
def test_the_delta_of_pure_rounds_is_no_less_than_that_of_their_laplace_losses(rounds: int) -> None:
    """Against the losses of so many independent Laplace noises, which the discrete ones are next to."""
    found = calibrate("pure", sensitivity=1.0, dimension=1, epsilon=1.0, rounds=rounds)
    draws = np.random.default_rng(1).laplace(scale=found.scale, size=(200_000, rounds))
    total = ((np.abs(draws - found.charged) - np.abs(draws)) / found.scale).sum(axis=1)
    assert np.abs(total).max() <= 1 + 1e-9
    for at in (0.0, 0.3, 0.9):
        exact = np.maximum(0.0, -np.expm1(at - total)).mean()
        assert exact <= found.delta_at(at) + 0.005
    assert found.delta_at(1.0) == 0.0
    # Kairouz, Oh, Viswanath 2015: of all epsilon-private releases, randomised response has the largest delta.
    kept = math.e / (1 + math.e)
    for at in (0.0, 0.3, 0.9):
        assert found.delta_at(at) == pytest.approx(kept - math.exp(at) * (1 - kept), rel=1e-12)


def laplace_log_density(x):
    return stats.laplace.logpdf(x).sum(axis=1)


@pytest.mark.parametrize(
    ("mechanism", "log_density"),
    [
        (calibrate("pure", sensitivity=1.0, dimension=4, epsilon=0.8), lambda x: -np.sqrt(np.square(x).sum(axis=1))),
        (calibrate("pure", sensitivity=1.0, dimension=1, epsilon=0.8), laplace_log_density),
        (calibrate_laplace(l1_sensitivity=1.0, dimension=3, epsilon=0.8), laplace_log_density),
        (
            calibrate("gaussian", sensitivity=1.0, dimension=3, epsilon=0.8, delta=1e-5),
            lambda x: stats.norm.logpdf(x).sum(axis=1),
        ),
    ],
    ids=lambda given: getattr(given, "name", ""),
)
def test_the_likelihood_ratio_is_that_of_the_continuous_law(mechanism, log_density) -> None:
    random = np.random.default_rng(2)
    released, (here, there) = (random.normal(size=(count, mechanism.dimension)) for count in (5, 2))
    far, near = (log_density((released - value) / mechanism.scale) for value in (there, here))
    assert mechanism.log_ratio(released, here, there) == pytest.approx(far - near, rel=1e-9)


def test_every_draw_may_have_a_value_of_its_own() -> None:
    mechanism = calibrate("gaussian", sensitivity=1.0, dimension=2, epsilon=1.0, delta=1e-6)
    values = np.array([[0.0, 0.0], [1000.0, 0.0], [0.0, -1000.0]])
    own = mechanism.release(values, NoiseBits(1, "draws"), 3)
    np.testing.assert_allclose(own - mechanism.release(values[0], NoiseBits(1, "draws"), 3), values, atol=2e-3)
    refused(None, mechanism.release, values[:2], NoiseBits(1, "draws"), 3)
    for draws in (-1, 1.5, True):
        refused("draws", mechanism.release, values[0], NoiseBits(1, "draws"), draws)


def test_no_move_of_laplace_noise_leaks_more_than_one_of_a_single_coordinate() -> None:
    """Against the exact hockey-stick divergence of two coordinates that share the move, on a small grid."""
    _, law = laplace_law(3)
    for epsilon in (0.0, 0.3, 1.0, 1.6):
        assert 0 < exact_delta(epsilon, (law, 2), (law, 3)) < discrete.delta(epsilon, 5, 3)


def test_delta_at_agrees_with_the_accountants() -> None:
    laplace = calibrate("pure", sensitivity=1.0, dimension=1, epsilon=2.0)
    steps = round(laplace.parameters["charged_sensitivity"] / laplace.step)
    expected = discrete.delta(0.7, steps, laplace.parameters["grid_scale"])
    assert laplace.delta_at(0.7) == expected == pytest.approx(-math.expm1((0.7 - 2.0) / 2), rel=1e-4)
    normal = calibrate("gaussian", sensitivity=1.0, dimension=5, epsilon=2.0, delta=1e-5)
    assert normal.delta_at(1.0) == pytest.approx(float(gaussian.delta(1.0, normal.gaussian_mu)), rel=1e-5)


@pytest.mark.parametrize(("noise", "dimension", "name"), KINDS)
def test_releases_lie_on_the_grid_and_repeat_with_the_key(noise: str, dimension: int, name: str) -> None:
    mechanism = calibrate(noise, sensitivity=0.3, dimension=dimension, epsilon=0.7, delta=1e-5)
    assert mechanism.name == name
    value = np.linspace(-1, 1, dimension)
    first, again = (mechanism.release(value, NoiseBits(1, "release"), 50) for _ in range(2))
    assert first.shape == (50, dimension)
    assert np.array_equal(first, again)
    integers = first / mechanism.step
    assert np.array_equal(integers, np.rint(integers))
    assert len(np.unique(first[:, 0])) > 45


@pytest.mark.parametrize(("noise", "dimension", "name"), [*KINDS, ("gaussian", 7, "discrete_gaussian")])
def test_the_expected_norm_is_the_mean_norm(noise: str, dimension: int, name: str) -> None:
    mechanism = calibrate(noise, sensitivity=2.0, dimension=dimension, epsilon=0.5, delta=1e-5)
    released = mechanism.release(np.zeros(dimension), NoiseBits(2, name), 40_000)
    norms = np.linalg.norm(released, axis=1)
    assert abs(norms.mean() / mechanism.expected_noise_norm() - 1) < 5 * norms.std() / norms.mean() / 200
    assert mechanism.variance() == pytest.approx(np.square(norms).mean() / dimension, rel=0.05)


def test_laplace_noise_has_independent_coordinates_of_the_calibrated_law() -> None:
    mechanism, value = calibrate_laplace(l1_sensitivity=3.0, dimension=4, epsilon=0.5), np.array([1.0, -1.0, 0.0, 2.0])
    noise = mechanism.release(value, NoiseBits(6, "laplace"), 40_000)
    noise -= np.rint(value / mechanism.step) * mechanism.step
    assert stats.kstest(noise.ravel() / mechanism.parameters["scale"], "laplace").pvalue > 1e-3
    assert np.abs(np.corrcoef(noise.T) - np.eye(4)).max() < 0.02
    norms = np.linalg.norm(noise, axis=1)
    assert abs(norms.mean() / mechanism.expected_noise_norm() - 1) < 5 * norms.std() / norms.mean() / 200


def test_noise_has_the_calibrated_law() -> None:
    bits = NoiseBits(3, "law")
    normal = calibrate("gaussian", sensitivity=1.0, dimension=3, epsilon=1.0, delta=1e-6)
    draws = normal.release(np.array([5.0, 0.0, -1.0]), bits, 40_000) - [5.0, 0.0, -1.0]
    assert stats.kstest(draws.ravel() / normal.parameters["scale"], "norm").pvalue > 1e-3
    l2 = calibrate("pure", sensitivity=1.0, dimension=3, epsilon=1.0)
    norms = np.linalg.norm(l2.release(np.zeros(3), bits, 40_000), axis=1)
    assert stats.kstest(norms, stats.gamma(3, scale=l2.parameters["scale"]).cdf).pvalue > 1e-3


@pytest.mark.parametrize("dimension", [1, 6])
def test_rounding_stays_within_the_charge(dimension: int) -> None:
    mechanism = calibrate("pure", sensitivity=1.0, dimension=dimension, epsilon=1.0)
    # The two halves of a step round apart, as far as rounding can move a pair at distance 1.
    shifts = np.linspace(-mechanism.step, mechanism.step, 41)[:, None]
    here = np.full(dimension, 0.5 * mechanism.step) + np.arange(dimension) + shifts
    there = here + 1 / math.sqrt(dimension)
    lengths = np.linalg.norm(np.rint(there / mechanism.step) - np.rint(here / mechanism.step), axis=1)
    assert lengths.max() <= mechanism.parameters["charged_sensitivity"] / mechanism.step


@pytest.mark.parametrize(("noise", "dimension", "name"), KINDS)
def test_the_guarantee_lists_every_assumption(noise: str, dimension: int, name: str) -> None:
    why = Assumption("one party moves the sum by at most 1", Check.ENFORCED)
    mechanism = calibrate(noise, sensitivity=1.0, dimension=dimension, epsilon=1.0, delta=1e-6)
    guarantee = mechanism.guarantee(Unit.PARTY, Adjacency.REPLACE, (why,))
    assert (guarantee.epsilon, guarantee.delta) == (1.0, 1e-6 if noise == "gaussian" else 0.0)
    assert guarantee.gaussian_mu == mechanism.gaussian_mu
    assert guarantee.assumptions[0] == why
    assert "rounded to multiples" in guarantee.assumptions[1].text
    floating = [a for a in guarantee.assumptions if "double precision" in a.text]
    assert [a.check for a in floating] == ([Check.DECLARED] if name == "l2_gamma" else [])
    assert guarantee.parameters["charged_sensitivity"] > 1.0
    assert guarantee.to_dict()["parameters"]["step"] == mechanism.step


ANY = {"noise": "gaussian", "sensitivity": 1.0, "dimension": 3, "epsilon": 1.0, "delta": 1e-6}
LAPLACE = {"l1_sensitivity": 1.0, "dimension": 3, "epsilon": 1.0}


@pytest.mark.parametrize(
    ("made", "known", "change", "message"),
    [
        (calibrate, ANY, {"noise": "laplace"}, "noise"),
        *((calibrate, ANY, {"sensitivity": sensitivity}, "sensitivity") for sensitivity in (0.0, math.inf)),
        *((calibrate, ANY, {"epsilon": epsilon}, "epsilon") for epsilon in (0.0, -1.0, math.nan)),
        (calibrate, ANY, {"dimension": 0}, "dimension"),
        *((calibrate, ANY, {"delta": delta}, "delta") for delta in (0.0, 1.0)),
        *((calibrate, ANY, {"rounds": rounds}, "rounds") for rounds in (0, 1.5, True, -1)),
        (calibrate, ANY, {"epsilon": 1e-12, "delta": 1e-12}, None),
        (calibrate, ANY, {"noise": "pure", "epsilon": 1e-9}, None),
        (calibrate, ANY, {"sensitivity": 1e-280}, None),
        *((calibrate_laplace, LAPLACE, {"l1_sensitivity": one}, "sensitivity") for one in (-1.0, math.nan)),
        *((calibrate_laplace, LAPLACE, {"dimension": dimension}, "dimension") for dimension in (0, 1.5)),
        (calibrate_laplace, LAPLACE, {"epsilon": 0.0}, "epsilon"),
    ],
)
def test_impossible_parameters_are_refused(made, known: dict, change: dict, message: str | None) -> None:
    with pytest.raises(InputError, match=message):
        made(**known | change)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        *((value, "finite") for value in ([0.0, math.nan], [math.inf, 0.0])),
        ([0.0], "shape"),
        *(([value, 0.0], None) for value in (1e13, 1e308)),
    ],
)
def test_values_that_the_grid_cannot_hold_are_refused(value: list[float], message: str | None) -> None:
    mechanism = calibrate("gaussian", sensitivity=1.0, dimension=2, epsilon=1.0, delta=1e-6)
    refused(message, mechanism.release, np.array(value), NoiseBits(1, "x"))
    end = 2.0**52 * mechanism.step  # which values reach
    assert mechanism.rounded(np.array([-end, end])).tolist() == [-(2.0**52), 2.0**52]
    refused(None, mechanism.rounded, np.array([end + mechanism.step, 0.0]))


def test_parties_of_one_release_calibrate_once_and_are_refused_as_before(monkeypatch):
    same = {"sensitivity": 0.7315, "epsilon": 0.613, "delta": 1e-5}
    known = calibrate("gaussian", dimension=1, **same)
    searched = discrete.delta_bound
    calls = []
    monkeypatch.setattr(discrete, "delta_bound", lambda *given: calls.append(given) or searched(*given))
    assert calibrate("gaussian", dimension=1, **same) == known
    assert not calls
    with pytest.raises(InputError, match="dimension"):
        calibrate("gaussian", dimension=True, **same)
    assert calibrate("gaussian", dimension=2, **same).scale > known.scale
    assert calls
