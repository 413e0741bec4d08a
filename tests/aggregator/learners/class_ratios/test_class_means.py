"""Class means: the problem that is solved, its bias, what noise does, and bags that send only means."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from support.mixtures import Mixtures, skewed

from aggregator.learners.class_ratios.class_means import ClassMeans, EnergyMeans, WhitenedMeans, centred
from federation.contract.errors import InputError

WORLD = Mixtures(3)


def minimised(quadratic, linear):
    """argmin rho'Q rho - 2 q'rho over the simplex, by sequential quadratic programming."""
    found = minimize(
        lambda r: r @ quadratic @ r - 2 * linear @ r,
        np.full(len(linear), 1 / len(linear)),
        method="SLSQP",
        bounds=[(0, 1)] * len(linear),
        constraints={"type": "eq", "fun": lambda r: r.sum() - 1},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return found.x


@pytest.mark.parametrize("ratios", [(0.5, 0.3, 0.2), (0.0, 0.1, 0.9)])
def test_it_minimises_the_distance_of_means_over_the_simplex(ratios):
    rng = np.random.default_rng(0)
    shares = np.concatenate([skewed(3, 0.1), skewed(3, 0.25)])
    bags, rows = WORLD.bags(shares, 30, rng), WORLD.rows(ratios, 60, rng)
    means = np.linalg.lstsq(shares, np.stack([bag.mean(axis=0) for bag in bags]), rcond=None)[0].T
    within = sum((bag - bag.mean(axis=0)).T @ (bag - bag.mean(axis=0)) for bag in bags) / (180 - 6)
    for estimator, metric in (
        (ClassMeans("linear", debiased=False), np.eye(6)),
        (
            WhitenedMeans("linear", ridge=0.3, debiased=False),
            np.linalg.inv(within + 0.05 * np.trace(within) * np.eye(6)),
        ),
    ):
        expected = minimised(means.T @ metric @ means, means.T @ metric @ rows.mean(axis=0))
        assert estimator.fit(bags, shares).predict(rows) == pytest.approx(expected, abs=1e-4)


def test_energy_is_the_energy_distance_of_set_and_mixture():
    """With one bag per class and no bias correction: 2 E|X-Y| - E|X-X'| - E|Y-Y'| over weights of the bags' rows."""
    rng = np.random.default_rng(1)
    bags, rows = WORLD.bags(np.eye(3), 20, rng), WORLD.rows([0.5, 0.4, 0.1], 30, rng)

    def distance(x, y):
        return np.linalg.norm(x[:, None] - y[None], axis=2).mean()

    between = np.array([[distance(one, other) for other in bags] for one in bags])
    to_set = np.array([distance(bag, rows) for bag in bags])
    found = EnergyMeans(debiased=False).fit(bags, np.eye(3)).predict(rows)
    assert found == pytest.approx(minimised(-between, -to_set), abs=1e-4)


@pytest.mark.parametrize(
    "estimator",
    [ClassMeans("linear"), ClassMeans("exact"), EnergyMeans()],
    ids=lambda one: f"{one.name}-{one.kernel}",
)
def test_squares_of_small_bags_are_those_of_large_ones_when_debiased(estimator):
    """U- against V-statistics: bags of twenty rows whose labels are known exactly."""
    world, rng, shares = Mixtures(3, columns=30), np.random.default_rng(2), skewed(3, 0.1)
    large = world.bags(shares, 700, rng)
    truth = centred(estimator.set_params(debiased=False).fit(large, shares).quadratic_)
    small = {True: [], False: []}
    for _ in range(250):
        bags = world.bags(shares, 20, rng)
        for debiased in small:
            found = estimator.set_params(debiased=debiased).fit(bags, shares)
            small[debiased].append(np.trace(centred(found.quadratic_)) / np.trace(truth))
    error = np.std(small[True]) / np.sqrt(250)
    assert np.mean(small[True]) == pytest.approx(1, abs=4 * error + 0.02)  # .02: `truth` is of bags of 700
    assert np.mean(small[False]) > 1 + 8 * error


def test_squares_in_a_metric_from_the_same_rows_are_those_of_the_classes_when_debiased():
    world, rng, shares = Mixtures(3, columns=30), np.random.default_rng(3), skewed(3, 0.1)
    ratios = {True: [], False: []}
    for _ in range(250):
        bags = world.bags(shares, 20, rng)
        for debiased in ratios:
            fitted = WhitenedMeans("linear", ridge=0.2, debiased=debiased).fit(bags, shares)
            truth = world.means @ fitted.metric(fitted.errors()) @ world.means.T
            ratios[debiased].append(np.trace(centred(fitted.quadratic_)) / np.trace(centred(truth)))
    error = np.std(ratios[True]) / np.sqrt(250)
    assert np.mean(ratios[True]) == pytest.approx(1, abs=4 * error + 0.02)
    assert np.mean(ratios[False]) > 1 + 8 * error


