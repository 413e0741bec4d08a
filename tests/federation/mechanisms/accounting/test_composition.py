"""Totals of several releases against privacy loss distributions.

What guarantees are worth for other units, against all small tables and against exact divergences.

The curve that a `gaussian_mu` claims, against the mechanisms that claim it and the total of several.

Odds against the best test of the worst mechanism, found by a linear program, and against Gaussian closed forms.

What releases over periods spend on one unit, against compositions that are computed by hand.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from itertools import combinations_with_replacement, pairwise, product

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, linprog
from scipy.stats import norm
from support.discrete_laws import exact_delta, gaussian_law
from support.refusals import refused

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, Unit
from federation.mechanisms.accounting.composition import (
    GaussianCurve,
    Odds,
    compose,
    concentrated_epsilon,
    converted,
    group_delta,
    most_releases,
    spent_over_periods,
    steps_between,
)
from federation.mechanisms.counts import exact_laws as counts
from federation.mechanisms.noise import discrete as discrete_gaussian
from federation.mechanisms.noise import gaussian
from federation.mechanisms.noise.additive import calibrate

INTERVAL = 1e-4


def pure(epsilon: float, **change: object) -> Guarantee:
    fields = {"epsilon": epsilon, "delta": 0.0, "unit": Unit.PARTY, "adjacency": Adjacency.REPLACE}
    return Guarantee(**(fields | {"mechanism": "l2_gamma"} | change))


def normal(epsilon: float, delta: float = 1e-6, dimension: int = 20) -> Guarantee:
    mechanism = calibrate("gaussian", sensitivity=1.0, dimension=dimension, epsilon=epsilon, delta=delta)
    return mechanism.guarantee(Unit.PARTY, Adjacency.REPLACE)


def continuous(mu: float = 0.3, epsilon: float = 1.0, delta: float = 1e-6) -> Guarantee:
    return pure(epsilon, delta=delta, gaussian_mu=mu, mechanism="gaussian")


def on_integers(moves: int, scale: int, delta: float = 1e-6) -> Guarantee:
    """A discrete Gaussian of this scale on one integer that moves by so much; the claim of its own is never used."""
    parameters = {"dimension": 1, "grid_scale": scale}
    return pure(100.0, delta=delta, gaussian_mu=moves / scale, mechanism="counted", parameters=parameters)


def exact_delta_of_two(epsilon: float, releases: list[tuple[int, int]]) -> float:
    """The sum of (P - e^epsilon Q)+ over all pairs of integers, for two discrete Gaussians (moves, scale)."""
    return exact_delta(epsilon, *((gaussian_law(scale)[1], moves) for moves, scale in releases))


def test_pure_epsilons_add_and_the_pld_does_not_exceed_them() -> None:
    epsilons = [0.3, 0.5, 1.1]
    assert compose([], 1e-6) == (0.0, 0.0)
    assert compose([pure(e) for e in epsilons], 1e-6) == (pytest.approx(sum(epsilons)), 0.0)
    singles = [pld.from_laplace_mechanism(1 / e, value_discretization_interval=INTERVAL) for e in epsilons]
    oracle = reduce(pld.PrivacyLossDistribution.compose, singles)
    total = oracle.get_epsilon_for_delta(1e-10)  # it moves a tail mass of about 1e-15 to infinity
    assert total == pytest.approx(sum(epsilons), abs=len(epsilons) * INTERVAL)


@pytest.mark.parametrize("claims", [[(1.0, 1e-6)], [(0.5, 1e-6)] * 8, [(0.3, 1e-7), (2.0, 1e-5)]])
def test_gaussian_releases_compose_as_the_pld_says(claims: list[tuple[float, float]]) -> None:
    guarantees = [normal(*claim) for claim in claims]
    epsilon, delta = compose(guarantees, 1e-6)
    assert delta == 1e-6
    mus = [guarantee.gaussian_mu for guarantee in guarantees]
    singles = [pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=INTERVAL) for mu in mus]
    oracle = reduce(pld.PrivacyLossDistribution.compose, singles)
    theirs = oracle.get_epsilon_for_delta(1e-6)
    assert -1e-6 <= theirs - epsilon <= INTERVAL * len(claims)


def test_one_gaussian_release_costs_what_it_claims_and_continuous_ones_pay_no_discretisation() -> None:
    epsilon, delta = compose([normal(1.0)], 1e-6)
    assert (1 - 1e-4) < epsilon <= 1.0
    assert delta == 1e-6
    tighter, _ = compose([normal(1.0)], 1e-8)
    assert tighter > 1.0
    assert compose([continuous(delta=1e-5)] * 4, 1e-5)[0] == pytest.approx(gaussian.epsilon(1e-5, 0.6), rel=1e-12)


@pytest.mark.parametrize("delta", [1e-1, 1e-2, 1e-3, 1e-5])
@pytest.mark.parametrize("fine", [(4, 64), (16, 64)])
def test_of_a_coarse_and_a_fine_grid_the_total_covers_the_exact_delta(delta: float, fine: tuple[int, int]) -> None:
    releases = [(1, 1), fine]  # how far an integer moves, and the scale of its noise
    group = [on_integers(*release) for release in releases]
    epsilon, spent = compose(group, delta)
    assert (epsilon, spent) == compose(group[::-1], delta)
    assert spent == delta
    assert 0.05 * delta < exact_delta_of_two(epsilon, releases) <= delta
    mu = math.hypot(*(moves / scale for moves, scale in releases))
    for too_little in (discrete_gaussian.epsilon_bound(delta, mu, 2, 64), gaussian.epsilon(delta, mu)):
        assert exact_delta_of_two(too_little, releases) > delta  # as if both grids were fine, or there were none


def test_where_grids_are_coarse_the_total_is_that_of_zero_concentrated_privacy() -> None:
    for releases in ([(1, 1)], [(1, 1)] * 2, [(3, 2), (1, 1), (5, 64)]):
        rho = sum((moves / scale) ** 2 for moves, scale in releases) / 2
        epsilon, delta = compose([on_integers(*release) for release in releases], 1e-6)
        assert (epsilon, delta) == (pytest.approx(concentrated_epsilon(1e-6, rho), rel=1e-12), 1e-6)


def test_what_releases_claim_in_sum_counts_where_it_is_less_at_no_more_delta() -> None:
    composed = gaussian.epsilon(1e-6, 0.3)
    assert composed > 1.0
    for claimed, epsilon, delta in ((1e-9, 1.0, 1e-9), (1e-6, 1.0, 1e-6), (1.1e-6, composed, 1e-6)):
        assert compose([continuous(delta=claimed)], 1e-6) == (pytest.approx(epsilon), delta)


def test_mixtures_are_sums_of_the_two_totals_which_lie_above_the_pld() -> None:
    group = [normal(0.5, 1e-6)] * 3
    alone, _ = compose(group, 1e-6)
    assert compose([*group, pure(0.4), pure(0.2)], 1e-6) == (pytest.approx(alone + 0.6), pytest.approx(1e-6))
    # Another mechanism's delta is taken out of the target before the Gaussian group gets the rest.
    other = pure(0.1, delta=4e-7, mechanism="other")
    alone, _ = compose(group, 6e-7)
    assert compose([*group, other], 1e-6) == (pytest.approx(alone + 0.1), pytest.approx(1e-6))
    oracle = pld.from_gaussian_mechanism(1 / group[0].gaussian_mu, value_discretization_interval=INTERVAL)
    oracle = oracle.compose(pld.from_laplace_mechanism(2.0, value_discretization_interval=INTERVAL))
    epsilon, delta = compose([group[0], pure(0.5)], 1e-6)
    assert oracle.get_epsilon_for_delta(delta) <= epsilon + 2 * INTERVAL


def test_without_delta_left_the_claims_add_to_a_delta_of_one_at_most() -> None:
    group = [normal(0.5, 1e-6)] * 3
    assert compose(group, 0.0) == (pytest.approx(1.5), pytest.approx(3e-6))
    other = pure(0.1, delta=1e-5, mechanism="other")
    assert compose([*group, other], 1e-6) == (pytest.approx(1.6), pytest.approx(1.3e-5))
    assert compose([pure(0.1, delta=0.6)] * 2, 1e-6) == (pytest.approx(0.2), 1.0)


@given(st.lists(st.floats(0.05, 3), min_size=1, max_size=6), st.floats(0.05, 3))
@settings(derandomize=True)
def test_more_releases_never_cost_less(epsilons: list[float], extra: float) -> None:
    for kind in (pure, lambda e: normal(e, 1e-6)):
        group = [kind(e) for e in epsilons]
        before, _ = compose(group, 1e-6)
        after, _ = compose([*group, kind(extra)], 1e-6)
        assert max(epsilons) * (1 - 1e-3) <= before < after
        assert after <= (sum(epsilons) + extra) * (1 + 1e-9) or len(epsilons) > 1


@pytest.mark.parametrize(
    ("refused", "told"),
    [
        (lambda: compose([pure(1.0), pure(1.0, unit=Unit.ROW)], 1e-6), None),
        (lambda: compose([pure(1.0), pure(1.0, adjacency=Adjacency.ADD_REMOVE)], 1e-6), None),
        (
            lambda: spent_over_periods(
                {2: pure(1.0), 3: pure(1.0, adjacency=Adjacency.ADD_REMOVE)}, None, Unit.PARTY, 0.0
            ),
            "adjacency",
        ),
        *((lambda delta=delta: compose([pure(1.0)], delta), "delta") for delta in (-1e-9, 1.0)),
        *(
            (lambda delta=delta, rho=rho: concentrated_epsilon(delta, rho), None)
            for delta, rho in ((0.0, 1.0), (1.0, 1.0), (0.1, 0.0), (0.1, math.inf), (0.1, math.nan))
        ),
        *((lambda epsilon=epsilon: Odds(epsilon), "epsilon") for epsilon in (0.0, -1.0, math.inf, math.nan)),
        (lambda: Odds(1.0, 1.0), "delta"),
        *((lambda share=share: Odds(1.0).detections(share), "false_alarms") for share in (-0.1, 1.1, math.nan)),
        *((lambda share=share: Odds(1.0).belief(share), "prior") for share in (-0.1, 1.1, math.nan)),
    ],
)
def test_what_has_no_total_or_odds_is_refused(refused: Callable[[], object], told: str | None) -> None:
    with pytest.raises(InputError, match=told):
        refused()


@given(st.floats(1e-3, 20), st.floats(1e-12, 0.2))
def test_the_conversion_is_the_best_of_all_orders_between_the_exact_gaussian_and_the_classic_one(rho, delta):
    alpha = 1 + np.exp(np.linspace(-12, 16, 20_001))
    grid = alpha * rho + (-np.log(delta * (alpha - 1)) + alpha * np.log1p(-1 / alpha)) / (alpha - 1)
    found = concentrated_epsilon(delta, rho)
    assert found == pytest.approx(max(grid.min(), 0.0), rel=1e-3, abs=1e-6)
    assert gaussian.epsilon(delta, math.sqrt(2 * rho)) <= found * (1 + 1e-9) + 1e-12
    assert found <= rho + 2 * math.sqrt(rho * math.log(1 / delta)) + 1e-12


@pytest.mark.parametrize("delta", [5e-324, 1e-310, 0.5, 1 - 2**-53])
@pytest.mark.parametrize("rho", [5e-324, 1e-30, 1.0, 1e30, 1e300])
def test_the_smallest_delta_and_extreme_rho_lie_below_the_classic_conversion(delta, rho):
    found = concentrated_epsilon(delta, rho)
    assert 0 <= found <= (rho + 2 * math.sqrt(rho) * math.sqrt(-math.log(delta))) * (1 + 1e-12)
    assert found >= rho * (1 - 1e-12) or delta > 0.1 or rho < 1e-9


@pytest.mark.parametrize("sigma", [0.7, 1.0, 2.5, 8.0])
def test_coarse_discrete_gaussians_keep_it_and_the_bound_of_fine_grids_says_where_it_does_not(sigma):
    for delta in (1e-2, 1e-6):
        epsilon = concentrated_epsilon(delta, 1 / sigma**2)  # two coordinates move by 1
        assert counts.discrete_gaussian_delta(epsilon, sigma) <= delta
    assert discrete_gaussian.epsilon_bound(1e-9, 0.3, 8, 1) == math.inf
    assert discrete_gaussian.epsilon_bound(1e-6, 2.0, 2, 2**12) < concentrated_epsilon(1e-6, 2.0)


REPLACE, ADD_REMOVE = Adjacency.REPLACE, Adjacency.ADD_REMOVE
ROWS = [(0, 0), (0, 1), (1, 0), (1, 1)]  # a feature and a label
PARTIES = [tuple(rows) for size in range(3) for rows in combinations_with_replacement(ROWS, size)]


# All tables of up to two parties of up to two rows each, as multisets of multisets.
TABLES = [tuple(sorted(found)) for size in range(3) for found in combinations_with_replacement(PARTIES, size)]


def without(parties, i):
    return parties[:i] + parties[i + 1 :]


def row_changes(rows, relation):
    """What one party's rows may become."""
    for i, (feature, label) in enumerate(rows):
        rest = without(rows, i)
        if relation == (Unit.LABEL, REPLACE):
            yield (*rest, (feature, 1 - label))
        if relation == (Unit.ROW, REPLACE):
            yield from ((*rest, other) for other in ROWS)
        if relation == (Unit.ROW, ADD_REMOVE):
            yield rest
    if relation == (Unit.ROW, ADD_REMOVE) and len(rows) < 2:
        yield from ((*rows, other) for other in ROWS)


