"""The best of a random number of tries: its law; its cost, enumerated, beside another accountant, and audited."""

import math
from fractions import Fraction
from itertools import cycle

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.rdp import RdpAccountant
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.accounting.composition import GaussianCurve
from federation.mechanisms.accounting.private_selection import GEOMETRIC, LOGARITHMIC, RandomStopping, weakest_curve
from federation.mechanisms.audits import audit

ETAS = [GEOMETRIC, Fraction(1, 3), LOGARITHMIC, Fraction(-1, 2)]


def probabilities(law, most=4000):
    """P[K = 1], P[K = 2], ... by the law's definition."""
    k = np.arange(1, most)
    weights = np.cumprod(np.append(1, (k[:-1] + float(law.eta)) / (k[:-1] + 1)))
    found = np.exp(-k / float(law.scale)) * weights
    return found / found.sum()


@pytest.mark.parametrize("eta", ETAS)
def test_the_number_of_tries_has_its_law(eta):
    assert 4 <= RandomStopping.of_mean(4, eta).mean < 4.01
    law = RandomStopping(4, eta)
    known = probabilities(law)
    k = np.arange(1, len(known) + 1)
    assert law.mean == pytest.approx(known @ k, rel=1e-9)
    assert all_within(law, 0.6) == pytest.approx(known @ 0.6**k, rel=1e-9)
    assert (all_within(law, 0.0), all_within(law, 1.0)) == pytest.approx((0.0, 1.0))
    bits, draws = NoiseBits(1, f"tries {eta}"), 400
    drawn = np.bincount([min(law.draw(bits), 8) for _ in range(draws)], minlength=9)[1:]
    expected = draws * np.append(known[:7], known[7:].sum())
    assert np.sum((drawn - expected) ** 2 / expected) < 24.3  # chi-square with 7 degrees of freedom: 1 in 1000


def all_within(law, share):
    """E share^K: the probability that all tries are of kinds that have this share of one try."""
    rest, eta = 1 - (1 - law.gamma) * share, float(law.eta)
    if eta == 0:
        return math.log(rest) / math.log(law.gamma)
    return math.expm1(-eta * math.log(rest)) / math.expm1(-eta * math.log(law.gamma))


def excess(one, other, epsilon):
    """The hockey-stick divergence of two finite laws, the worse way."""
    return max(np.maximum(p - math.exp(epsilon) * q, 0).sum() for p, q in ((one, other), (other, one)))


def best_of(law, one):
    """The law of the best of K tries by enumeration over K; outcomes are in the order of their scores."""
    below = np.append(0, np.cumsum(one))
    powers = np.array([all_within(law, min(share, 1.0)) for share in below])
    return np.diff(powers)


LAWS = st.lists(st.floats(1e-3, 1), min_size=2, max_size=6).map(lambda xs: np.array(xs) / sum(xs))


@given(LAWS, LAWS, st.sampled_from(ETAS), st.floats(0, 2), st.integers(1, 40))
def test_no_finite_tries_cost_more_than_is_proved(one, other, eta, epsilon, scale):
    size = min(len(one), len(other))
    one, other = one[:size] / one[:size].sum(), other[:size] / other[:size].sum()
    law = RandomStopping(scale, eta)
    total, delta = law.spent(lambda x: excess(one, other, x), epsilon)
    assert excess(best_of(law, one), best_of(law, other), total) <= delta + 1e-9


@pytest.mark.parametrize("eta", ETAS)
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_the_cost_of_pure_tries_is_met(eta, epsilon):
    law, rare = RandomStopping(6, eta), 1e-7
    total, delta = law.spent(weakest_curve(epsilon), epsilon)
    assert (delta, total < (2 + eta) * epsilon) == (0.0, True)
    # Something in the middle is likelier by e^epsilon where something better is less likely by as much.
    high = 1 / (1 + math.exp(-epsilon))
    one = np.array([high - rare * math.exp(epsilon), rare * math.exp(epsilon), 1 - high])
    other = np.array([1 - high - rare, rare, high])
    assert max(np.abs(np.log(one / other))) <= epsilon * (1 + 1e-9)
    assert total - 1e-4 < max(np.abs(np.log(best_of(law, one) / best_of(law, other)))) <= total + 1e-9


