"""What releases over periods spend on one unit, against compositions that are computed by hand."""

import math

import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, Unit
from federation.mechanisms.accounting.composition import most_releases, spent_over_periods
from federation.mechanisms.noise import gaussian


def pure(epsilon, unit=Unit.LABEL):
    return Guarantee(epsilon, 0.0, unit, Adjacency.REPLACE, "response")


def normal(mu, unit=Unit.PARTY):
    return Guarantee(gaussian.epsilon(1e-6, mu), 1e-6, unit, Adjacency.REPLACE, "gaussian", gaussian_mu=mu)


def exact(mu, delta):
    """The epsilon of mu-Gaussian noise, solved for anew (Dong, Roth, Su 2022, Corollary 2.13)."""

    def excess(epsilon):
        tail = norm.cdf(-epsilon / mu - mu / 2)
        return norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * tail - delta

    return brentq(excess, 0.0, 50.0, xtol=1e-12)


UNEQUAL = {2: pure(0.5), 3: pure(0.25), 4: pure(1.0), 5: pure(0.125)}


@pytest.mark.parametrize(
    ("window", "expected"), [(1, 1.0), (2, 0.25 + 1.0), (3, 0.5 + 0.25 + 1.0), (4, 1.875), (9, 1.875), (None, 1.875)]
)
def test_what_arrives_once_pays_for_the_windows_that_it_is_in(window, expected):
    assert spent_over_periods(UNEQUAL, window, Unit.LABEL, 0.0) == (expected, 0.0)


@pytest.mark.parametrize("unit", [Unit.PARTY, Unit.PERSON, Unit.PARTY_AND_AUXILIARY_ROW])
def test_whoever_may_be_in_every_period_pays_for_all_however_short_windows_are(unit):
    releases = {period: pure(one.epsilon, unit) for period, one in UNEQUAL.items()}
    assert spent_over_periods(releases, 1, unit, 0.0) == (1.875, 0.0)
    assert most_releases(unit, 4, window=1) == 4


def test_windows_that_are_disjoint_count_once_however_many_there_are():
    year = {week: pure(0.5, Unit.ROW) for week in range(2, 54)}
    assert spent_over_periods(year, 1, Unit.ROW, 0.0) == (0.5, 0.0)
    assert spent_over_periods(year, 4, Unit.ROW, 0.0) == (2.0, 0.0)


def test_gaussian_releases_compose_exactly_within_a_window_and_over_all():
    releases = {period: normal(0.3) for period in range(2, 9)}
    for unit, window, number in ((Unit.PARTY, 2, 7), (Unit.ROW, 2, 2), (Unit.LABEL, None, 7)):
        epsilon, delta = spent_over_periods(releases, window, unit, 1e-6)
        assert delta == 1e-6
        assert epsilon == pytest.approx(exact(0.3 * math.sqrt(number), 1e-6), rel=1e-9)
        assert epsilon < number * releases[2].epsilon


def test_a_period_without_a_release_spends_nothing():
    missing = {2: pure(1.0), 4: pure(1.0), 5: pure(0.5)}
    assert spent_over_periods(missing, 2, Unit.LABEL, 0.0) == (1.5, 0.0)


def test_releases_under_two_adjacencies_have_no_total():
    other = Guarantee(1.0, 0.0, Unit.LABEL, Adjacency.ADD_REMOVE, "response")
    with pytest.raises(InputError, match="one unit and adjacency"):
        spent_over_periods({2: pure(1.0), 3: other}, None, Unit.LABEL, 0.0)