def test_noise_in_the_proportions_of_many_small_bags_is_corrected():
    """Errors in variables: ignored noise pulls class means together, so that ratios are driven apart."""
    rng, shares = np.random.default_rng(3), np.concatenate([skewed(3, 0.1)] * 60)
    noise = np.tile((0.4**2) * (np.eye(3) - 1 / 3), (len(shares), 1, 1))
    ratios, errors = np.array([0.8, 0.1, 0.1]), {True: [], False: []}
    for _ in range(15):
        bags, rows = WORLD.bags(shares, 20, rng), WORLD.rows(ratios, 600, rng)
        drawn = 0.4 * rng.normal(size=shares.shape)
        released = shares + drawn - drawn.mean(axis=1, keepdims=True)
        for corrected in errors:
            estimator = ClassMeans("linear", corrected=corrected).fit(bags, released, noise)
            errors[corrected].append(estimator.predict(rows) - ratios)
    assert np.abs(errors[True]).mean() < 0.75 * np.abs(errors[False]).mean()
    bias = {corrected: np.abs(np.mean(found, axis=0)).sum() for corrected, found in errors.items()}
    assert bias[True] < 0.3 * bias[False]


def test_noise_that_is_not_corrected_is_projected_away():
    rng = np.random.default_rng(4)
    shares = np.array([[-0.1, 1.1], [1.1, -0.1], [0.5, 0.5], [0.2, 0.8]])
    bags = Mixtures(2).bags(np.clip(shares, 0, 1), 30, rng)
    noise = np.tile(0.01 * (np.eye(2) - 0.5), (4, 1, 1))
    one = ClassMeans("linear", corrected=False).fit(bags, shares, noise)
    other = ClassMeans("linear").fit(bags, np.clip(shares, 0, 1))
    assert one.quadratic_ == pytest.approx(other.quadratic_)


@pytest.mark.parametrize("kind", [ClassMeans, WhitenedMeans])
def test_means_say_as_much_as_rows(kind):
    rng, shares = np.random.default_rng(5), np.concatenate([skewed(3, 0.1)] * 2)
    bags, rows = WORLD.bags(shares, 50, rng), WORLD.rows([0.2, 0.2, 0.6], 50, rng)
    of_rows = kind("linear").fit(bags, shares)
    means, sizes = np.stack([bag.mean(axis=0) for bag in bags]), [50] * 6
    of_means = kind("linear").fit_means(
        means, sizes, shares, covariance=of_rows.covariance_, covariance_rows=of_rows.freedom_ + 1
    )
    assert of_means.quadratic_ == pytest.approx(of_rows.quadratic_)
    assert of_means.predict(rows) == pytest.approx(of_rows.predict(rows))
    exact = kind("linear").fit_means(means, sizes, shares, covariance=np.zeros((6, 6)))
    assert exact.predict(rows) == pytest.approx(
        ClassMeans("linear", debiased=False).fit(bags, shares).predict(rows), abs=1e-6
    )


def test_noise_in_released_means_is_taken_out_of_their_squares():
    rng, shares = np.random.default_rng(6), np.concatenate([skewed(3, 0.1)] * 4)
    levels, squares = rng.uniform(0.2, 2.0, 12), {True: [], False: []}
    truth = np.trace(centred(WORLD.means @ WORLD.means.T))
    for _ in range(600):
        means = shares @ WORLD.means + np.sqrt(levels)[:, None] * rng.normal(size=(12, 6))
        for known in squares:
            fitted = ClassMeans("linear").fit_means(
                means, np.full(12, 1000), shares, covariance=np.zeros((6, 6)), mean_noise=levels if known else 0.0
            )
            squares[known].append(np.trace(centred(fitted.quadratic_)))
    error = np.std(squares[True]) / np.sqrt(600)
    # what is negative is cut off, which leaves a little
    assert np.mean(squares[True]) == pytest.approx(truth, abs=4 * error + 0.05 * truth)
    assert np.mean(squares[False]) > truth + 20 * error


def test_noise_in_released_means_is_part_of_the_metric():
    """Coordinates in which rows hardly vary count for much, but not where noise covers them."""
    shares = np.concatenate([skewed(3, 0.1)] * 2)
    covariance = np.diag([1e-4, 1, 1, 1, 1, 1])
    quiet, loud = (
        WhitenedMeans("linear", ridge=1e-3).fit_means(
            shares @ WORLD.means, [100] * 6, shares, covariance=covariance, mean_noise=level
        )
        for level in (0.0, 1.0)
    )
    gains = [np.abs(fitted.operator_[0] / fitted.class_means_[0]).max() for fitted in (quiet, loud)]
    assert gains[0] > 100
    assert gains[1] < 0.1


def test_fit_means_refuses_what_it_cannot_use():
    shares = skewed(3, 0.1)
    means, sizes = shares @ WORLD.means, [9] * 3
    for estimator, arguments, message in (
        (ClassMeans(), {}, "needs kernel 'linear'"),
        (EnergyMeans(), {}, "needs kernel 'linear'"),
        (ClassMeans("linear"), {}, "covariance"),
        (WhitenedMeans("linear", debiased=False), {}, "covariance"),
        (WhitenedMeans("linear"), {"covariance": np.eye(5)}, "must have shape"),
        (WhitenedMeans("linear"), {"covariance": np.eye(6), "covariance_rows": 3}, "covariance_rows"),
        (WhitenedMeans("linear"), {"covariance": np.eye(6), "mean_noise": -1.0}, "mean_noise"),
    ):
        with pytest.raises(InputError, match=message):
            estimator.fit_means(means, sizes, shares, **arguments)
    with pytest.raises(InputError, match="rank 2"):
        ClassMeans("linear", debiased=False).fit_means(means[:2], [9] * 2, shares[:2])
    assert ClassMeans("linear", debiased=False).fit_means(means, sizes, shares).errors() is None
