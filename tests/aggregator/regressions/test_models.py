"""Regressions from what all parties answered: against least squares, whatever it is learned from.

Shrunk regressions from sums over bags: against shrinkage of the sums as rows, and against least squares. Predicted
excess risks against least squares on simulated labels and noise.
"""

import math

import numpy as np
import pytest
from support.label_answers import collected
from support.linear_labels import RANGE, WEIGHTS, draw

from aggregator.learners.bag_regression.linear import BagLeastSquares
from aggregator.learners.shrinkage import shrink
from aggregator.protocols.bag_regression import NoisyWeightedLLP
from aggregator.regressions import models as risk
from aggregator.regressions.models import (
    FREE,
    by_steps,
    constant_answer,
    formed_bags,
    from_bags,
    from_labels,
    from_moments,
    from_sums,
    shrunk_sums,
    sum_variance,
    variance,
)
from aggregator.releases.estimator_models import BagNetwork
from aggregator.trial.plan import PublicNumbers
from federation.contract.errors import InputError
from federation.contract.query import ReleaseId
from federation.contract.randomness import NoiseBits
from federation.features.feature_map import FeatureMap
from federation.features.steps import Append, UnitNorm
from federation.mechanisms.labels.calibration import calibrate
from federation.mechanisms.labels.mechanism import LabelRange
from federation.mechanisms.labels.shaped_gaussian import calibrate as shaped_gaussian_calibrate
from federation.mechanisms.labels.shaped_gaussian import fit_shape
from federation.queries.labels import (
    BagSums,
    BagSumsNoise,
    BagSumsQuestion,
    LabelledRows,
    WeightedSumsNoise,
    WeightedSumsQuestion,
)

ROWS, LABELS = draw(3, 200)
EXPECTED = np.linalg.lstsq(ROWS, LABELS)[0]


def weights_of(described):
    description, arrays = described
    assert description == {"learner": "linear", "range": list(RANGE)}
    return arrays["weights"]


def test_all_sources_give_least_squares_and_noise_without_a_bound_the_middle_of_the_range(rng):
    np.testing.assert_allclose(weights_of(from_labels("linear", ROWS, LABELS, RANGE, 0)), EXPECTED, atol=1e-9)
    np.testing.assert_allclose(weights_of(from_moments(ROWS.T @ ROWS, ROWS.T @ LABELS, RANGE)), EXPECTED, atol=1e-9)
    alone = ROWS[:, None, :], np.ones((200, 1))
    np.testing.assert_allclose(weights_of(from_bags("linear", *alone, LABELS, RANGE, 0)), EXPECTED, atol=1e-9)
    weights = rng.choice([-1.0, 1.0], size=(50, 4))
    rows, sums = ROWS.reshape(50, 4, 3), (weights * LABELS.reshape(50, 4)).sum(axis=1)
    row_sums = (weights[..., None] * rows).sum(axis=1)
    found = weights_of(from_bags("linear", rows, weights, sums, RANGE, 0))
    np.testing.assert_allclose(found, np.linalg.lstsq(row_sums, sums)[0], atol=1e-9)
    np.testing.assert_array_equal(found, weights_of(from_sums(row_sums, sums, RANGE)))
    noise = calibrate("estimated_bins", epsilon=2.0, delta=0.0, label_range=(0.0, 4.0), debiased=True)
    rows = np.column_stack([ROWS[:5], np.ones(5)])
    description, arrays = from_labels("linear", rows, LABELS[:5], (0.0, 4.0), 0, noise)
    assert description["range"] == [0.0, 4.0]
    np.testing.assert_allclose(rows @ arrays["weights"], 2.0, atol=1e-3)


