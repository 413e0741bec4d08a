"""Risks of Theorem 4: what is measured falls with the number of parties as far as the paper says."""

import math
from statistics import fmean

import numpy as np
import pytest

from scenarios.papers.hamm import theory as measured
from scenarios.papers.hamm.theory import risk, risks, settings


def test_a_useless_classifier_has_the_risk_ln_2_and_soft_labels_count_by_their_shares():
    rows, shares = np.array([[1.0], [-0.5]]), np.array([1.0, 0.25])
    assert risk(np.zeros((3, 1)), rows, shares) == pytest.approx([math.log(2)] * 3)
    by_hand = (math.log(1 + math.exp(-2)) + 0.25 * math.log(1 + math.e) + 0.75 * math.log(1 + 1 / math.e)) / 2
    assert risk(np.array([2.0]), rows, shares) == pytest.approx(by_hand)


def test_noise_of_soft_votes_falls_with_parties_and_that_of_majorities_does_not(monkeypatch):
    monkeypatch.setattr(measured, "RISK_SPLITS", 1)
    monkeypatch.setattr(measured, "OTHERS", 301)
    found = list(risks(True, None))
    few, _, many = settings()

    def mean(setting, series):
        return fmean(one.value for one in found if (one.setting, one.series) == (setting, series))

    assert mean(few, "soft") > 5 * mean(many, "soft")
    assert mean(few, "vote") < 2 * mean(many, "vote")
    for setting in settings():
        assert mean(setting, "soft") < mean(setting, "vote")
        assert mean(setting, "soft") < mean(setting, "bound for soft")
        assert mean(setting, "gap of Lemma 2") < 0.1
