"""What the benchmark of private selections says of values that are known."""

import numpy as np
import pytest

from benchmarks.selection import WAYS, judged, of_a_try, selected
from federation.mechanisms.accounting.private_selection import RandomStopping, weakest_curve

LAW = RandomStopping.of_mean(8)


def test_a_try_costs_what_the_selection_has():
    for total in (1.0, 3.0):
        each = of_a_try(total, LAW)
        assert LAW.spent(weakest_curve(each), each)[0] == pytest.approx(total, rel=1e-6)


def test_selections_choose_the_better_where_noise_is_small_and_anything_where_it_is_large():
    scores = [np.array([0.6, 0.62]), np.array([0.9, 0.92])]
    sure, blind = (np.mean([place for place, _ in selected(scores, noise, LAW, "test")]) for noise in (1e-4, 1e4))
    assert sure > 0.8 > 0.6 > blind > 0.4


def test_each_way_is_beside_the_best_that_it_could_have_chosen():
    levels = {epsilon: 0.1 * epsilon for total in (1.0,) for epsilon in (total, total / 2)}
    levels |= {of_a_try(epsilon, LAW): 0.1 * of_a_try(epsilon, LAW) for epsilon in (1.0, 0.5)}
    values = [{(place, epsilon): np.full(3, 0.6 + 0.1 * place + gain) for place in (0, 1) for epsilon, gain in
               levels.items()} for _ in (0, 1)]  # fmt: skip
    found = judged(values, 1.0, LAW, 1e-6)
    assert list(found) == list(WAYS)
    assert found["public numbers"] == pytest.approx(0.1)
    assert found["pilot (NON-PRIVATE)"] == pytest.approx(0.0)
    assert found["selection: its model"] == pytest.approx(0.1 * (1 - of_a_try(1.0, LAW)), abs=0.02)
    assert found["selection: half and half"] == pytest.approx(0.05, abs=0.02)