@pytest.mark.parametrize(("count", "few"), [(200, False), (10, True), (3, True), (2, True)])
def test_private_labels_are_shrunk_by_how_they_vary_or_where_they_are_few_by_their_mechanism(count, few):
    noise = calibrate("one_bit", epsilon=2.0, delta=0.0, label_range=RANGE)
    rows, labels = ROWS[:count], noise.release(LABELS[:count], NoiseBits(0, "few"))
    if few:
        variance = np.mean(noise.variance(np.linspace(*RANGE, 101)))
    else:
        residuals = labels - rows @ np.linalg.lstsq(rows, labels)[0]
        variance = residuals @ residuals / (count - 3)
    gram, known = rows.T @ rows, {"ones": rows.sum(axis=0), "rows": count, "label_range": RANGE}
    expected = shrink(gram, rows.T @ labels, variance * gram, **known)
    found = weights_of(from_labels("linear", rows, labels, RANGE, 0, noise))
    np.testing.assert_allclose(found, expected.weights, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_sums_are_no_regression(count):
    with pytest.raises(InputError, match=f"{count}"):
        from_sums(ROWS[:count], LABELS[:count], RANGE)
    with pytest.raises(InputError):
        by_steps(ROWS[:count], LABELS[:count], RANGE, 1, 0)


def test_columns_may_depend_be_far_or_lack_a_constant_and_too_few_bags_leave_the_middle_of_the_range():
    rows = np.column_stack([ROWS, ROWS[:, 0], np.zeros(200), 1e9 * ROWS[:, 1]])
    found = weights_of(from_moments(rows.T @ rows, rows.T @ LABELS, RANGE))
    np.testing.assert_allclose(rows @ found, ROWS @ EXPECTED, atol=1e-6)
    assert found[4] == 0
    assert found[0] == pytest.approx(found[3])  # in units of each column's norm the two share one weight
    assert found[1] == pytest.approx(1e9 * found[5])
    answers = collected(NoisyWeightedLLP(size=4, noise="off"), broken=(2,))
    formed = formed_bags(answers)
    assert formed.shape == (5, 87 // 4)
    assert formed.sum(axis=1).tolist() == [n // 4 for n in (80, 87, 87, 80, 87)]
    assert not (~formed[:, :-1] & formed[:, 1:]).any()  # those that there are come first
    question = asked(ends=(100.0, 120.0), bags=2, epsilon=0.01)
    row_sums, label_sums = summed(question, shift=110.0)
    found = shrunk_sums(row_sums, label_sums, question)
    norms = np.linalg.norm(row_sums, axis=0)
    lacking = np.linalg.svd(row_sums / norms)[2][2:]  # directions in which there is no sum
    np.testing.assert_allclose(lacking @ (norms * found), lacking @ (norms * [0, 0, 0, 110.0]), rtol=1e-9)
    question = asked()
    row_sums, label_sums = summed(question)
    assert shrunk_sums(row_sums, label_sums, asked(steps=(Append(1.0), UnitNorm()))) is None
    assert constant_answer(FeatureMap(3, ())) is None
    assert constant_answer(FeatureMap(3, (Append(0.0),))) is None
    rows = FeatureMap(3, (Append(4.0),)).transform(draw(0, 5)[0])
    np.testing.assert_array_equal(rows @ constant_answer(FeatureMap(3, (Append(4.0),))), np.ones(5))


def test_networks_are_described_with_their_seed_and_range(monkeypatch):
    asked = []

    class Fitted:
        def __init__(self, label_range, seed):
            asked.append((label_range, seed))

        def fit(self, rows, bags, weights, sums):
            assert (rows.shape, bags.shape) == ((200, 3), (50, 4))
            np.testing.assert_array_equal(rows[bags], ROWS.reshape(50, 4, 3))
            return self

        def fit_labels(self, rows, labels):
            return self

        def to_arrays(self):
            return {"layers": 1}, {"weights": np.ones(1)}

    monkeypatch.setattr("aggregator.regressions.models.BagNetwork", Fitted)
    for description, arrays in (
        from_bags("network", ROWS.reshape(50, 4, 3), np.ones((50, 4)), np.ones(50), RANGE, 7),
        from_labels("network", ROWS, LABELS, RANGE, 7),
    ):
        assert description == {"layers": 1, "learner": BagNetwork.name}
        assert list(arrays) == ["weights"]
    assert asked == [(RANGE, 7)] * 2


SIZE = 4
WITH_CONSTANT = (Append(1.0),)
RELEASE = {"release": ReleaseId("a release"), "draws": 1, "seeded": True}


def asked(kind="gaussian", ends=RANGE, epsilon=1.0, steps=WITH_CONSTANT, bags=20):
    rows = LabelledRows(FeatureMap(3, steps), *ends, bags * SIZE)
    if kind == "secret":
        noise = WeightedSumsNoise("gaussian", epsilon, 1e-3)
        return WeightedSumsQuestion(noise, rows, BagSums(0, bags, SIZE, "gaussian", 0, 0), **RELEASE)
    return BagSumsQuestion(BagSumsNoise(kind, epsilon, 1e-3), rows, BagSums(0, bags, SIZE, "signs", SIZE, 0), **RELEASE)


def summed(question, seed=0, shift=0.0):
    """Sums of rows with a constant and of noisy labels, of as many bags as the question asks for."""
    bags = question.design.bags
    random = np.random.default_rng(seed)
    rows, labels = draw(seed, bags * SIZE)
    rows, labels = np.column_stack([rows, np.ones(len(rows))]), labels + shift
    weights = random.choice([-1.0, 1.0], size=(bags, SIZE))
    held = rows.reshape(bags, SIZE, 4)
    deviation = question.mechanism().sigma * SIZE**0.5
    sums = (weights * labels.reshape(bags, SIZE)).sum(axis=1) + deviation * random.normal(size=bags)
    return np.einsum("mk,mkd->md", weights, held), sums


@pytest.mark.parametrize("shift", [0.0, 500.0])
def test_sums_take_the_place_of_rows(shift):
    question = asked(ends=(RANGE[0] + shift, RANGE[1] + shift))
    row_sums, label_sums = summed(question, shift=shift)
    gram, constant = row_sums.T @ row_sums, np.array([0, 0, 0, 1.0])
    residuals = label_sums - row_sums @ np.linalg.lstsq(row_sums, label_sums)[0]
    noise = residuals @ residuals / (20 - 4) * gram
    known = {"ones": gram @ constant, "rows": 80, "label_range": question.rows.label_range}
    expected = shrink(gram, row_sums.T @ label_sums, noise, **known)
    np.testing.assert_allclose(shrunk_sums(row_sums, label_sums, question), expected.weights, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_it_is_closer_to_the_law_than_least_squares(epsilon):
    question, rows = asked(epsilon=epsilon), np.column_stack([draw(99, 300)[0], np.ones(300)])
    worlds = [summed(question, seed) for seed in range(20)]
    least = [BagLeastSquares().fit(*world).weights_ for world in worlds]
    shrunk = [shrunk_sums(*world, question) for world in worlds]
    before, after = (np.mean((rows @ (np.array(found) - [*WEIGHTS, 0.0]).T) ** 2) for found in (least, shrunk))
    assert after < {0.1: 0.05, 1.0: 0.5, 10.0: 1.0}[epsilon] * before


@pytest.mark.parametrize("beyond", [-1, 0])
def test_residuals_tell_of_noise_where_there_are_enough(rng, beyond):
    rows = np.column_stack([rng.normal(size=(3 + FREE + beyond, 3)), np.zeros(3 + FREE + beyond)])
    labels = rng.normal(size=len(rows))
    if beyond:
        assert variance(rows, labels, 7.0) == 7.0
    else:
        residuals = labels - rows @ np.linalg.lstsq(rows, labels)[0]
        assert variance(rows, labels, 7.0) == pytest.approx(residuals @ residuals / FREE)


@pytest.mark.parametrize(("kind", "noise"), [
    ("gaussian", lambda mechanism: SIZE * mechanism.sigma**2), ("laplace", lambda mechanism: 2 * mechanism.scale**2),
    ("secret", lambda mechanism: mechanism.tau**2),
])  # fmt: skip
def test_the_variance_of_a_sum_is_that_of_noise_and_of_labels_all_along_the_range(kind, noise):
    question = asked(kind)
    assert sum_variance(question) == pytest.approx(noise(question.mechanism()) + SIZE * 20**2 / 12)


N, R, S2 = 2000, 6, 0.5
RUNS = 400


@pytest.fixture(scope="module")
def world():
    random = np.random.default_rng(1)
    rows = random.standard_t(5, (N, R))
    weights = random.standard_normal(R)
    return rows, weights, random


def excess(rows, weights, found):
    """Mean of (x'w_hat - x'w)² over the rows, for each found model (RUNS, R)."""
    return np.square((found - weights) @ rows.T).mean()


def fitted(rows, sums):
    return np.linalg.solve(rows.T @ rows, sums.T).T


def close(measured, predicted, freedom=R):
    """To five standard errors of a mean of chi-squares with so many degrees of freedom."""
    return measured == pytest.approx(predicted, rel=5 * math.sqrt(2 / (freedom * RUNS)))


def test_labels_with_noise_of_their_own(world):
    rows, weights, random = world
    noise = random.standard_normal((RUNS, N)) * math.sqrt(S2) + random.laplace(0, 3, (RUNS, N))
    found = fitted(rows, (rows @ weights + noise) @ rows)
    assert close(excess(rows, weights, found), risk.private_labels(R, N, S2, 2 * 3**2))
    assert risk.private_labels(R, N, S2, 0.0) == risk.least_squares(R, N, S2)


@pytest.mark.parametrize("parties", [1, 5])
def test_noisy_sums(world, parties):
    rows, weights, _ = world
    labels = rows @ weights
    reach = float(np.abs(labels).max())
    shape = fit_shape(rows)
    known = {"rows": N, "epsilon": 1.0, "delta": 1e-3, "labels": LabelRange(-reach, reach)}
    mechanism = shaped_gaussian_calibrate(shape, "gaussian", **known)
    sums = sum(mechanism.release(rows, labels, NoiseBits(p, "sums"), RUNS) - labels @ rows for p in range(parties))
    found = fitted(rows, sums + labels @ rows)
    predicted = parties * mechanism.variance() * shape.trace / N
    # The noise of an optimal shape is far from white in whitened coordinates: fewer degrees of freedom than R.
    assert close(excess(rows, weights, found), predicted, 1)
    assert risk.least_trace(R, N) <= shape.trace


@pytest.mark.parametrize(
    ("rank", "rows", "optimal"), [(11, 353, 2.4), (9, 16_346, 19), (10, 36_584, 48), (113, 79_809, 13), (5, 6, None)]
)
def test_typical_traces_lie_between_their_bounds_near_those_of_real_tables(rank, rows, optimal):
    """diabetes, housing (logarithms), protein and census weeks: traces over the least one."""
    best, whitened = (risk.typical_trace(rank, rows, shape) for shape in ("optimal", "whitened"))
    least = risk.least_trace(rank, rows)
    assert least <= best <= whitened <= rank
    assert optimal is None or 0.5 < best / least / optimal < 2


def test_what_knows_its_noise_errs_as_a_posterior_mean_does_and_is_hopeless_beyond_what_rows_explain():
    random, rank, rows, width, noise = np.random.default_rng(3), 5, 400, 2.0, 30.0
    spread = np.sqrt([rows * width**2 / 12, *[rows * 0.02 * width**2 / (rank - 1)] * (rank - 1)])
    answers = random.standard_normal((20_000, rank)) * spread
    answers[:, 0] /= math.sqrt(2)  # mean labels are nearer to the middle than the model allows for
    seen = answers + random.standard_normal((20_000, rank)) * math.sqrt(noise)
    errors = seen * (spread**2 / (spread**2 + noise)) - answers
    measured = np.square(errors).sum(axis=1).mean() / rows
    assert measured == pytest.approx(risk.shrunk_risk(rank, rows, noise, width), rel=0.03)
    assert risk.shrunk_risk(rank, rows, 1e-9, width) == pytest.approx(rank * 1e-9 / rows)
    risks = [risk.shrunk_risk(rank, rows, noise, width) for noise in np.geomspace(1e-3, 1e6, 40)]
    assert risks == sorted(risks)
    assert risks[-1] == pytest.approx((1 / 24 + 0.02) * width**2, rel=1e-2)
    assert risk.expected(0.021, 0.1, 1.0, False, "so").hopeless
    near = risk.expected(0.019, 0.1, 1.0, False, "so")
    assert (near.hopeless, near.basis) == (False, "guess")
    assert risk.residual(PublicNumbers(1e-6), 6.0) == pytest.approx(36 * (1 / 12 - 0.02))
    assert risk.residual(PublicNumbers(1e-6, residual=0.5), 6.0) == 0.5
