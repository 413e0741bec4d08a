import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from support.voting import ensemble, instance, replaced

from aggregator.ensembles.sessions import two_rows
from aggregator.protocols.soft_vote import decoders as noisy_votes
from aggregator.protocols.soft_vote.decoders import perturb_votes
from federation.numerics.erm import risk_minimiser
from federation.numerics.rows import contrasts


@settings(derandomize=True, deadline=None, max_examples=40)
@given(seed=st.integers(0, 10**6), classes=st.integers(2, 5), parties=st.integers(1, 9))
def test_one_party_never_moves_the_votes_further_than_their_sensitivity(seed, classes, parties):
    votes, rows = instance(seed, parties=parties, classes=classes)
    a = perturb_votes(ensemble(votes, rows, classes), 1e-2)
    b = perturb_votes(ensemble(replaced(votes, np.random.default_rng(seed)), rows, classes), 1e-2)
    assert a.value.shape == (30 * (classes - 1),)
    assert np.linalg.norm(a.value - b.value) <= a.sensitivity
    assert np.linalg.norm(a.value) <= a.largest_norm * (1 + 1e-12)


@pytest.mark.parametrize("classes", [2, 4])
def test_a_party_that_turns_every_vote_moves_them_by_the_whole_sensitivity(classes):
    before, after = np.zeros((5, 20), dtype=int), np.zeros((5, 20), dtype=int)
    after[0] = 1
    a, b = (perturb_votes(ensemble(votes, np.ones((20, 1)), classes), 1e-2) for votes in (before, after))
    assert np.linalg.norm(a.value - b.value) == pytest.approx(np.sqrt(2 * 20) / 5, rel=1e-12)
    assert a.sensitivity == pytest.approx(np.sqrt(2 * 20) / 5, rel=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_without_noise_the_model_is_the_erm_of_majority_labels(classes):
    votes, rows = instance(3, classes=classes)
    world = ensemble(votes, rows, classes)
    perturbable = perturb_votes(world, 0.05)
    weights = perturbable.decode(perturbable.value[None], None)[0]
    expected = world.minimiser("majority", 0.05)
    np.testing.assert_allclose(weights, two_rows(expected) if classes == 2 else expected, atol=1e-2)


def test_a_noisy_vote_is_the_noisy_maximum_of_all_classes(rng):
    """Noise in contrast coordinates and in each class's share give equal labels in law: differences are the same."""
    votes, rows = instance(3, parties=20, rows=1, classes=3)
    perturbable = perturb_votes(ensemble(votes, rows, 3), 0.05)
    shares = np.bincount(votes[:, 0], minlength=3) / 20
    noisy = perturbable.value + 0.2 * rng.normal(size=(100_000, 2))
    labels = (noisy @ contrasts(3).T).argmax(axis=1)
    direct = (shares + 0.2 * rng.normal(size=(100_000, 3))).argmax(axis=1)
    for label in range(3):
        gap = (labels == label).mean() - (direct == label).mean()
        assert abs(gap) < 4.5 * np.sqrt(0.5 / 100_000)


def test_equal_labels_share_one_fit_and_draws_are_decoded_in_pieces(rng, monkeypatch):
    votes, rows = instance(5, rows=3, classes=2)
    perturbable = perturb_votes(ensemble(votes, rows, 2), 0.1)
    noisy = perturbable.value + rng.normal(size=(40, 3))
    fits = []

    def counted(*arguments, **options):
        fits.append(1)
        return risk_minimiser(*arguments, **options)

    monkeypatch.setattr(noisy_votes, "risk_minimiser", counted)
    whole = perturbable.decode(noisy, None)
    assert len(fits) <= 2**3
    monkeypatch.setattr(noisy_votes, "_ENTRIES", 12)  # two draws at a time
    pieces = perturb_votes(ensemble(votes, rows, 2), 0.1).decode(noisy, None)
    np.testing.assert_array_equal(whole, pieces)


def test_a_draw_says_nothing_about_another(rng):
    """Weights to the last bit depend on their own labels alone; anything else would leak a second release."""
    votes, rows = instance(5, rows=12, classes=3)
    perturbable = perturb_votes(ensemble(votes, rows, 3), 0.1)
    noisy = perturbable.value + rng.normal(size=(6, 24))
    together = perturbable.decode(noisy, None)
    for draw in range(6):
        np.testing.assert_array_equal(together[draw], perturbable.decode(noisy[draw : draw + 1], None)[0])
    np.testing.assert_array_equal(together[::-1], perturbable.decode(noisy[::-1], None))


def test_the_noise_is_worth_sigma_times_root_n_per_row():
    """One release of N rows with sensitivity sqrt(2 N)/M: the chance that a unanimous row is relabelled."""
    votes, rows = np.zeros((50, 400), dtype=int), np.ones((400, 1))
    perturbable = perturb_votes(ensemble(votes, rows, 2), 0.1)
    noise = np.random.default_rng(1).normal(scale=perturbable.sensitivity, size=400)
    flipped = (((perturbable.value + noise)[:, None] @ contrasts(2).T).argmax(axis=1) == 1).mean()
    assert flipped == pytest.approx(norm.cdf(-np.sqrt(0.5) / (np.sqrt(800) / 50)), abs=0.07)
