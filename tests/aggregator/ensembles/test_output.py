"""What the aggregator knows after the votes are in: whose they are, and minimisers that are computed once."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from support.voting import ensemble, instance, replaced

from aggregator.ensembles import output as module
from aggregator.ensembles.output import Ensemble, ProbabilityTally, VoteTally, perturb_output
from aggregator.trial.feature_fitting import fit
from aggregator.trial.public_rows import PublicRows
from federation.contract.errors import InputError
from federation.contract.guarantee import Unit
from federation.contract.query import Submission
from federation.mechanisms.accounting import sensitivity
from federation.numerics.erm import gradient_floor, risk_minimiser
from federation.numerics.rows import contrast_rounding, contrasts
from federation.queries.votes import BALLOT_PARTS, ProbabilitiesQuestion, Training, VotesQuestion

FORMS = sensitivity.FORMS
BOTH = "party_and_auxiliary_row"


@pytest.mark.parametrize("labels", ["soft", "majority"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("classes", [2, 3])
def test_one_party_never_moves_the_minimiser_further_than_its_sensitivity(labels, form, classes):
    random = np.random.default_rng(5)
    for seed in range(10):
        votes, rows = instance(seed, classes=classes)
        a = perturb_output(ensemble(votes, rows, classes), labels, form, 1e-2)
        b = perturb_output(ensemble(replaced(votes, random), rows, classes), labels, form, 1e-2)
        assert np.linalg.norm(a.value - b.value) <= a.sensitivity


@pytest.mark.parametrize("labels", ["soft", "majority"])
@pytest.mark.parametrize("form", ["published", "tight", "diameter"])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_party_and_an_auxiliary_row_never_move_it_further_than_theirs(labels, form, classes):
    random = np.random.default_rng(6)
    for seed in range(10):
        votes, rows = instance(seed, parties=9, rows=6, classes=classes)
        changed, other_rows = replaced(votes, random), rows.copy()
        changed[:, 0] = random.integers(0, classes)  # all parties may judge the other row otherwise
        other_rows[0] = -rows[0] if seed % 2 else rows[1]
        a = perturb_output(ensemble(votes, rows, classes), labels, form, 0.1, BOTH)
        b = perturb_output(ensemble(changed, other_rows, classes), labels, form, 0.1, BOTH)
        assert a.sensitivity == b.sensitivity  # nothing about it depends on the rows
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


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_noise_has_the_dimension_of_its_form_and_released_weights_decide_as_the_minimiser(form, classes):
    votes, rows = instance(4, classes=classes)
    world = ensemble(votes, rows, classes)
    perturbable = perturb_output(world, "soft", form, 0.1)
    vectors = classes - (form != "published") if classes > 2 else 1
    assert len(perturbable.value) == vectors * rows.shape[1]
    weights = perturbable.decode(perturbable.value[None], None)[0]
    minimiser = world.minimiser("soft", 0.1)
    scores = np.stack([-rows @ minimiser / 2, rows @ minimiser / 2], 1) if classes == 2 else rows @ minimiser.T
    np.testing.assert_allclose(rows @ weights.T, scores, atol=1e-6)


def test_noise_and_what_a_solver_leaves_outside_the_sum_zero_subspace_are_never_released(rng, monkeypatch):
    votes, rows = instance(4, classes=4)
    perturbable = perturb_output(ensemble(votes, rows, 4), "soft", "tight", 0.1)
    noisy = perturbable.value + rng.normal(size=(3, len(perturbable.value)))
    weights = perturbable.decode(noisy, None)
    np.testing.assert_allclose(weights.sum(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose((contrasts(4).T @ weights).reshape(3, -1), noisy, atol=1e-12)  # nothing is lost
    published = perturb_output(ensemble(votes, rows, 4), "soft", "published", 0.1)
    spread = published.decode(rng.normal(size=(3, len(published.value))), None)
    assert np.abs(spread.sum(axis=1)).max() > 0.1
    votes, rows = instance(4, classes=3)
    exact, sloppy = ensemble(votes, rows, 3), ensemble(votes, rows, 3)
    weights = exact.minimiser("soft", 0.1)
    monkeypatch.setattr(type(sloppy), "minimiser", lambda *_: weights + 0.3)  # the same in every class
    values = [perturb_output(world, "soft", "tight", 0.1).value for world in (exact, sloppy)]
    np.testing.assert_allclose(*values, atol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_charged_sensitivity_includes_solver_rounding_and_the_length_of_rows(classes):
    votes, rows = instance(1, classes=classes)
    world = ensemble(votes, rows, classes)
    exact = sensitivity.soft_vote("tight", regularisation=1e-3, parties=9, classes=classes)
    slack = sensitivity.solver_slack(world.gradient_tolerance(1e-3), 1e-3)
    charged = perturb_output(world, "soft", "tight", 1e-3).sensitivity
    rounding = 0 if classes == 2 else 2 * contrast_rounding(3) * sensitivity.radius(1e-3, 3)
    assert charged >= exact * (1 + 1e-9) + slack + rounding
    assert charged == pytest.approx(exact + slack, rel=1e-8)


def test_public_features_scale_with_the_reach_of_the_rows():
    votes, rows = instance(2)
    world = ensemble(votes, rows, 3)
    assert world.public.reach < 0.7
    tight, public = (perturb_output(world, "soft", form, 1.0).sensitivity for form in ("tight", "public_features"))
    assert public == pytest.approx(world.public.reach * tight, rel=1e-5)
    texts = [assumption.text for assumption in perturb_output(world, "soft", "public_features", 1.0).assumptions]
    assert any("computed from the auxiliary rows" in text for text in texts)


def test_a_protected_auxiliary_row_is_named_in_the_unit_and_what_cannot_protect_it_is_refused():
    votes, rows = instance(1)
    both, party = (perturb_output(ensemble(votes, rows, 3), "soft", "tight", 1e-2, who) for who in (BOTH, "party"))
    assert (both.unit, party.unit) == (Unit.PARTY_AND_AUXILIARY_ROW, Unit.PARTY)
    assert both.sensitivity > party.sensitivity
    texts = " ".join(assumption.text for assumption in both.assumptions)
    assert "number of auxiliary rows is public" in texts
    assert "auxiliary rows are public" not in texts
    assert both.scores is None  # a diagnostic over the rows would tell about them
    assert any("auxiliary rows are public" in assumption.text for assumption in party.assumptions)
    votes, rows = instance(1)
    feature_map = fit(["unit_norm"], np.rint(rows), text_columns=(0,))
    texts = Ensemble(PublicRows(feature_map, rows, ["unit_norm"]), ensemble(votes, rows, 3).tally)
    with pytest.raises(InputError):
        perturb_output(texts, "soft", "tight", 1e-2, BOTH)
    with pytest.raises(InputError):
        perturb_output(ensemble(votes, rows, 3), "soft", "public_features", 1e-2, BOTH)
    with pytest.raises(InputError, match="unit_norm"):  # the proof needs short ones
        perturb_output(ensemble(votes, 2 * rows, 3), "soft", "published", 1e-2)


@pytest.mark.parametrize(("stages", "words"), [
    (["scale", {"whiten": 2}, "constant", "unit_norm"], None), (["max_norm"], "max_norm"),
    ([{"pca": 2}, "unit_norm"], None), (["unit_norm", "constant"], "unit_norm"), ([], "unit_norm"), (None, None),
])  # fmt: skip
def test_a_protected_auxiliary_row_allows_nothing_fitted_on_it(stages, words):
    votes, rows = instance(1)
    world = Ensemble(PublicRows(fit(stages or [], rows), rows, stages), ensemble(votes, rows, 3).tally)
    with pytest.raises(InputError, match=words):
        perturb_output(world, "soft", "tight", 1e-2, BOTH)


def test_a_minimiser_is_computed_once_for_each_kind_of_labels_and_to_a_tolerance_below_what_a_party_moves(monkeypatch):
    votes, rows = instance(2, parties=9, classes=3)
    world = ensemble(votes, rows, 3)
    assert world.gradient_tolerance(1.0) == 1e-6 / 9
    for lam in (1e-2, 1.0, 1e12):
        assert world.gradient_tolerance(lam) == max(1e-6 / 9, 4 * gradient_floor(lam))
    computed = []

    def counted(*arguments):
        computed.append(arguments)
        return risk_minimiser(*arguments)

    monkeypatch.setattr(module, "risk_minimiser", counted)
    wanted = [("soft", 0.1), ("majority", 0.1), ("soft", 0.2), ("soft", 0.1)]
    found = [world.minimiser(*one) for one in wanted]
    assert len(computed) == 3
    assert found[0] is found[3]
    assert (found[0] != found[2]).any()


def question(rows=50, classes=3):
    points = np.ones((rows, 2))
    return VotesQuestion(Training(fit(["unit_norm"], points), classes, {}, 0), points)


def submission(votes, parties):
    return Submission("votes", np.asarray(parties), {"votes": np.asarray(votes, dtype=np.uint8)})


@settings(derandomize=True)
@given(seed=st.integers(0, 999), parties=st.integers(1, 20), pieces=st.integers(1, 5), classes=st.integers(2, 5))
def test_neither_counts_nor_sums_of_distributions_depend_on_how_they_arrive(seed, parties, pieces, classes):
    random = np.random.default_rng(seed)
    votes = random.integers(0, classes, (parties, 50))
    parts = random.multinomial(BALLOT_PARTS, random.dirichlet(np.ones(classes)), size=(parties, 50))
    tally, summed = VoteTally(question(classes=classes), parties), probability_tally(parties + 3, classes)
    for ids in np.array_split(random.permutation(parties), pieces):
        assert tally.add(submission(votes[ids].reshape(-1, 50), ids.astype(np.int64))) == {}
        assert summed.add(ballot(parts[ids].reshape(-1, 50, classes), ids.astype(np.int64))) == {}
    np.testing.assert_array_equal(summed.counts, parts.sum(axis=0))
    shares = (parts.sum(axis=0) / BALLOT_PARTS + 3 / classes) / (parties + 3)
    np.testing.assert_allclose(summed.shares(), shares, rtol=1e-13)
    expected = np.stack([(votes == label).sum(axis=0) for label in range(classes)], axis=1)
    np.testing.assert_array_equal(tally.counts, expected)
    np.testing.assert_allclose(tally.shares(), expected / parties)
    np.testing.assert_array_equal(tally.majority().argmax(axis=1), expected.argmax(axis=1))


@pytest.mark.parametrize(("classes", "parties"), [(2, 600), (6, 600), (23, 256), (300, 511)])
def test_many_votes_for_one_class_do_not_overflow(monkeypatch, classes, parties):
    monkeypatch.setattr(module, "_ROWS", 20)
    monkeypatch.setattr(module, "_TILE", 700)
    votes = np.random.default_rng(0).integers(0, classes, (parties, 50)).astype(np.min_scalar_type(classes - 1))
    votes[:, :3] = classes - 1
    tally = VoteTally(question(classes=classes), parties)
    assert tally.add(Submission("votes", np.arange(parties), {"votes": votes})) == {}
    expected = np.stack([(votes == label).sum(axis=0) for label in range(classes)], axis=1)
    np.testing.assert_array_equal(tally.counts, expected)


def test_a_missing_party_is_a_uniform_vote_a_malformed_ballot_costs_its_own_and_memory_a_byte_per_party():
    tally = VoteTally(question(), 4)
    tally.add(submission(np.zeros((3, 50)), [0, 1, 2]))
    np.testing.assert_allclose(tally.shares()[0], [3 / 4 + 1 / 12, 1 / 12, 1 / 12])
    np.testing.assert_allclose(tally.shares().sum(axis=1), 1)
    tally = VoteTally(question(), 2)
    tally.add(submission([[2] * 50, [1] * 50], [0, 1]))
    assert (tally.majority().argmax(axis=1) == 1).all()
    with pytest.raises(InputError):
        VoteTally(question(), 4).majority()
    tally, votes = VoteTally(question(), 4), np.zeros((2, 50))
    votes[1, 7] = 3
    assert "outside 0..2" in tally.add(submission(votes, [0, 1]))[1]
    assert tally.counts.sum() == 50
    tally, parts = probability_tally(3), np.zeros((2, 50, 3), dtype=int)
    parts[1, 7] = [200, 56, 0]
    refused = tally.add(ballot(parts, [0, 2]))
    assert list(refused) == [2]
    assert "more than 255 parts" in refused[2]
    assert tally.counts.tolist() == [[0, 0, BALLOT_PARTS]] * 50
    small, large = peak_of_counting(1000), peak_of_counting(100_000)
    assert large - small < 2 * 99_000  # votes of one party alone are 2,000 bytes


def peak_of_counting(parties):
    asked, cohort = question(rows=2000), 100
    votes = np.zeros((cohort, 2000), dtype=np.uint8)
    tracemalloc.start()
    tally = VoteTally(asked, parties)
    for first in range(0, min(parties, 2000), cohort):
        tally.add(submission(votes, np.arange(first, first + cohort)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def probability_tally(parties, classes=3, rows=50):
    points = np.ones((rows, 2))
    asked = ProbabilitiesQuestion(Training(fit(["unit_norm"], points), classes, {}, 0), points)
    return ProbabilityTally(asked, parties)


def ballot(parts, parties):
    """Parts (P, N, C) as a submission."""
    wire = parts[..., :-1].reshape(len(parts), parts.shape[1] * (parts.shape[2] - 1))
    return Submission("probabilities", np.asarray(parties), {"parts": wire.astype(np.uint8)})


def test_certain_distributions_count_like_votes_and_a_ballot_moves_shares_by_the_diameter_of_the_simplex():
    votes = np.random.default_rng(1).integers(0, 3, (4, 50))
    by_labels, by_parts = VoteTally(question(), 6), probability_tally(6)
    by_labels.add(submission(votes, range(4)))
    by_parts.add(ballot(BALLOT_PARTS * np.eye(3, dtype=int)[votes], range(4)))
    np.testing.assert_allclose(by_parts.shares(), by_labels.shares(), atol=1e-15)
    np.testing.assert_array_equal(by_parts.majority(), by_labels.majority())
    tally = probability_tally(2**24, rows=2)
    tally.add(ballot(np.tile([BALLOT_PARTS, 0, 0], (2**13, 2, 1)), range(2**13)))
    assert tally.counts.dtype == np.int64
    assert VoteTally(question(rows=2), 2**24).counts.dtype == np.int32
    random = np.random.default_rng(4)
    everything = [random.integers(0, 256, (1, 50, 3)) for _ in range(20)] + [
        BALLOT_PARTS * np.eye(3, dtype=int)[np.full((1, 50), label)] for label in range(3)
    ]
    rows = []
    for parts in everything:
        tally = probability_tally(5)
        tally.add(ballot(parts, [2]))
        rows.append(tally.shares())
    furthest = max(np.linalg.norm(a - b, axis=1).max() for a in rows for b in rows)
    assert furthest == pytest.approx(np.sqrt(2) / 5)
