"""The auditor itself: its bounds, its confidence on null data and at a known epsilon, its refusals.

Every mechanism's claim survives an audit that refutes the same claim of its broken twins.
"""

import math

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy import stats

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms import audits
from federation.mechanisms.accounting.composition import GaussianCurve
from federation.mechanisms.noise import discrete, gaussian
from federation.numerics.rows import Floats


def identity(outputs: np.ndarray) -> np.ndarray:
    return outputs


def randomised_response(rng: np.random.Generator, epsilon: float, runs: int, side: int) -> np.ndarray:
    """Tells the true bit with odds e^epsilon : 1."""
    truth = rng.random(runs) < 1 / (1 + math.exp(-epsilon))
    return np.where(truth, side, 1 - side).astype(float)


@given(st.integers(0, 500), st.integers(0, 500), st.floats(0.5, 0.999))
@example(0, 500, 0.95)
@example(1, 499, 0.95)
@example(499, 1, 0.95)
@example(500, 0, 0.95)
@settings(derandomize=True)
def test_probabilities_have_clopper_pearson_bounds(likely: int, unlikely: int, confidence: float) -> None:
    ours = audits._probabilities(np.array(likely), np.array(unlikely), 500, 500, confidence)
    low = stats.binomtest(likely, 500).proportion_ci(confidence).low  # two-sided: half the error in each tail
    high = stats.binomtest(unlikely, 500).proportion_ci(confidence).high
    assert [float(bound) for bound in ours] == pytest.approx([low, high], rel=1e-6, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("confidence", "most"), [(0.95, 20), (0.5, 350)])
def test_false_alarms_on_null_data_are_rarer_than_promised(confidence: float, most: int) -> None:
    """P = Q, 1000 audits. Two separate bounds make alarms much rarer than the promised 50 and 500.

    Choosing the event on the data that test it would give above 500 at confidence 0.5.
    """
    rng = np.random.default_rng(0)
    pairs = ((rng.normal(size=400), rng.normal(size=400)) for _ in range(1000))
    assert sum(audits.epsilon_lower_bound(*pair, confidence=confidence)[0] > 0 for pair in pairs) <= most


@pytest.mark.slow
def test_the_bound_exceeds_a_true_epsilon_as_rarely_as_promised() -> None:
    rng, epsilon = np.random.default_rng(1), 1.0
    pairs = ([randomised_response(rng, epsilon, 1000, side) for side in (1, 0)] for _ in range(1000))
    alarms = sum(audits.epsilon_lower_bound(*pair, confidence=0.9)[0] > epsilon for pair in pairs)
    assert alarms <= 128  # 100 +- 28 (three standard deviations) would be exact; Clopper-Pearson is conservative


def test_the_bound_exceeds_a_true_delta_as_rarely_as_promised() -> None:
    rng = np.random.default_rng(7)
    truth = 0.6 - math.exp(0.2) * 0.4  # randomised response that tells the bit six times in ten
    pairs = ([(rng.random(500) < share).astype(float) for share in (0.6, 0.4)] for _ in range(400))
    alarms = sum(audits.delta_lower_bound(*pair, epsilon=0.2, confidence=0.9)[0] > truth for pair in pairs)
    assert alarms <= 58  # 40 + 3 standard deviations


def test_power_at_a_known_epsilon() -> None:
    rng = np.random.default_rng(2)
    sides = [lambda n, side=side: randomised_response(rng, 2.0, n, side) for side in (1, 0)]
    result = audits.audit(*sides, identity, epsilon=1.5, runs=50_000)
    assert 1.8 < result.lower_bound <= 2.0
    assert not result.passed
    assert (result.runs, result.confidence, result.claimed) == (50_000, 0.99, 1.5)
    assert ">= 1" in result.event or "<= 0" in result.event


def test_delta_is_subtracted_and_both_directions_are_searched() -> None:
    # Q never shows what P shows with probability 0.02: no finite epsilon at delta 0, nothing at delta 0.05.
    rng = np.random.default_rng(3)
    p, q = (rng.random(50_000) < 0.02).astype(float), np.zeros(50_000)
    assert audits.epsilon_lower_bound(p, q)[0] > 3
    assert audits.epsilon_lower_bound(p, q, delta=0.05)[0] == 0
    p, q = rng.normal(size=20_000), rng.normal(1.0, size=20_000)
    forward, backward = audits.epsilon_lower_bound(p, q), audits.epsilon_lower_bound(q, p)
    assert forward[0] == backward[0] > 1
    assert forward[1] != backward[1]


