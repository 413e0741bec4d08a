import numpy as np
import pytest
from scipy.optimize import minimize
from support.voting import ensemble, instance, replaced

from aggregator.ensembles.output import Ensemble, perturb_output
from aggregator.trial.feature_fitting import fit
from aggregator.trial.public_rows import PublicRows
from federation.contract.errors import InputError
from federation.contract.guarantee import Unit
from federation.mechanisms.accounting import sensitivity
from federation.numerics.rows import contrast_rounding, contrasts

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


def test_noise_in_contrasts_leaves_the_released_weights_in_the_sum_zero_subspace(rng):
    votes, rows = instance(4, classes=4)
    perturbable = perturb_output(ensemble(votes, rows, 4), "soft", "tight", 0.1)
    noisy = perturbable.value + rng.normal(size=(3, len(perturbable.value)))
    weights = perturbable.decode(noisy, None)
    np.testing.assert_allclose(weights.sum(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose((contrasts(4).T @ weights).reshape(3, -1), noisy, atol=1e-12)  # nothing is lost
    published = perturb_output(ensemble(votes, rows, 4), "soft", "published", 0.1)
    spread = published.decode(rng.normal(size=(3, len(published.value))), None)
    assert np.abs(spread.sum(axis=1)).max() > 0.1


def test_what_a_solver_leaves_outside_the_subspace_is_never_released(monkeypatch):
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


def test_long_rows_are_refused_where_the_proof_needs_short_ones():
    votes, rows = instance(1)
    with pytest.raises(InputError, match="unit_norm"):
        perturb_output(ensemble(votes, 2 * rows, 3), "soft", "published", 1e-2)


def test_a_protected_auxiliary_row_is_named_in_the_unit_and_the_assumptions():
    votes, rows = instance(1)
    both, party = (perturb_output(ensemble(votes, rows, 3), "soft", "tight", 1e-2, who) for who in (BOTH, "party"))
    assert (both.unit, party.unit) == (Unit.PARTY_AND_AUXILIARY_ROW, Unit.PARTY)
    assert both.sensitivity > party.sensitivity
    texts = " ".join(assumption.text for assumption in both.assumptions)
    assert "number of auxiliary rows is public" in texts
    assert "auxiliary rows are public" not in texts
    assert both.scores is None  # a diagnostic over the rows would tell about them
    assert any("auxiliary rows are public" in assumption.text for assumption in party.assumptions)


@pytest.mark.parametrize(
    ("stages", "words"),
    [
        (["scale", {"whiten": 2}, "constant", "unit_norm"], "scale, whiten would be fitted"),
        (["max_norm"], "max_norm would be fitted"),
        ([{"pca": 2}, "unit_norm"], "pca would be fitted"),
        (["unit_norm", "constant"], "unit_norm as the last stage"),
        ([], "unit_norm as the last stage"),
        (None, "needs the stages"),
    ],
)
def test_a_protected_auxiliary_row_allows_nothing_fitted_on_it(stages, words):
    votes, rows = instance(1)
    public = PublicRows(fit(stages or [], rows), rows, stages)
    world = Ensemble(public, ensemble(votes, rows, 3).tally)
    with pytest.raises(InputError, match=words):
        perturb_output(world, "soft", "tight", 1e-2, BOTH)


def test_a_protected_auxiliary_row_allows_no_vocabulary_of_texts():
    votes, rows = instance(1)
    feature_map = fit(["unit_norm"], np.rint(rows), text_columns=(0,))
    world = Ensemble(PublicRows(feature_map, rows, ["unit_norm"]), ensemble(votes, rows, 3).tally)
    with pytest.raises(InputError, match="text columns would be fitted"):
        perturb_output(world, "soft", "tight", 1e-2, BOTH)


def test_a_protected_auxiliary_row_excludes_sensitivities_computed_from_it():
    votes, rows = instance(1)
    with pytest.raises(InputError, match="function of the auxiliary rows"):
        perturb_output(ensemble(votes, rows, 3), "soft", "public_features", 1e-2, BOTH)
