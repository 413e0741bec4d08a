"""The ensemble of digits: rows apart, repeatable, and better than chance."""

import numpy as np

from scenarios.papers.hamm.theory import PUBLIC, ROWS, digit_votes, minimiser


def test_parties_hold_rows_that_are_neither_public_nor_tested():
    known = digit_votes(7, 0.01, 0)
    assert known.rows.shape == (7, ROWS, 64)
    assert known.public.shape == known.tested.shape == (PUBLIC, 64)
    held = {row.tobytes() for row in known.rows.reshape(-1, 64)}
    shown = {row.tobytes() for row in [*known.public, *known.tested]}
    assert not held & shown
    assert np.array_equal(known.weights, digit_votes(7, 0.01, 0).weights)
    assert not np.array_equal(known.public, digit_votes(7, 0.01, 1).public)


def test_votes_agree_with_the_labels_that_a_party_learned_from():
    known = digit_votes(7, 0.01, 0)
    for party in range(7):
        assert np.array_equal(known.votes(known.rows[party])[:, party], known.labels[party])


def test_a_minimiser_has_no_slope():
    rows, shares, lam = np.array([[1.0, 0.0], [0.6, 0.8]]), np.array([0.9, 0.2]), 0.1
    weights = minimiser(rows, shares, lam)
    slope = rows.T @ (1 / (1 + np.exp(-rows @ weights)) - shares) / 2 + lam * weights
    assert np.abs(slope).max() < 1e-9
