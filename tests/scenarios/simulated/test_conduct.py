"""Simulated parties that drop out or attack: who they are, and what they send."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from federation.contract.query import Field, Submission
from federation.engines.codec import decode_submission, encode_submission
from scenarios.settings.words import Kind
from scenarios.simulated.simulation import Conduct

KINDS = get_args(Kind)


def test_everybody_answers_honestly_by_default():
    conduct = Conduct()
    assert not any(map(conduct.drops_out, range(100)))
    assert not conduct.attackers(100).any()


def test_parties_drop_out_with_the_probability_and_by_themselves():
    def absent(**changes):
        conduct = Conduct(**{"dropout": 0.3, "seed": 1, **changes})
        return np.array([conduct.drops_out(party) for party in range(4000)])

    once = absent()
    assert abs(once.mean() - 0.3) < 5 * np.sqrt(0.21 / 4000)
    np.testing.assert_array_equal(once, absent())
    assert not (once & ~absent(dropout=0.6)).any()  # at a greater probability, the same ones and more
    for other in (absent(seed=2), absent(split=1)):
        assert abs((once & other).mean() - 0.09) < 5 * np.sqrt(0.09 * 0.91 / 4000)
    neighbours = (once[:-1] & once[1:]).mean()
    assert abs(neighbours - 0.09) < 5 * np.sqrt(0.09 * 0.91 / 4000)


@pytest.mark.parametrize(("parties", "fraction", "count"), [(1000, 0.1, 100), (7, 0.1, 1), (4, 0.1, 0), (5, 1.0, 5)])
def test_exactly_the_fraction_attacks(parties, fraction, count):
    assert Conduct(hostile=fraction, seed=1).attackers(parties).sum() == count


def test_attackers_are_drawn_at_random_and_more_of_them_include_the_fewer():
    few, many = (Conduct(hostile=f, seed=1).attackers(1000) for f in (0.1, 0.3))
    assert not (few & ~many).any()
    assert 20 < np.flatnonzero(few).mean() / 1000 * 100 < 80
    assert (few != Conduct(hostile=0.1, seed=1, split=1).attackers(1000)).any()
    counts = sum(Conduct(hostile=0.25, seed=seed).attackers(8) for seed in range(800))
    assert np.abs(counts - 200).max() < 5 * np.sqrt(800 * 0.25 * 0.75)


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_labels_of_attackers(classes):
    labels = np.arange(40) % classes
    attack = {kind: Conduct(hostile=1.0, kind=kind, seed=1).labels(labels, classes, 5) for kind in KINDS}
    np.testing.assert_array_equal(attack["flip"], (labels + 1) % classes)
    assert not attack["target"].any()
    for kind in ("malformed", "oversized"):
        np.testing.assert_array_equal(attack[kind], labels)
    assert set(attack["random"]) == set(range(classes))
    again, other = (Conduct(hostile=1.0, kind="random", seed=1).labels(labels, classes, party) for party in (5, 6))
    np.testing.assert_array_equal(attack["random"], again)
    assert (again != other).any()


def test_random_labels_are_uniform():
    labels = np.concatenate(
        [Conduct(hostile=1.0, kind="random", seed=1).labels(np.zeros(50, int), 4, p) for p in range(80)]
    )
    assert np.abs(np.bincount(labels, minlength=4) - 1000).max() < 5 * np.sqrt(4000 * 0.25 * 0.75)


REAL = Field((3,), minimum=-2.0, maximum=5.0)


@pytest.mark.parametrize("kind", ["flip", "random", "target"])
def test_those_who_train_on_wrong_labels_send_what_they_have_learned(kind):
    honest = np.ones((2, 3))
    assert Conduct(hostile=1.0, kind=kind).answers(REAL, honest) is honest


@pytest.mark.parametrize("levels", [2, 3, 4, 5, 6, 10, 16, 17, 200, 256, 257, 70_000])
def test_classes_out_of_range_survive_the_wire_where_they_can_be_written(levels):
    declared = Field((9,), levels=levels)
    honest = np.zeros((2, 9), dtype=declared.dtype)
    for kind in ("malformed", "oversized"):
        sent = Conduct(hostile=1.0, kind=kind).answers(declared, honest)
        fields = {"votes": declared}
        submission = Submission("votes", np.arange(2), {"votes": sent})
        received = decode_submission(encode_submission(submission, fields), fields).arrays["votes"]
        np.testing.assert_array_equal(received, sent)
        expressible = kind == "malformed" and levels not in (2, 4, 16, 256)
        assert declared.invalid(received).all() == expressible
        if not expressible:
            assert (received == levels - 1).all()


def test_numbers_out_of_form_and_the_largest_in_form():
    honest = np.zeros((2, 3))
    malformed = Conduct(hostile=1.0, kind="malformed").answers(REAL, honest)
    assert np.isnan(malformed).all()
    assert REAL.invalid(malformed).all()
    oversized = Conduct(hostile=1.0, kind="oversized").answers(REAL, honest)
    assert (oversized == 5.0).all()
    assert not REAL.invalid(oversized).any()
    assert (Conduct(hostile=1.0, kind="oversized").answers(Field((3,)), honest) == np.finfo(float).max).all()


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_real_labels_stay_in_the_range(kind):
    labels = np.array([0.1, 0.2, 0.3, 1.9])
    found = Conduct(hostile=1.0, kind=kind, seed=1).labels(labels, (0.1, 1.9), 3)
    assert found.dtype == np.float64
    assert ((found >= 0.1) & (found <= 1.9)).all()
    if kind == "flip":
        np.testing.assert_allclose(found, 2.0 - labels)
    elif kind == "target":
        assert found.tolist() == [0.1] * 4
    elif kind == "random":
        assert len(set(found)) == 4
        assert found.tolist() == Conduct(hostile=1.0, kind=kind, seed=1).labels(labels, (0.1, 1.9), 3).tolist()
        assert found.tolist() != Conduct(hostile=1.0, kind=kind, seed=1).labels(labels, (0.1, 1.9), 4).tolist()
    else:
        np.testing.assert_array_equal(found, labels)
