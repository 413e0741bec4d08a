"""The printed distortions: the sigma that one of them needs, and where means of twenty releases lie."""

from __future__ import annotations

import numpy as np
import pytest

from scenarios.papers.iyer import distortions as printed
from scenarios.papers.iyer.distortions import (
    AS_PRINTED,
    BY_EQ_9,
    PRINTED,
    Bag,
    errors,
    expected_distortion,
    points,
    sigmas,
)


@pytest.mark.parametrize("sigma", [0.01, 0.3, 5.0])
def test_the_expected_distortion_is_the_mean_of_draws(sigma):
    counts = np.array([5, 15, 80])
    drawn = np.random.default_rng(1).dirichlet(sigma * counts, 40_000)
    found = np.abs(drawn - counts / 100).sum(axis=1)
    assert expected_distortion(counts, sigma) == pytest.approx(found.mean(), abs=5 * found.std() / 200)


def test_the_printed_distortion_needs_a_sigma_that_eq_9_refuses(monkeypatch):
    monkeypatch.setattr(printed, "_delta_kept", lambda bag: 0.1)  # takes seconds
    found = {(one.setting, one.series): one.value for one in sigmas(True, None)}
    assert found[AS_PRINTED, "distortion"] == pytest.approx(PRINTED)
    assert found[BY_EQ_9, "delta of Eq. 9"] <= Bag().delta < found[AS_PRINTED, "delta of Eq. 9"]
    for setting in (BY_EQ_9, AS_PRINTED):
        assert found[setting, "least delta at one sigma"] < found[setting, "delta of Eq. 9"]


def test_the_true_delta_is_above_what_is_claimed(monkeypatch):
    monkeypatch.setattr(printed, "_RUNS", 2**12)
    bag = Bag(classes=2, share=0.007, epsilon=1.0, delta=1e-3)
    assert printed._delta_kept(bag) > bag.delta


def test_means_of_twenty_releases_lie_around_the_mean_of_all():
    found = {(one.setting, one.series): one.value for one in points(True, None)}
    mean = errors(Bag(), "published_laplace", 100).mean()
    assert found["Laplace", "from"] < mean < found["Laplace", "to"]