MU = gaussian.mu(1.0, 1e-6)


def curve(epsilon: float) -> float:
    """Of the noise that claims (1, 1e-6)."""
    return float(gaussian.delta(epsilon, MU))


def curve_bound(p: np.ndarray, q: np.ndarray, **changes: float) -> tuple[audits.CurvePoint, str]:
    return audits.curve_point(p, q, curve, **{"epsilon": 1.0, "delta": 1e-6, "confidence": 0.9} | changes)


@pytest.mark.parametrize(
    ("measure", "arguments", "told"),
    [
        *(
            (audits.epsilon_lower_bound, {"p": bad}, None)
            for bad in (np.zeros(3), np.zeros((10, 2)), np.array([0.0, 1.0, math.nan, 2.0]), np.zeros(0))
        ),
        *((audits.epsilon_lower_bound, {"confidence": confidence}, None) for confidence in (1.0, 0.0)),
        *((audits.epsilon_lower_bound, {"delta": delta}, None) for delta in (1.0, -0.1)),
        *((audits.delta_lower_bound, {"epsilon": epsilon}, None) for epsilon in (-1.0, math.inf)),
        (audits.delta_lower_bound, {"epsilon": 1.0, "confidence": 1.0}, None),
        *((curve_bound, {name: 0.0}, name) for name in ("epsilon", "delta")),
        *((curve_bound, {name: 1.0}, name) for name in ("delta", "confidence")),
    ],
)
def test_unusable_samples_and_impossible_claims_are_refused(measure, arguments: dict, told: str | None) -> None:
    assert audits.epsilon_lower_bound(np.zeros(4), np.ones(4))[0] == 0  # four runs are enough to show nothing
    with pytest.raises(InputError, match=told):
        measure(**{"p": np.zeros(10), "q": np.zeros(10)} | arguments)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        *(({"runs": runs}, "runs") for runs in (3, 4.5, -1)),
        *(({"epsilon": epsilon}, "epsilon") for epsilon in (-0.1, math.nan, math.inf)),
    ],
)
def test_an_impossible_audit_is_refused_before_it_draws(change: dict, told: str) -> None:
    with pytest.raises(InputError, match=told):
        audits.audit(pytest.fail, pytest.fail, identity, **{"epsilon": 1.0, "runs": 1000} | change)


def test_power_at_a_known_delta_and_for_rare_events_that_never_occur_elsewhere() -> None:
    rng = np.random.default_rng(5)
    p, q = rng.normal(1.0, size=200_000), rng.normal(size=200_000)
    exact = stats.norm.cdf(0.0) - math.exp(0.5) * stats.norm.cdf(-1.0)  # of N(1, 1) and N(0, 1) at epsilon 0.5
    bound, event = audits.delta_lower_bound(p, q, epsilon=0.5)
    assert 0.9 * exact < bound <= exact
    assert "likelier under P" in event or "likelier under Q" in event
    p, q = (np.random.default_rng(6).random(200_000) < 2e-3).astype(float), np.zeros(200_000)
    assert 1e-3 < audits.delta_lower_bound(p, q, epsilon=1.0)[0] <= 2e-3
    assert audits.delta_lower_bound(q, p, epsilon=1.0)[0] == audits.delta_lower_bound(p, q, epsilon=1.0)[0]


def on_the_curve(p: np.ndarray, q: np.ndarray, **changes: object) -> audits.AuditResult:
    known = {"epsilon": 1.0, "delta": 1e-6, "runs": len(p), "confidence": 0.999, "curve": curve}
    return audits.audit(lambda _: p, lambda _: q, identity, **known | changes)