def neighbours(table, relation):
    for i, rows in enumerate(table):
        rest = without(table, i)
        if relation == (Unit.PARTY, REPLACE):
            yield from ((*rest, other) for other in PARTIES if len(other) == len(rows))
        if relation == (Unit.PARTY, ADD_REMOVE):
            yield rest
        yield from ((*rest, tuple(sorted(changed))) for changed in row_changes(rows, relation))
    if relation == (Unit.PARTY, ADD_REMOVE) and len(table) < 2:
        yield from ((*table, other) for other in PARTIES)


RELATIONS = [
    (unit, adjacency)
    for unit, adjacency in product((Unit.LABEL, Unit.ROW, Unit.PARTY), Adjacency)
    if (unit, adjacency) != (Unit.LABEL, ADD_REMOVE)
]


GRAPHS = {
    relation: {table: {tuple(sorted(other)) for other in neighbours(table, relation)} for table in TABLES}
    for relation in RELATIONS
}


def furthest(held, wanted):
    """The longest of all shortest walks, by changes of one kind, between tables that differ by one of the other."""
    longest = 0
    for start, ends in GRAPHS[wanted].items():
        missing, reached, edge, walked = set(ends) - {start}, {start}, {start}, 0
        while missing and edge and walked < 3:
            walked += 1
            edge = {other for table in edge for other in GRAPHS[held][table]} - reached
            reached |= edge
            if missing & edge:
                longest = max(longest, walked)
                missing -= edge
        if missing:
            return math.inf
    return longest


