"""Figure 1: bags, mechanisms and repetitions."""

from collections import defaultdict
from statistics import fmean

import numpy as np
import pytest

from federation.mechanisms.counts.calibration import calibrate
from federation.mechanisms.counts.comparison import distortion
from scenarios.papers.iyer import distortions
from scenarios.papers.iyer.distortions import MECHANISMS, REPETITIONS, SWEEPS, Bag, errors


def test_bags_are_those_of_section_4_1():
    assert Bag().counts().tolist() == [50, 50, 50, 50, 800]
    assert SWEEPS["share"]["0.2"].counts().tolist() == [200] * 5
    assert SWEEPS["share"]["0.025"].counts().tolist() == [25] * 4 + [900]
    assert all(bag.counts().sum() == 1000 for bags in SWEEPS.values() for bag in bags.values())
    assert all(Bag() in bags.values() for bags in SWEEPS.values())


def test_errors_are_those_of_the_mechanism():
    found = errors(Bag(), "published_laplace", 50)
    assert found.shape == (REPETITIONS, 50)
    known = distortion(calibrate("published_laplace", classes=5, epsilon=0.05, delta=0.05), Bag().counts())
    assert found.mean() == pytest.approx(known.mean, abs=4 * found.std() / np.sqrt(found.size))


def test_the_published_dirichlet_distorts_five_times_as_much_as_printed():
    assert errors(Bag(), "published_dirichlet", 50).mean() == pytest.approx(0.308, abs=0.02)


def test_every_place_has_every_mechanism_in_every_repetition(monkeypatch):
    monkeypatch.setattr(distortions, "_RELEASES", {True: 4, False: 4})
    for deviation in (False, True):
        values = defaultdict(list)
        for one in distortions.distortions("share", True, deviation=deviation):
            values[one.series, one.role, one.x].append(one.value)
        assert len(values) == len(SWEEPS["share"]) * sum(map(len, MECHANISMS.values()))
        assert {len(each) for each in values.values()} == {REPETITIONS}
        assert fmean(values["Scaled Dirichlet", "default", "0.05"]) < fmean(values["Laplace", "default", "0.05"]) / 2
