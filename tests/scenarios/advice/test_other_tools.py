"""What a run promises by unit, and which claims hold, fail, or depend on what nobody said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from federation.contract.errors import InputError
from federation.mechanisms.accounting.sampled_gaussian import SampledGaussian
from federation.mechanisms.noise import gaussian
from scenarios.advice.other_tools import Run, judged, needed_multiplier, promised

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
    assert added.epsilon == pytest.approx(SampledGaussian(4.0, 0.1, 50).epsilon(1e-5))
    assert replaced.least == added.epsilon < replaced.epsilon
    assert (replaced.keeps(replaced.epsilon), replaced.keeps(added.epsilon * 0.9)) == (True, False)
    assert replaced.keeps((added.epsilon + replaced.epsilon) / 2) is None


def test_claims_hold_fail_or_hang_on_what_nobody_said():
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


def test_several_rows_of_a_person_are_a_premise_until_they_are_declared():
    assert any("--rows-per-person" in one for one in judged(WHOLE, 9.0, "row", "replace").missing)
    assert not any(
        "--rows-per-person" in one for one in judged(replace(WHOLE, clipped="party"), 9.0, "party", "replace").missing
    )
    with pytest.raises(InputError, match="nothing is known of one person"):
        judged(WHOLE, 9.0, "person", "replace")


def test_the_multiplier_that_a_claim_takes():
    exact = next(iter(promised(WHOLE))).epsilon
    assert needed_multiplier(WHOLE, exact, 1) == pytest.approx(8.0, rel=2e-3)
    with pytest.raises(InputError, match="above 0"):
        needed_multiplier(WHOLE, 0.0, 1)


@pytest.mark.parametrize("changes", [{"multiplier": 0.0}, {"rate": 2.0}, {"rounds": 0}, {"delta": 0.0}])
def test_numbers_out_of_range_are_refused(changes):
    with pytest.raises(InputError):
        replace(WHOLE, **changes)