@pytest.mark.parametrize("held", RELATIONS, ids=str)
@pytest.mark.parametrize("wanted", RELATIONS, ids=str)
def test_steps_are_the_longest_walk_between_neighbours(held, wanted):
    promise = Guarantee(1.0, 0.0, *held, "any")
    try:
        steps = steps_between(promise, *wanted)
    except InputError:
        assert furthest(held, wanted) >= 2  # as many as a party here has rows, or without end
    else:
        assert furthest(held, wanted) == steps


@pytest.mark.parametrize(
    ("unit", "adjacency", "steps"),
    [(Unit.LABEL, REPLACE, 3), (Unit.ROW, REPLACE, 3), (Unit.ROW, ADD_REMOVE, 6)],
)
def test_all_labels_of_a_person_are_so_many_changes(unit, adjacency, steps):
    promise = Guarantee(1.0, 0.0, unit, adjacency, "any")
    assert steps_between(promise, Unit.PERSON, REPLACE, rows_per_person=3) == steps
    refused("rows_per_person", steps_between, promise, Unit.PERSON, REPLACE)
    weak = Guarantee(7.0, 0.0, Unit.LABEL, REPLACE, "any")  # which protects nobody with three labels
    assert converted(weak, Unit.LABEL, REPLACE) == weak
    assert converted(weak, Unit.PERSON, REPLACE, 2).epsilon == 14.0
    refused(r"epsilon.*7.*label/replace.*21.*person/replace", converted, weak, Unit.PERSON, REPLACE, 3)


