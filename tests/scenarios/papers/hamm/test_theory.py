"""Sensitivities of worst pairs, the ensemble of digits and the risks of Theorem 4 are as the paper says, or not."""

import math
from functools import cache
from statistics import fmean

import numpy as np
import pytest

from scenarios.papers.hamm import theory
from scenarios.reproductions.paper import EXACT, published


@cache
def exactly():
    return {
        (one.setting, one.series, one.role, one.x): one.value
        for one in theory.sensitivities(True, None)
        if one.split == EXACT
    }


@pytest.mark.slow
@pytest.mark.parametrize("setting", theory.THEOREMS)
def test_worst_pairs_stay_within_the_default_bound_and_that_within_the_published_one(setting):
    for x in theory.REGULARISATIONS:
        charged = exactly()[setting, "bound", "default", x]
        assert exactly()[setting, "worst case", "published", x] <= charged * (1 + 1e-6)
        assert charged <= exactly()[setting, "bound", "published", x] * (1 + 1e-12)


def test_every_printed_bound_is_computed_and_attained_by_two_classes_or_where_the_penalty_decides():
    for setting in ("Theorem 1: vote", "Pathak et al.: avg"):
        for x in theory.REGULARISATIONS:
            charged = exactly()[setting, "bound", "default", x]
            assert exactly()[setting, "worst case", "published", x] == pytest.approx(charged, rel=1e-5)
    printed = {(setting, "bound", x) for setting in theory.THEOREMS for x in theory.REGULARISATIONS}
    assert set(published("hamm", "sensitivities")) == printed
    for setting in theory.THEOREMS:
        charged = exactly()[setting, "bound", "default", "100"]
        assert exactly()[setting, "worst case", "published", "100"] > 0.99 * charged
    # Soft votes where the risk is flat.
    assert exactly()["Theorem 3: soft", "worst case", "published", "0.0001"] == pytest.approx(0.664, abs=1e-3)


def test_no_party_of_digits_moves_more_than_its_bound_or_holds_rows_that_are_public_or_tested():
    moved = theory.moved_by_one(1.0, 0)
    assert 0.5 < moved["soft"] < 1
    assert 0 < moved["avg"] < 1
    assert 0 <= moved["vote"] < 1
    assert theory.FEW_PARTIES % 2  # no tie, so that a majority is one
    known = theory.digit_votes(7, 0.01, 0)
    assert known.rows.shape == (7, theory.ROWS, 64)
    assert known.public.shape == known.tested.shape == (theory.PUBLIC, 64)
    held = {row.tobytes() for row in known.rows.reshape(-1, 64)}
    shown = {row.tobytes() for row in [*known.public, *known.tested]}
    assert not held & shown
    assert np.array_equal(known.weights, theory.digit_votes(7, 0.01, 0).weights)
    assert not np.array_equal(known.public, theory.digit_votes(7, 0.01, 1).public)
    for party in range(7):
        assert np.array_equal(known.votes(known.rows[party])[:, party], known.labels[party])


def test_a_minimiser_has_no_slope_a_useless_classifier_the_risk_ln_2_and_soft_labels_count_by_shares():
    rows, shares, lam = np.array([[1.0, 0.0], [0.6, 0.8]]), np.array([0.9, 0.2]), 0.1
    weights = theory.minimiser(rows, shares, lam)
    slope = rows.T @ (1 / (1 + np.exp(-rows @ weights)) - shares) / 2 + lam * weights
    assert np.abs(slope).max() < 1e-9
    rows, shares = np.array([[1.0], [-0.5]]), np.array([1.0, 0.25])
    assert theory.risk(np.zeros((3, 1)), rows, shares) == pytest.approx([math.log(2)] * 3)
    by_hand = (math.log(1 + math.exp(-2)) + 0.25 * math.log(1 + math.e) + 0.75 * math.log(1 + 1 / math.e)) / 2
    assert theory.risk(np.array([2.0]), rows, shares) == pytest.approx(by_hand)


@pytest.mark.slow
def test_noise_of_soft_votes_falls_with_parties_and_that_of_majorities_does_not(monkeypatch):
    monkeypatch.setattr(theory, "RISK_SPLITS", 1)
    monkeypatch.setattr(theory, "OTHERS", 301)
    found = list(theory.risks(True, None))
    few, _, many = theory.settings()

    def mean(setting, series):
        return fmean(one.value for one in found if (one.setting, one.series) == (setting, series))

    assert mean(few, "soft") > 5 * mean(many, "soft")
    assert mean(few, "vote") < 2 * mean(many, "vote")
    for setting in theory.settings():
        assert mean(setting, "soft") < mean(setting, "vote")
        assert mean(setting, "soft") < mean(setting, "bound for soft")
        assert mean(setting, "gap of Lemma 2") < 0.1