@pytest.mark.parametrize(("mu", "tries", "eta"), [(0.2, 10, LOGARITHMIC), (0.2, 20, GEOMETRIC), (1.0, 20, GEOMETRIC)])
def test_gaussian_tries_cost_less_than_by_another_accountant(mu, tries, eta):
    law, curve = RandomStopping.of_mean(tries, eta), GaussianCurve(mu)
    total, delta = law.spent(curve.delta, curve.epsilon(1e-6 / law.mean))
    event = dp_event.RepeatAndSelectDpEvent(dp_event.GaussianDpEvent(1 / mu), law.mean, float(eta))
    theirs = RdpAccountant(np.geomspace(1.1, 500, 60).tolist()).compose(event).get_epsilon(1e-6)
    assert 0.5 * theirs < total < theirs
    assert delta <= 1e-6 * (1 + 1e-9)
    # What gives most away stands where what is better differs most: tails behind all but the smallest outcomes.
    edges = np.linspace(-9, 9 + mu, 3000)
    one, other = (np.diff(ndtr(edges[1:-1] - mean), prepend=0.0, append=1.0) for mean in (0.0, mu))
    gap = np.argmax((law.gamma + np.cumsum(one)) / (law.gamma + np.cumsum(other)))
    tail = np.flatnonzero(other > one * math.exp(total / 2))[0]
    order = np.concatenate([np.arange(tail)[gap:], np.arange(tail, len(one)), np.arange(gap)])
    shown = excess(best_of(law, one[order]), best_of(law, other[order]), total)
    assert delta / 20 < shown <= delta


def tries(law, likely, bits):
    """Samples of the best of tries that are right with probability `likely`: randomised response, scored by itself."""
    random = np.random.default_rng(int(bits.words(1)[0]))

    def sample(count):
        return np.array([law.best(lambda: (float(random.random() < likely),) * 2, bits) for _ in range(count)])

    return sample


class _Fixed(RandomStopping):
    """The broken twin: as many tries as the law has on average, always."""

    def draw(self, bits):
        return round(self.mean)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [RandomStopping, _Fixed])
def test_an_audit_finds_a_number_of_tries_that_is_not_random(kind):
    law, high = kind(5), 1 / (1 + math.exp(-1.0))
    claimed, _ = law.spent(weakest_curve(1.0), 1.0)
    samples = [tries(law, share, NoiseBits(2, f"audit {share}")) for share in (high, 1 - high)]
    found = audit(*samples, lambda outcome: outcome, epsilon=claimed, runs=4000)
    assert found.passed is (kind is RandomStopping)
    if found.passed:  # this pair is not the worst one, which lives on something rare
        law_of = [best_of(law, np.array([1 - share, share])) for share in (high, 1 - high)]
        assert 0.6 * found.claimed < max(np.abs(np.log(law_of[0] / law_of[1])))
        assert found.lower_bound > 0.5 * found.claimed


@pytest.mark.parametrize(
    "wrong",
    [
        *(lambda arguments=arguments: RandomStopping(*arguments) for arguments in ((0,), (2, Fraction(-1)), (2, 0.5))),
        lambda: RandomStopping(2, Fraction(2)),
        lambda: RandomStopping.of_mean(1.5),
        lambda: RandomStopping(2).spent(weakest_curve(1.0), -1.0),
        lambda: weakest_curve(0.0),
        lambda: weakest_curve(1.0, 1.0),
    ],
)
def test_numbers_out_of_range_are_refused(wrong):
    with pytest.raises(InputError):
        wrong()


def test_the_first_of_the_best_is_kept():
    law, results = RandomStopping(3), cycle([(0.5, "a"), (0.9, "b"), (0.9, "c")])
    seen = {law.best(lambda: next(results), NoiseBits(seed, "kept")) for seed in range(20)}
    assert {"b"} <= seen <= {"a", "b", "c"}