laws = st.lists(st.integers(1, 1000), min_size=3, max_size=3).map(lambda weights: np.array(weights) / sum(weights))


def divergence(one, other, epsilon):
    return float(np.maximum(one - math.exp(epsilon) * other, 0).sum())


@given(st.lists(laws, min_size=2, max_size=5), st.floats(0.01, 1.5))
def test_no_law_is_further_away_than_a_chain_of_neighbours_allows(chain, epsilon):
    delta = max(max(divergence(one, other, epsilon), divergence(other, one, epsilon)) for one, other in pairwise(chain))
    steps = len(chain) - 1
    assert divergence(chain[0], chain[-1], steps * epsilon) <= group_delta(epsilon, delta, steps) + 1e-12


def test_the_delta_of_a_chain_is_attained():
    """Each law puts delta on an outcome that the one before lacks, and the rest e^epsilon apart."""
    epsilon, delta = 0.5, 1e-3
    promise = Guarantee(epsilon, delta, Unit.ROW, ADD_REMOVE, "any")
    found = converted(promise, Unit.ROW, REPLACE)
    assert (found.epsilon, found.delta) == (1.0, pytest.approx((1 + math.exp(epsilon)) * delta, rel=1e-12))
    # masses m of one outcome with m -> e^epsilon m + delta at each step
    first = 0.01
    last = math.exp(epsilon) * (math.exp(epsilon) * first + delta) + delta
    assert last - math.exp(found.epsilon) * first == pytest.approx(found.delta, rel=1e-12)