@given(st.floats(0.02, 0.6), st.floats(0.0, 1.0), st.floats(0.05, 1.5), st.floats(0.5, 0.99))
@settings(derandomize=True)
def test_a_claim_that_just_holds_is_exceeded_as_rarely_as_promised(unlikely, epsilon, mu, confidence) -> None:
    """By the joint law of both counts, for an event that has all of the claimed delta; nothing is simulated."""
    runs, delta = 400, float(gaussian.delta(epsilon, mu))
    likely = min(1.0, math.exp(epsilon) * unlikely + delta)
    if likely == 1.0:
        delta = 1.0 - math.exp(epsilon) * unlikely
        assume(delta > 0)
    hits = np.arange(runs + 1)
    low, high = audits._probabilities(hits, hits, runs, runs, confidence)
    alarms = low[:, None] - math.exp(epsilon) * high > delta
    law = stats.binom.pmf(hits, runs, likely)[:, None] * stats.binom.pmf(hits, runs, unlikely)
    assert law[alarms].sum() <= 1 - confidence


def test_the_first_half_chooses_and_the_second_is_tested() -> None:
    rng = np.random.default_rng(8)
    first, other = ((rng.normal(k * MU, 1, 4000), rng.normal(0, 1, 4000)) for k in (1, 3))
    second = [(rng.normal(k, 1, 4000), rng.normal(0, 1, 4000)) for k in (0.0, 1.0)]
    found = [on_the_curve(*(np.append(*both) for both in zip(first, tested, strict=True))) for tested in second]
    assert (found[0].point.epsilon, found[0].event) == (found[1].point.epsilon, found[1].event)
    assert found[0].passed
    assert not found[1].passed
    elsewhere = on_the_curve(*(np.append(*both) for both in zip(other, second[1], strict=True)))
    assert elsewhere.event != found[1].event


def test_what_is_shown_at_the_point_is_that_of_its_counts() -> None:
    rng = np.random.default_rng(9)
    p, q = ((rng.random(5000) < part).astype(float) for part in (0.55, 0.4))
    point, event = curve_bound(p, q, confidence=0.99)
    likely, unlikely = (p[2500:], q[2500:]) if event.endswith("P") else (1 - q[2500:], 1 - p[2500:])
    low = stats.binomtest(int(likely.sum()), 2500).proportion_ci(0.99).low
    high = stats.binomtest(int(unlikely.sum()), 2500).proportion_ci(0.99).high
    assert point.lower_bound == pytest.approx(low - math.exp(point.epsilon) * high, rel=1e-6)
    assert point.claimed == curve(point.epsilon)


@pytest.mark.parametrize(("noise", "low", "high"), [(1.0, 0.8, 1.0), (0.5, 1.85, 2.15), (0.7, 1.15, 1.5)])
def test_gaussian_noise_at_a_tiny_delta_is_told_from_less(noise: float, low: float, high: float) -> None:
    """At (1, 1e-6) and with 100,000 runs: the whole, a half, and seven tenths of the noise."""
    rng = np.random.default_rng(10)
    result = on_the_curve(rng.normal(MU / noise, 1, 100_000), rng.normal(0, 1, 100_000))
    assert low < result.lower_bound <= high
    assert result.passed == (noise == 1.0)
    assert result.point.exceeded != result.passed


def test_noise_that_is_clipped_gives_itself_away_in_the_tail() -> None:
    rng = np.random.default_rng(11)
    p, q = (np.clip(rng.normal(0, 1, 200_000), -3, 3) + mean for mean in (MU, 0.0))
    result = on_the_curve(p, q)
    assert not result.passed
    assert audits.epsilon_lower_bound(p, q, delta=1e-6)[0] > 1  # which a point of the curve must not do worse than


def test_a_stated_claim_that_is_less_than_the_curve_is_tested_too() -> None:
    """As where an epsilon of a quarter is stated beside noise for the whole."""
    rng = np.random.default_rng(12)
    result = on_the_curve(rng.normal(MU, 1, 100_000), rng.normal(0, 1, 100_000), epsilon=0.25)
    assert not result.passed
    assert (result.point.epsilon, result.point.claimed) == (0.25, 1e-6)


