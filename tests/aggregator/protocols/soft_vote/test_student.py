import numpy as np
import pytest
from sklearn.mixture import GaussianMixture
from support.worlds import run

from aggregator.protocols.soft_vote import student as module
from aggregator.protocols.soft_vote.soft_vote import SoftVote
from aggregator.protocols.soft_vote.student import Student, gaussian_clusters, student_of
from aggregator.releases.models import ReleasedModels
from aggregator.trial.plan import VariantPlan
from aggregator.trial.public_rows import PublicRows
from aggregator.trial.trial import Views, World
from federation.contract.randomness import NoiseBits
from federation.engines.inline import open_grid
from federation.mechanisms.noise.additive import calibrate
from federation.numerics.rows import contrasts

DEFAULT = ("scale", {"whiten": "auto"}, "constant", "unit_norm")


def clusters(classes=3, rows=300, width=6, seed=1, apart=6.0):
    """Whitened points in well separated clusters, and which."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, rows)
    points = random.normal(size=(rows, width)) + apart * np.eye(classes, width)[labels]
    centred = points - points.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / rows)
    return np.ascontiguousarray(centred @ vectors[:, ::-1] / np.sqrt(values[::-1])), labels


def as_public(points):
    features = np.column_stack([points, np.ones(len(points))])
    return PublicRows(None, features / np.linalg.norm(features, axis=1, keepdims=True))


def prepared(points, labels, classes, dimensions, apart=1.0):
    """A student behind maps of few and of all dimensions, the noise-free statistic of the labels, and a decoder."""
    asked, released = as_public(points[:, :dimensions]), as_public(points)
    coordinates = asked.coordinates("whitened")
    value = contrasts(classes).T @ np.eye(classes)[labels].T @ coordinates.rows / len(points)
    value = value.ravel() / np.linalg.norm(value) * apart
    return Student(asked, released, coordinates), value


def decoded(student, noisy, classes):
    blocks = noisy.reshape(len(noisy), classes - 1, -1) / student.coordinates.scale
    return contrasts(classes) @ blocks @ student.coordinates.directions.T


@pytest.mark.parametrize("noise", ["pure", "gaussian"])
def test_the_relative_deviation_of_the_noise_is_measured(noise):
    mechanism = calibrate(noise, sensitivity=0.1, dimension=12, epsilon=1.0, delta=1e-6)
    drawn = mechanism.release(np.zeros(12), NoiseBits(1, "student"), 60_000)
    squares = np.einsum("nd,nd->n", drawn, drawn)
    assert squares.mean() == pytest.approx(12 * mechanism.variance(), rel=0.02)
    assert squares.std() / squares.mean() == pytest.approx(module._relative_deviation(mechanism), rel=0.04)


def test_clusters_are_found_from_wrong_labels_and_are_near_those_of_an_independent_implementation():
    points, truth = clusters()
    random = np.random.default_rng(2)
    labels = np.where(random.random(len(truth)) < 0.33, random.integers(0, 3, len(truth)), truth)
    shares, discriminant = gaussian_clusters(points, labels, 3)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)
    assert (shares.argmax(axis=1) == truth).mean() > 0.99
    scores = np.column_stack([points, np.ones(len(points))]) @ discriminant.T
    assert (scores.argmax(axis=1) == shares.argmax(axis=1)).all()
    for found in gaussian_clusters(points, np.minimum(truth, 1), 4):  # classes that nobody is labelled with
        assert np.isfinite(found).all()
    points, truth = clusters(rows=600)
    shares, _ = gaussian_clusters(points, truth, 3)
    means = np.stack([points[truth == label].mean(axis=0) for label in range(3)])
    other = GaussianMixture(3, covariance_type="tied", means_init=means, reg_covar=0.1).fit(points)
    assert (other.predict(points) == shares.argmax(axis=1)).mean() > 0.99


def test_lifted_weights_decide_as_they_did_and_clusters_that_explain_the_release_replace_its_model():
    points, truth = clusters()
    student, value = prepared(points, truth, 3, 2)
    weights = decoded(student, value[None], 3)
    lifted = student.lifted(weights)
    assert lifted.shape == (1, 3, points.shape[1] + 1)
    before, after = student.asked.rows @ weights[0].T, student.released.rows @ lifted[0].T
    np.testing.assert_array_equal(before.argmax(axis=1), after.argmax(axis=1))
    ratios = before / after
    np.testing.assert_allclose(ratios, ratios[:, :1] @ np.ones((1, 3)), rtol=1e-9)  # one positive factor per row
    assert (ratios > 0).all()
    points, truth = clusters(apart=8.0)
    student, value = prepared(points, truth, 3, 3)
    mechanism = calibrate("pure", sensitivity=0.001, dimension=len(value), epsilon=0.3, delta=0.0)
    noisy = mechanism.release(value, NoiseBits(5, "taught"), 20)
    weights = decoded(student, noisy, 3)
    taught = student.taught(noisy, weights, mechanism)
    replaced = [not np.array_equal(one, other) for one, other in zip(taught, student.lifted(weights), strict=True)]
    assert np.mean(replaced) > 0.5
    right = [(student.released.rows @ one.T).argmax(axis=1) == truth for one in taught]
    assert np.mean(right) > 0.97


def test_noise_alone_and_rows_that_are_no_clusters_keep_the_model():
    points, truth = clusters()
    student, value = prepared(points, truth, 3, 3)
    mechanism = calibrate("gaussian", sensitivity=1.0, dimension=len(value), epsilon=1.0, delta=1e-6)
    noisy = mechanism.release(np.zeros(len(value)), NoiseBits(5, "noise"), 40)
    weights = decoded(student, noisy, 3)
    pairs = zip(student.taught(noisy, weights, mechanism), student.lifted(weights), strict=True)
    assert np.mean([np.array_equal(one, other) for one, other in pairs]) > 0.9
    points, _ = clusters(apart=0.0)
    truth = (points @ np.random.default_rng(3).normal(size=(points.shape[1], 3))).argmax(axis=1)
    student, value = prepared(points, truth, 3, 6)
    mechanism = calibrate("gaussian", sensitivity=0.01, dimension=len(value), epsilon=1.0, delta=1e-6)
    noisy = mechanism.release(value, NoiseBits(6, "flat"), 5)
    weights = decoded(student, noisy, 3)
    np.testing.assert_array_equal(student.taught(noisy, weights, mechanism), student.lifted(weights))


def session(make_plan, features=DEFAULT, classes=("a", "b", "c"), **options):
    plan = make_plan(variants=(VariantPlan("v", "soft_vote", options),), features=features, classes=classes)
    world = World(plan, Views(plan)).of(plan.variants[0])
    return SoftVote(**options).begin(world, plan.releases.epsilons[0], 1)


def test_releases_of_unit_shares_of_three_classes_have_a_student_and_their_map_the_first_dimensions(
    make_plan,
):
    assert isinstance(session(make_plan)._refinement, Student)
    for options in ({"student": False}, {"share": "raw"}, {"submit": "votes"}, {"noise": "off"}):
        assert not isinstance(session(make_plan, **options)._refinement, Student)
    assert not isinstance(session(make_plan, classes=("a", "b"))._refinement, Student)
    plan = make_plan(features=DEFAULT, epsilons=(0.5,))
    views = Views(plan)
    asked = views.at("pure", 0.5).public
    found = student_of(views, asked, "whitened")
    size = asked.rows.shape[1] - 1
    assert found.released.rows.shape[1] >= asked.rows.shape[1]
    few, many = (rows[:, :size] / rows[:, -1:] for rows in (asked.rows, found.released.rows))
    np.testing.assert_allclose(few, many, atol=1e-9)


@pytest.mark.parametrize("features", [("unit_norm",), ({"whiten": 2}, "unit_norm"), ("constant", "unit_norm")])
def test_features_that_do_not_end_in_whitened_dimensions_have_none(make_plan, features):
    plan = make_plan(features=features)
    views = Views(plan)
    asked = views.at("pure", 1.0).public
    assert student_of(views, asked, "whitened") is None
    found = session(make_plan, features)
    assert found.feature_map is asked.feature_map or found.feature_map.dimension == asked.feature_map.dimension


def test_a_release_with_a_student_is_written_and_read(make_plan, tmp_path, public):
    plan = make_plan(variants=(VariantPlan("v", "soft_vote", {}),), features=DEFAULT, epsilons=(50.0,))
    _, summary = run(open_grid("inline"), plan, 40)
    [entry] = summary["ledger"]["releases"]
    assert any("clusters of the public rows" in check for check in entry["checks"])
    models = ReleasedModels.load(tmp_path / "v.npz")
    labels = public.rows[:, :3].argmax(axis=1)
    assert (models.scores(public.rows, 0, 0).argmax(axis=1) == labels).mean() > 0.6
    assert np.isfinite(models.scores(public.rows, 0, 0)).all()