@settings(derandomize=True)
@given(epsilon=st.floats(0.05, 8.0), delta=st.sampled_from([1e-9, 1e-6, 1e-2]), part=st.floats(0.0, 1.0))
def test_it_is_that_of_the_mechanism(epsilon: float, delta: float, part: float) -> None:
    mechanism = calibrate("gaussian", sensitivity=1.0, dimension=3, epsilon=epsilon, delta=delta)
    curve = GaussianCurve.of([mechanism.guarantee(Unit.PARTY, Adjacency.REPLACE)])
    assert curve.delta(part * epsilon) == mechanism.delta_at(part * epsilon)
    assert curve.delta(epsilon) <= delta
    assert curve.epsilon(delta) <= epsilon * (1 + 1e-9)


def test_of_counts_it_is_above_the_exact_curve() -> None:
    mechanism = counts.calibrate_discrete_gaussian(3, 1.0, 1e-6)
    curve = GaussianCurve.of([mechanism.guarantee()])
    assert curve.grid == (2, math.floor(mechanism.scale))
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0):
        assert mechanism.delta_at(epsilon) < curve.delta(epsilon)


def test_several_releases_have_the_curve_of_their_total() -> None:
    several = [normal(0.5, dimension=3), normal(1.0, dimension=5)]
    curve = GaussianCurve.of(several)
    assert curve.mu == pytest.approx(math.hypot(*(one.gaussian_mu for one in several)))
    assert curve.grid == (8, min(int(one.parameters["grid_scale"]) for one in several))
    assert compose(several, 1e-6) == (curve.epsilon(1e-6), 1e-6)
    assert curve.delta(0.3) == discrete_gaussian.delta_bound(0.3, curve.mu, *curve.grid)


