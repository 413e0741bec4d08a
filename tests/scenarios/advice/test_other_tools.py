"""Runs of other tools are judged by what they promise; sampled noise is compared with a second accountant."""

import math
import sys
from dataclasses import replace

import pytest
from scipy.integrate import quad
from scipy.stats import norm
from support.refusals import refused
from support.sampled_gaussian import SampledGaussian

from federation.contract.errors import InputError
from federation.mechanisms.noise import gaussian
from scenarios.advice.other_tools import Run, judged, needed_multiplier, promised, sampled_losses

WHOLE = Run(multiplier=8.0, rate=1.0, rounds=16, delta=1e-5)
DRAWN = Run(multiplier=4.0, rate=0.1, rounds=50, delta=1e-5, sampling="poisson")


def test_units_and_adjacencies_of_full_batches_are_exact():
    found = {(one.unit, one.adjacency): one for one in promised(replace(WHOLE, rows_per_person=3))}
    expected = {("row", "add_remove"): 1, ("row", "replace"): 2, ("person", "add_remove"): 3, ("person", "replace"): 6}
    assert found.keys() == expected.keys()
    for key, moved in expected.items():
        assert found[key].epsilon == pytest.approx(gaussian.epsilon(1e-5, moved * 4 / 8))
        assert found[key].least == found[key].epsilon


def test_shuffled_batches_gain_nothing_by_sampling():
    one = next(iter(promised(replace(DRAWN, sampling="shuffled"))))
    assert one.epsilon == pytest.approx(gaussian.epsilon(1e-5, 5**0.5 / 4))  # five passes
    assert {each.sampling for each in promised(replace(DRAWN, sampling="unknown"))} == {"poisson", "shuffled"}


def test_of_sampling_a_replaced_row_is_bounded_from_both_sides():
    added, replaced = promised(DRAWN)
    assert added.epsilon == pytest.approx(SampledGaussian(4.0, 0.1, 50).epsilon(1e-5), rel=1e-4)
    assert replaced.least == added.epsilon < replaced.epsilon
    assert (replaced.keeps(replaced.epsilon), replaced.keeps(added.epsilon * 0.9)) == (True, False)
    assert replaced.keeps((added.epsilon + replaced.epsilon) / 2) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "rate", "rounds", "rows", "delta"),
    [
        (1.1, 0.01, 1000, 1, 1e-5),
        (4.0, 0.1, 2000, 1, 1e-8),
        (4.0, 0.1, 60, 2, 1e-6),
        (4.0, 0.1, 60, 20, 1e-6),
        (2.0, 1e-3, 10**6, 1, 1e-6),
    ],
)
def test_a_second_accountant_finds_the_same(noise, rate, rounds, rows, delta):
    found = sampled_losses(Run(noise, rate, rounds, delta), rows).get_epsilon_for_delta(delta)
    assert found == pytest.approx(SampledGaussian(noise, rate, rounds, rows).epsilon(delta), rel=1e-4)


@pytest.mark.slow
def test_one_round_is_the_integral_of_what_one_law_exceeds_the_other_by():
    noise, rate, epsilon = 2.0, 0.3, 0.2

    def mixture(x):
        return (1 - rate) * norm.pdf(x, 0, noise) + rate * norm.pdf(x, 1, noise)

    def exceeds(one, other):
        return quad(lambda x: max(0.0, one(x) - math.exp(epsilon) * other(x)), -40, 40, limit=400)[0]

    def alone(x):
        return norm.pdf(x, 0, noise)

    truth = max(exceeds(mixture, alone), exceeds(alone, mixture))
    assert SampledGaussian(noise, rate, 1).delta(epsilon) == pytest.approx(truth, rel=1e-5)
    theirs = sampled_losses(Run(noise, rate, 1, 1e-5), 1).get_delta_for_epsilon(epsilon)
    assert theirs == pytest.approx(truth, rel=1e-5)


@pytest.mark.slow
def test_losses_grow_with_rounds_rows_and_rate_up_to_those_of_every_row_in_every_round():
    nearly = sampled_losses(Run(5.0, 1 - 1e-9, 9, 1e-6), rows=2)
    assert nearly.get_epsilon_for_delta(1e-6) == pytest.approx(gaussian.epsilon(1e-6, 2 * 3 / 5), rel=1e-4)

    def delta(noise=3.0, rate=0.1, rounds=5, rows=1):
        return sampled_losses(Run(noise, rate, rounds, 1e-5), rows).get_delta_for_epsilon(0.2)

    assert min(delta(rate=0.2), delta(rounds=10), delta(rows=2)) > delta() > delta(noise=4.0)
    assert sampled_losses(Run(100.0, 0.001, 1, 0.01), 1).get_epsilon_for_delta(0.01) == 0.0  # what is hardly told


def test_without_the_package_a_sampled_run_is_refused_in_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
    assert len(list(promised(WHOLE))) == 2
    with pytest.raises(InputError, match=r"pip.*multiparty-federation\[claims\]") as caught:
        list(promised(DRAWN))
    assert "\n" not in str(caught.value)


def test_claims_hold_fail_or_hang_on_what_nobody_said_or_on_several_rows_of_a_person():
    exact = next(iter(promised(DRAWN))).epsilon
    assert judged(DRAWN, exact * 1.01, "row", "add_remove").holds
    failed = judged(DRAWN, exact * 0.8, "row", "add_remove")
    assert failed.holds is False
    needed = float(failed.told.rsplit(" ", 1)[1])
    assert SampledGaussian(needed * 1.001, 0.1, 50).delta(exact * 0.8) <= 1e-5
    open_ = judged(replace(DRAWN, sampling="unknown"), exact * 1.01, "row", "add_remove")
    assert (open_.holds, open_.spent) == (None, exact)
    assert "shuffled batches" in open_.told
    assert "--sampling" in open_.missing[0]
    assert not any("--sampling" in one for one in judged(DRAWN, 1.0, "row", "replace").missing)
    assert judged(DRAWN, exact * 1.3, "row", "replace").told.count("between") == 1
    by_party = replace(WHOLE, clipped="party")
    assert any("--rows-per-person" in one for one in judged(WHOLE, 9.0, "row", "replace").missing)
    assert not any("--rows-per-person" in one for one in judged(by_party, 9.0, "party", "replace").missing)
    refused(None, judged, WHOLE, 9.0, "person", "replace")


def test_the_multiplier_that_a_claim_takes():
    exact = next(iter(promised(WHOLE))).epsilon
    assert needed_multiplier(WHOLE, exact, 1) == pytest.approx(8.0, rel=2e-3)
    refused("0", needed_multiplier, WHOLE, 0.0, 1)
    for changes in ({"multiplier": 0.0}, {"rate": 2.0}, {"rounds": 0}, {"delta": 0.0}):
        refused(None, replace, WHOLE, **changes)
