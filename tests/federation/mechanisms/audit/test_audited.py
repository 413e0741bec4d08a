"""Every mechanism's claim survives an audit that refutes the same claim of its broken twins."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from federation.contract.randomness import NoiseBits
from federation.mechanisms.audits import CONFIDENCE, Audited, Twin, Verdict, audit, audited_mechanisms, judge
from federation.mechanisms.noise import discrete as discrete_laplace
from federation.numerics.rows import Floats

MECHANISMS = audited_mechanisms()
RUNS = 200_000


@pytest.fixture(scope="module", params=sorted(MECHANISMS))
def verdict(request: pytest.FixtureRequest) -> Verdict:
    return judge(MECHANISMS[request.param], runs=RUNS)


def test_the_claim_stands_and_is_nearly_reached(verdict: Verdict) -> None:
    claim = verdict.audited.epsilon
    assert claim / 2 < verdict.result.lower_bound <= claim
    assert verdict.result.passed


def test_every_broken_twin_is_refuted(verdict: Verdict) -> None:
    assert len(verdict.twins) >= 2
    for mistake, result in verdict.twins:
        assert result.lower_bound > verdict.audited.epsilon, mistake
    assert verdict.as_expected


def test_the_catalogue_covers_every_mechanism_and_mistake() -> None:
    families = {name.removesuffix("_1d").removesuffix("_2d").removesuffix("_3d") for name in MECHANISMS}
    assert families == {"discrete_laplace", "l2_gamma", "discrete_gaussian", "lattice_laplace", "count_gaussian"}
    mistakes = {twin.mistake for twin in MECHANISMS["l2_gamma_3d"].twins}
    assert {"half the noise", "radius Gamma(1)", "radius Gamma(2)", "coarse rounding not charged"} <= mistakes
    assert "sensitivity of one coordinate only" in {twin.mistake for twin in MECHANISMS["discrete_gaussian_3d"].twins}
    for name in ("lattice_laplace", "count_gaussian"):
        assert "sensitivity of one class only" in {twin.mistake for twin in MECHANISMS[name].twins}


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_equal_inputs_show_nothing(name: str) -> None:
    case = MECHANISMS[name]
    for side in (0, 1):
        first, second = (NoiseBits(9, f"null {name} {side}", copy) for copy in (0, 1))
        result = audit(
            lambda n, side=side, bits=first: case.sample(side, bits, n),
            lambda n, side=side, bits=second: case.sample(side, bits, n),
            case.statistic,
            epsilon=case.epsilon,
            runs=RUNS,
            confidence=CONFIDENCE,
        )
        assert result.lower_bound < 0.02


def test_both_sides_of_every_audit_have_noise_of_their_own() -> None:
    """Bounds are for independent runs, and common noise would be no news of either side."""
    drawn: list[tuple[int, float]] = []

    def sample(side: int, bits: NoiseBits, runs: int) -> Floats:
        drawn.append((side, *discrete_laplace.sample_discrete_laplace(bits, 10**9, 1).tolist()))
        return np.zeros((runs, 1))

    def statistic(outputs: Floats) -> Floats:
        return outputs[:, 0]

    judge(Audited("none", 1.0, 0.0, sample, statistic, (Twin("none", sample, statistic),)), runs=1000)
    assert [side for side, _ in drawn] == [0, 1, 0, 1]
    assert len(set(drawn)) == len({noise for _, noise in drawn}) == 4


def test_a_verdict_depends_on_the_seed_only() -> None:
    case = MECHANISMS["discrete_laplace"]
    first, again, other = (judge(case, runs=20_000, seed=seed) for seed in (1, 1, 2))
    assert first.result == again.result
    assert first.result.lower_bound != other.result.lower_bound


@pytest.mark.parametrize("name", ["discrete_laplace", "l2_gamma_2d", "l2_gamma_3d"])
def test_outputs_tell_the_distance_of_the_neighbours_at_most(name: str) -> None:
    """|x - v1| - |x - v0| is the loss where the noise has density e^-|x|: 1 behind one of them, -1 behind the other."""
    case = MECHANISMS[name]
    told = case.statistic(np.concatenate([case.sample(side, NoiseBits(3, "told", side), 20_000) for side in (0, 1)]))
    assert [told.min(), told.max()] == pytest.approx([-1, 1], abs=1e-3)


@pytest.mark.parametrize("shape", [1, 2])
def test_a_twin_with_a_wrong_radius_is_judged_by_its_own_likelihood_ratio(shape: int) -> None:
    """Nothing shows the mistake better: the density at distance r is that of the radius over r²."""
    [twin] = [twin for twin in MECHANISMS["l2_gamma_3d"].twins if twin.mistake == f"radius Gamma({shape})"]
    outputs = np.random.default_rng(1).normal(size=(50, 3))
    distances = (np.linalg.norm(outputs - value, axis=1) for value in ([0.0, 0.0, 0.0], [1.0, 0.0, 0.0]))
    here, there = (stats.gamma(shape).logpdf(r) - 2 * np.log(r) for r in distances)
    np.testing.assert_allclose(twin.statistic(outputs), here - there, rtol=1e-9)


def test_a_twin_with_a_wrong_radius_has_the_neighbours_that_it_is_calibrated_for() -> None:
    """Farther apart any noise is refuted, also one of the right radius."""
    twins = [twin for one in MECHANISMS.values() for twin in one.twins if twin.mistake.startswith("radius")]
    assert twins
    for twin in twins:
        first, second = (twin.sample(side, NoiseBits(1, "the same"), 5) for side in (0, 1))
        np.testing.assert_allclose(np.linalg.norm(first - second, axis=1), 1.0)