def test_without_a_grid_it_is_the_continuous_one_and_what_is_not_gaussian_has_none() -> None:
    curve = GaussianCurve.of([continuous()])
    assert curve == GaussianCurve(0.3)
    assert (curve.delta(0.5), curve.epsilon(1e-6)) == (float(gaussian.delta(0.5, 0.3)), gaussian.epsilon(1e-6, 0.3))
    assert GaussianCurve(1.0, (10, 1)).epsilon(1e-9) == math.inf  # a grid of a few steps claims nothing
    assert GaussianCurve.of([]) is None
    assert GaussianCurve.of([normal(1.0), replace(normal(1.0), gaussian_mu=None)]) is None


EPSILONS, DELTAS, SHARES = st.floats(1e-3, 30), st.floats(0, 0.5), st.floats(0, 1)


def worst_mechanism(epsilon, delta):
    """The laws of the four outcomes on either side (Kairouz, Oh, Viswanath 2015): no other leaves a better test."""
    high = (1 - delta) / (1 + math.exp(-epsilon))
    here = np.array([delta, high, 1 - delta - high, 0.0])
    return here, here[::-1]


def best_test(here, there, false_alarms):
    """The most detections of a randomised test with at most so many false alarms."""
    found = linprog(-there, A_ub=[here], b_ub=[false_alarms], bounds=(0, 1))
    return -found.fun


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.2])
@pytest.mark.parametrize("false_alarms", [0.0, 0.01, 0.05, 0.4, 0.9, 1.0])
def test_detections_are_those_of_the_best_test_of_the_worst_mechanism(epsilon, delta, false_alarms):
    wanted = best_test(*worst_mechanism(epsilon, delta), false_alarms)
    assert Odds(epsilon, delta).detections(false_alarms) == pytest.approx(wanted, abs=1e-9)


@given(st.floats(0.01, 4), st.floats(1e-9, 1 - 1e-9))
def test_gaussian_noise_has_the_closed_form(mu, false_alarms):
    epsilon = gaussian.epsilon(1e-6, mu)
    if epsilon <= 0:
        return
    odds = Odds(epsilon, 1e-6, GaussianCurve(mu))
    assert odds.detections(false_alarms) == pytest.approx(norm.sf(norm.isf(false_alarms) - mu), rel=1e-6, abs=1e-12)
    assert odds.right_guesses() == pytest.approx(norm.cdf(mu / 2), rel=1e-9)


@given(EPSILONS, DELTAS, SHARES, SHARES)
def test_more_privacy_is_never_worse_and_no_test_is_below_chance(epsilon, delta, false_alarms, prior):
    odds, worse = Odds(epsilon, delta), [Odds(2 * epsilon, delta), Odds(epsilon, delta + 0.1)]
    assert odds.right_guesses() == pytest.approx(np.maximum(*worst_mechanism(epsilon, delta)).sum() / 2, abs=1e-12)
    assert false_alarms - 1e-12 <= odds.detections(false_alarms) <= 1
    assert 0.5 <= odds.right_guesses() <= 1
    for other in worse:
        assert other.detections(false_alarms) >= odds.detections(false_alarms) - 1e-12
        assert other.right_guesses() >= odds.right_guesses() - 1e-12
    # A test is one way to guess: with equal odds it is right in half of its detections and of its silences.
    assert (odds.detections(false_alarms) + 1 - false_alarms) / 2 <= odds.right_guesses() + 1e-12
    believed = Odds(epsilon).belief(prior)
    assert prior - 1e-12 <= believed <= 1
    if 1e-6 < prior < 1 - 1e-6 and epsilon < 15:
        factor = believed / (1 - believed) / (prior / (1 - prior))
        assert factor == pytest.approx(math.exp(epsilon), rel=1e-6)


