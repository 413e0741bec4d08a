"""Mean features: streamed means of what the map gives."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from aggregator.world.fitting import fit
from federation.contract.errors import InputError

ROWS = np.random.default_rng(0).normal(size=(5000, 6)) * np.arange(1, 7)


@pytest.mark.parametrize("stages", [["standardise", {"fourier": 32}], [{"whiten": 3}, "unit_norm"], []])
def test_is_the_mean_of_the_features(stages):
    features = fit(stages, ROWS[:300])
    for count in (1, 1023, 1024, 5000):
        direct = features.transform(ROWS[:count]).mean(axis=0)
        np.testing.assert_allclose(features.mean(ROWS[:count]), direct, atol=1e-13)
    np.testing.assert_array_equal(features.mean(ROWS), features.mean(np.asfortranarray(ROWS)))


def test_replacing_a_row_moves_the_mean_by_at_most_two_over_n():
    features = fit([{"fourier": 64}], ROWS[:300])
    for count in (1, 10, 2000):
        moved = ROWS[:count].copy()
        moved[-1] += 50.0
        step = np.linalg.norm(features.mean(moved) - features.mean(ROWS[:count]))
        assert 0.5 / count < step <= 2 / count + 1e-14


def test_memory_does_not_grow_with_the_rows():
    features = fit([{"fourier": 256}], ROWS[:300])
    tracemalloc.start()
    features.mean(np.broadcast_to(ROWS, (8, 5000, 6)).reshape(-1, 6)[:30_000])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30_000 * 256 * 8 / 4


@pytest.mark.parametrize("rows", [np.empty((0, 6)), np.ones(6), np.full((2, 6), np.nan), np.ones((2, 5))])
def test_refuses_what_has_no_mean(rows):
    with pytest.raises(InputError):
        fit([{"fourier": 8}], ROWS[:50]).mean(rows)
