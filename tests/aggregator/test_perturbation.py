import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from aggregator.ensemble import Ensemble
from aggregator.perturbation import perturb_output, perturb_statistic, two_rows
from aggregator.public import PublicRows
from aggregator.tally import VoteTally
from federation.errors import InputError
from federation.features import fit
from federation.messages import Submission, Training, VotesQuestion
from federation.privacy import sensitivity
from federation.privacy.additive import calibrate


def ensemble(votes, rows, classes):
    public = PublicRows(fit(["unit_norm"], rows), rows)
    question = VotesQuestion(Training(public.feature_map, classes, {}, 0), rows)
    tally = VoteTally(question, len(votes))
    tally.add(Submission("votes", np.arange(len(votes)), {"votes": votes.astype(np.uint8)}))
    return Ensemble(public, tally)


def instance(seed, parties=9, rows=30, width=4, classes=3):
    random = np.random.default_rng(seed)
    points = random.normal(size=(rows, width))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return random.integers(0, classes, (parties, rows)), points


def replaced(votes, random):
    other = votes.copy()
    other[0] = random.permutation(votes.max() + 1)[votes[0]] if random.integers(2) else random.permutation(votes[0])
    return other


@settings(derandomize=True, deadline=None, max_examples=40)
@given(seed=st.integers(0, 10**6), classes=st.integers(2, 4), rank=st.integers(1, 4))
def test_one_party_never_moves_the_statistic_further_than_its_sensitivity(seed, classes, rank):
    votes, rows = instance(seed, classes=classes)
    rows[:, rank:] = 0.0  # numerically deficient ranks must not leak outside the basis
    random = np.random.default_rng(seed)
    a = perturb_statistic(ensemble(votes, rows, classes), "least_squares", 0.1, None)
    b = perturb_statistic(ensemble(replaced(votes, random), rows, classes), "least_squares", 0.1, None)
    assert len(a.value) == (classes - 1) * rank
    assert np.linalg.norm(a.value - b.value) <= a.sensitivity * (1 + 1e-9)


def test_the_statistic_moves_by_its_whole_sensitivity_in_the_worst_case():
    rows = np.ones((20, 1))
    before, after = np.zeros((5, 20), dtype=int), np.zeros((5, 20), dtype=int)
    after[0] = 1
    a = perturb_statistic(ensemble(before, rows, 3), "least_squares", 0.1, None)
    b = perturb_statistic(ensemble(after, rows, 3), "least_squares", 0.1, None)
    assert np.linalg.norm(a.value - b.value) == pytest.approx(np.sqrt(2) / 5, rel=1e-12)


@pytest.mark.parametrize("labels", ["soft", "majority"])
@pytest.mark.parametrize("form", ["published", "tight", "diameter"])
@pytest.mark.parametrize("classes", [2, 3])
def test_one_party_never_moves_the_minimiser_further_than_its_sensitivity(labels, form, classes):
    random = np.random.default_rng(5)
    for seed in range(10):
        votes, rows = instance(seed, classes=classes)
        a = perturb_output(ensemble(votes, rows, classes), labels, form, 1e-2)
        b = perturb_output(ensemble(replaced(votes, random), rows, classes), labels, form, 1e-2)
        assert np.linalg.norm(a.value - b.value) <= a.sensitivity


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("labels", ["soft", "majority"])
def test_the_minimiser_is_the_weighted_risks_own(classes, labels):
    votes, rows = instance(3, classes=classes)
    world = ensemble(votes, rows, classes)
    shares = world.tally.shares() if labels == "soft" else world.tally.majority()

    def binary(w):  # Hamm, Eq. 19
        z = rows @ w
        losses = shares[:, 1] * np.logaddexp(0, -z) + shares[:, 0] * np.logaddexp(0, z)
        return losses.mean() + 0.05 * (w @ w)

    def softmax(flat):  # Hamm, Eq. 55
        w = flat.reshape(classes, -1)
        z = rows @ w.T
        losses = np.logaddexp.reduce(z, axis=1) - (shares * z).sum(axis=1)
        return losses.mean() + 0.05 * (flat @ flat)

    unknowns = rows.shape[1] * (1 if classes == 2 else classes)
    independent = minimize(
        binary if classes == 2 else softmax, np.zeros(unknowns), method="BFGS", options={"gtol": 1e-9}
    )
    np.testing.assert_allclose(world.minimiser(labels, 0.1).ravel(), independent.x, atol=1e-5)


def test_least_squares_is_ridge_regression_on_centred_shares():
    votes, rows = instance(1)
    world = ensemble(votes, rows, 3)
    shrinkage = 0.2
    perturbable = perturb_statistic(world, "least_squares", shrinkage, None)
    weights = perturbable.decode(perturbable.value[None], None)[0]
    second = rows.T @ rows / len(rows)
    ridge = shrinkage * np.trace(second) / 4
    targets = world.tally.shares() - 1 / 3
    expected = np.linalg.solve(second + ridge * np.eye(4), rows.T @ targets / len(rows)).T
    np.testing.assert_allclose(weights, expected, atol=1e-12)


def test_without_noise_the_erm_decoder_is_the_weighted_erm():
    votes, rows = instance(2)
    world = ensemble(votes, rows, 3)
    perturbable = perturb_statistic(world, "erm", 0.1, 0.05)
    weights = perturbable.decode(perturbable.value[None], None)[0]
    np.testing.assert_allclose(weights, world.minimiser("soft", 0.05), atol=1e-5)


def test_the_erm_decoder_is_regularised_by_public_numbers():
    votes, rows = instance(2)
    perturbable = perturb_statistic(ensemble(votes, rows, 3), "erm", 0.1, None)
    mechanism = calibrate("pure", sensitivity=perturbable.sensitivity, dimension=8, epsilon=1.0, delta=1e-6)
    weights = perturbable.decode(np.zeros((1, 8)), mechanism)
    assert np.linalg.norm(weights) < 1e-6  # no votes: nothing but the uniform class


def test_long_rows_are_refused_where_the_proof_needs_short_ones():
    votes, rows = instance(1)
    with pytest.raises(InputError, match="unit_norm"):
        perturb_output(ensemble(votes, 2 * rows, 3), "soft", "published", 1e-2)
    perturb_statistic(ensemble(votes, 2 * rows, 3), "least_squares", 0.1, None)


def test_binary_weights_keep_their_decisions(rng):
    weights, rows = rng.normal(size=(5, 3)), rng.normal(size=(40, 3))
    doubled = two_rows(weights)
    assert doubled.shape == (5, 2, 3)
    for w, pair in zip(weights, doubled, strict=True):
        np.testing.assert_array_equal((rows @ pair.T).argmax(axis=1), rows @ w > 0)


def test_the_charged_sensitivity_includes_the_solver():
    votes, rows = instance(1)
    world = ensemble(votes, rows, 3)
    exact = sensitivity.soft_vote("tight", regularisation=1e-3, parties=9, classes=3)
    slack = 2 * world.gradient_tolerance(1e-3) / 1e-3
    assert perturb_output(world, "soft", "tight", 1e-3).sensitivity == pytest.approx(exact + slack)
