"""Sensitivities: worst pairs stay within what is charged, and attain it where that is exact."""

from functools import cache

import pytest

from scenarios.papers.hamm import theory as bounds
from scenarios.papers.hamm.theory import REGULARISATIONS, THEOREMS, moved_by_one, sensitivities
from scenarios.reproductions.paper import EXACT, published


@cache
def exactly():
    return {
        (one.setting, one.series, one.role, one.x): one.value for one in sensitivities(True, None) if one.split == EXACT
    }


@pytest.mark.parametrize("setting", THEOREMS)
def test_worst_pairs_stay_within_the_default_bound_and_that_within_the_published_one(setting):
    for x in REGULARISATIONS:
        charged = exactly()[setting, "bound", "default", x]
        assert exactly()[setting, "worst case", "published", x] <= charged * (1 + 1e-6)
        assert charged <= exactly()[setting, "bound", "published", x] * (1 + 1e-12)


def test_the_diameter_is_attained_by_votes_and_averages_of_two_classes():
    for setting in ("Theorem 1: vote", "Pathak et al.: avg"):
        for x in REGULARISATIONS:
            charged = exactly()[setting, "bound", "default", x]
            assert exactly()[setting, "worst case", "published", x] == pytest.approx(charged, rel=1e-5)


def test_every_bound_of_one_gradient_is_attained_where_the_penalty_decides():
    for setting in THEOREMS:
        charged = exactly()[setting, "bound", "default", "100"]
        assert exactly()[setting, "worst case", "published", "100"] > 0.99 * charged


def test_soft_votes_attain_two_thirds_of_their_bound_where_the_risk_is_flat():
    assert exactly()["Theorem 3: soft", "worst case", "published", "0.0001"] == pytest.approx(0.664, abs=1e-3)


def test_every_printed_bound_is_computed():
    assert set(published("hamm", "sensitivities")) == {
        (setting, "bound", x) for setting in THEOREMS for x in REGULARISATIONS
    }


def test_no_party_of_digits_moves_more_than_its_bound():
    moved = moved_by_one(1.0, 0)
    assert 0.5 < moved["soft"] < 1
    assert 0 < moved["avg"] < 1
    assert 0 <= moved["vote"] < 1
    assert bounds.FEW_PARTIES % 2  # no tie, so that a majority is one