@given(st.floats(0.01, 0.99), st.floats(0.0, 1.0), st.sampled_from([1e-9, 1e-6, 1e-2]), st.floats(0.1, 4.0))
@settings(derandomize=True)
def test_an_equivalent_epsilon_is_that_of_gaussian_noise(fainter, at, delta, epsilon) -> None:
    own = gaussian.mu(epsilon, delta)
    claimed, shown = (float(gaussian.delta(at * epsilon, mu)) for mu in (own, fainter * own))
    assume(shown > 1e-11)
    assume(claimed < 1 - 1e-11)
    bound = audits.equivalent_epsilon(audits.CurvePoint(at * epsilon, claimed, shown), epsilon=epsilon, delta=delta)
    assert bound == pytest.approx(gaussian.epsilon(delta, fainter * own), rel=1e-4, abs=1e-6)
    assert bound <= epsilon
    swapped = audits.CurvePoint(at * epsilon, shown, claimed)
    assert audits.equivalent_epsilon(swapped, epsilon=epsilon, delta=delta) > epsilon


def test_claims_of_huge_epsilons_are_tested_where_they_can_be() -> None:
    rng, mu = np.random.default_rng(13), gaussian.mu(1000.0, 1e-6)
    samples = [rng.normal(mean, 1, 10_000) for mean in (mu, 0.0)]
    result = on_the_curve(*samples, epsilon=1000.0, curve=GaussianCurve(mu).delta)
    assert result.point.claimed == 1.0
    assert 0 < result.lower_bound < gaussian.epsilon(1e-6, gaussian.mu(0.0, 0.9999))  # by 5,000 runs of either side


@pytest.mark.parametrize("claimed", [0.0, 1e-300, 0.5, 1.0])
def test_points_of_any_claim_have_an_equivalent(claimed: float) -> None:
    known = {"epsilon": 1.0, "delta": 1e-6}
    assert audits.equivalent_epsilon(audits.CurvePoint(0.0, claimed, 0.0), **known) == 0
    bound = audits.equivalent_epsilon(audits.CurvePoint(0.0, claimed, 0.9), **known)
    assert math.isfinite(bound)
    assert (bound > 1) == (claimed < 0.9)


MECHANISMS = audits.audited_mechanisms()
RUNS = 100_000  # the weakest bound found is 0.71 of the claim, and 1.16 of it for a twin


@pytest.fixture(scope="module", params=sorted(MECHANISMS))
def verdict(request: pytest.FixtureRequest) -> audits.Verdict:
    return audits.judge(MECHANISMS[request.param], runs=RUNS)


def test_the_claim_stands_is_nearly_reached_and_every_broken_twin_is_refuted(verdict: audits.Verdict) -> None:
    claim = verdict.audited.epsilon
    assert claim / 2 < verdict.result.lower_bound <= claim
    assert verdict.result.passed
    assert len(verdict.twins) >= 2
    for mistake, result in verdict.twins:
        assert result.lower_bound > claim, mistake
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
    case, known = MECHANISMS[name], {"runs": RUNS, "confidence": audits.CONFIDENCE}
    for side in (0, 1):
        bits = [NoiseBits(9, f"null {name} {side}", copy) for copy in (0, 1)]
        copies = [lambda n, side=side, own=own: case.sample(side, own, n) for own in bits]
        assert audits.audit(*copies, case.statistic, epsilon=case.epsilon, **known).lower_bound < 0.02


def test_both_sides_of_every_audit_have_noise_of_their_own() -> None:
    """Bounds are for independent runs, and common noise would be no news of either side."""
    drawn: list[tuple[int, float]] = []

    def sample(side: int, bits: NoiseBits, runs: int) -> Floats:
        drawn.append((side, *discrete.sample_discrete_laplace(bits, 10**9, 1).tolist()))
        return np.zeros((runs, 1))

    def statistic(outputs: Floats) -> Floats:
        return outputs[:, 0]

    audits.judge(
        audits.Audited("none", 1.0, 0.0, sample, statistic, (audits.Twin("none", sample, statistic),)), runs=1000
    )
    assert [side for side, _ in drawn] == [0, 1, 0, 1]
    assert len(set(drawn)) == len({noise for _, noise in drawn}) == 4


def test_a_verdict_depends_on_the_seed_only() -> None:
    case = MECHANISMS["discrete_laplace"]
    first, again, other = (audits.judge(case, runs=20_000, seed=seed) for seed in (1, 1, 2))
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