def test_the_extremes():
    assert Odds(1000.0).right_guesses() == Odds(1000.0).detections(0.01) == Odds(1000.0).belief(0.01) == 1
    assert Odds(1000.0).detections(0.0) == 0
    assert (Odds(1.0).belief(0.0), Odds(1.0).belief(1.0)) == (0, 1)
    assert (Odds(1000.0).belief(0.0), Odds(1000.0).belief(1.0)) == (0, 1)
    assert Odds(1e-300).detections(1e-12) == Odds(1e-300, 1e-12).detections(0.0) == 1e-12  # and not a little below
    curved = Odds(1.0, 1e-6, GaussianCurve(gaussian.mu(1.0, 1e-6)))
    assert curved.detections(0.0) == pytest.approx(0, abs=1e-12)
    assert curved.detections(1.0) == 1
    assert curved.belief(0.5) is None


def test_of_a_release_the_curve_is_used_with_the_slack_of_discrete_noise():
    odds = Odds.of(normal(1.0, dimension=5))
    ideal, plain = Odds(1.0, 1e-6, GaussianCurve(odds.curve.mu)), Odds(1.0, 1e-6)
    for false_alarms in (0.01, 0.05, 0.5):
        shown = odds.detections(false_alarms)
        assert ideal.detections(false_alarms) <= shown < plain.detections(false_alarms)
        assert shown == pytest.approx(ideal.detections(false_alarms), rel=1e-3)
    assert Odds.of(pure(1.0)) == Odds(1.0)


def exact(mu, delta):
    """The epsilon of mu-Gaussian noise, solved for anew (Dong, Roth, Su 2022, Corollary 2.13)."""

    def excess(epsilon):
        tail = norm.cdf(-epsilon / mu - mu / 2)
        return norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * tail - delta

    return brentq(excess, 0.0, 50.0, xtol=1e-12)


UNEQUAL = dict(enumerate((0.5, 0.25, 1.0, 0.125), 2))


def labels(spent, unit=Unit.LABEL):
    """Releases by their period."""
    return {period: pure(epsilon, unit=unit) for period, epsilon in spent.items()}


@pytest.mark.parametrize(
    ("spent", "window", "expected"),
    [
        (UNEQUAL, 1, 1.0),
        (UNEQUAL, 2, 0.25 + 1.0),
        (UNEQUAL, 3, 0.5 + 0.25 + 1.0),
        (UNEQUAL, 4, 1.875),
        (UNEQUAL, 9, 1.875),
        (UNEQUAL, None, 1.875),
        # Windows that are disjoint count once, however many there are.
        (dict.fromkeys(range(2, 54), 0.5), 1, 0.5),
        (dict.fromkeys(range(2, 54), 0.5), 4, 2.0),
        # A period without a release spends nothing.
        ({2: 1.0, 4: 1.0, 5: 0.5}, 2, 1.5),
    ],
)
def test_what_arrives_once_pays_for_the_windows_that_it_is_in(spent, window, expected):
    assert spent_over_periods(labels(spent), window, Unit.LABEL, 0.0) == (expected, 0.0)
    assert spent_over_periods(labels(spent, Unit.ROW), window, Unit.ROW, 0.0) == (expected, 0.0)


@pytest.mark.parametrize("unit", [Unit.PARTY, Unit.PERSON, Unit.PARTY_AND_AUXILIARY_ROW])
def test_whoever_may_be_in_every_period_pays_for_all_however_short_windows_are(unit):
    assert spent_over_periods(labels(UNEQUAL, unit), 1, unit, 0.0) == (1.875, 0.0)
    assert most_releases(unit, 4, window=1) == 4


def test_gaussian_releases_compose_exactly_within_a_window_and_over_all():
    releases = {period: continuous(epsilon=gaussian.epsilon(1e-6, 0.3)) for period in range(2, 9)}
    for unit, window, number in ((Unit.PARTY, 2, 7), (Unit.ROW, 2, 2), (Unit.LABEL, None, 7)):
        epsilon, delta = spent_over_periods(releases, window, unit, 1e-6)
        assert delta == 1e-6
        assert epsilon == pytest.approx(exact(0.3 * math.sqrt(number), 1e-6), rel=1e-9)
        assert epsilon < number * releases[2].epsilon
