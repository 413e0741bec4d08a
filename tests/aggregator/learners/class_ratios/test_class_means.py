"""Class means: the problem that is solved, its bias, what noise does, and bags that send only means.

Least squares for class means against closed forms, and its errors against simulation.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from support.mixtures import Mixtures, noisy, skewed

from aggregator.learners.class_ratios.class_means import (
    ClassMeans,
    EnergyMeans,
    MeanErrors,
    Unmixing,
    WhitenedMeans,
    centred,
    expected_proportions,
    given_labels,
    positive,
    tempered,
    undistorted,
)
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
    whitened = np.linalg.inv(within + 0.05 * np.trace(within) * np.eye(6))
    for estimator, metric in (
        (ClassMeans("linear", debiased=False), np.eye(6)),
        (WhitenedMeans("linear", ridge=0.3, debiased=False), whitened),
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


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator", [ClassMeans("linear"), ClassMeans("exact"), EnergyMeans(), WhitenedMeans("linear", ridge=0.2)]
)
def test_squares_of_small_bags_are_those_of_large_ones_or_of_the_classes_when_debiased(estimator):
    """U- against V-statistics: bags of twenty rows whose labels are known exactly; a metric is from the same rows."""
    world, rng, shares = Mixtures(3, columns=30), np.random.default_rng(2), skewed(3, 0.1)
    large = estimator.set_params(debiased=False).fit(world.bags(shares, 700, rng), shares).quadratic_
    small = {True: [], False: []}
    for _ in range(250):
        bags = world.bags(shares, 20, rng)
        for debiased in small:
            found, truth = estimator.set_params(debiased=debiased).fit(bags, shares), large
            if estimator.name == "whitened":
                truth = world.means @ found.metric(found.errors()) @ world.means.T
            small[debiased].append(np.trace(centred(found.quadratic_)) / np.trace(centred(truth)))
    error = np.std(small[True]) / np.sqrt(250)
    assert np.mean(small[True]) == pytest.approx(1, abs=4 * error + 0.02)  # .02: `large` is of bags of 700
    assert np.mean(small[False]) > 1 + 8 * error


@pytest.mark.slow
def test_noise_in_the_proportions_is_corrected_or_projected_away():
    """Errors in variables: ignored noise pulls class means together, so that ratios are driven apart."""
    rng, shares = np.random.default_rng(3), np.concatenate([skewed(3, 0.1)] * 60)
    ratios, errors = np.array([0.8, 0.1, 0.1]), {True: [], False: []}
    for _ in range(8):
        bags, rows = WORLD.bags(shares, 20, rng), WORLD.rows(ratios, 600, rng)
        released, noise = noisy(shares, 0.4, rng)
        for corrected in errors:
            estimator = ClassMeans("linear", corrected=corrected).fit(bags, released, noise)
            errors[corrected].append(estimator.predict(rows) - ratios)
    assert np.abs(errors[True]).mean() < 0.75 * np.abs(errors[False]).mean()
    bias = {corrected: np.abs(np.mean(found, axis=0)).sum() for corrected, found in errors.items()}
    assert bias[True] < 0.3 * bias[False]
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
    known = {"covariance": of_rows.covariance_, "covariance_rows": of_rows.freedom_ + 1}
    of_means = kind("linear").fit_means(means, sizes, shares, **known)
    assert of_means.quadratic_ == pytest.approx(of_rows.quadratic_)
    assert of_means.predict(rows) == pytest.approx(of_rows.predict(rows))
    exact = kind("linear").fit_means(means, sizes, shares, covariance=np.zeros((6, 6)))
    plain = ClassMeans("linear", debiased=False).fit(bags, shares)
    assert exact.predict(rows) == pytest.approx(plain.predict(rows), abs=1e-6)


@pytest.mark.slow
def test_noise_in_released_means_is_taken_out_of_their_squares():
    rng, shares = np.random.default_rng(6), np.concatenate([skewed(3, 0.1)] * 4)
    levels, squares = rng.uniform(0.2, 2.0, 12), {True: [], False: []}
    truth = np.trace(centred(WORLD.means @ WORLD.means.T))
    for _ in range(600):
        means = shares @ WORLD.means + np.sqrt(levels)[:, None] * rng.normal(size=(12, 6))
        for known in squares:
            noise = {"covariance": np.zeros((6, 6)), "mean_noise": levels if known else 0.0}
            fitted = ClassMeans("linear").fit_means(means, np.full(12, 1000), shares, **noise)
            squares[known].append(np.trace(centred(fitted.quadratic_)))
    error = np.std(squares[True]) / np.sqrt(600)
    # what is negative is cut off, which leaves a little
    assert np.mean(squares[True]) == pytest.approx(truth, abs=4 * error + 0.05 * truth)
    assert np.mean(squares[False]) > truth + 20 * error


def test_noise_in_released_means_is_part_of_the_metric():
    """Coordinates in which rows hardly vary count for much, but not where noise covers them."""
    shares = np.concatenate([skewed(3, 0.1)] * 2)
    covariance = np.diag([1e-4, 1, 1, 1, 1, 1])
    means, estimators = shares @ WORLD.means, (WhitenedMeans("linear", ridge=1e-3) for _ in range(2))
    quiet, loud = (
        one.fit_means(means, [100] * 6, shares, covariance=covariance, mean_noise=level)
        for one, level in zip(estimators, (0.0, 1.0), strict=True)
    )
    gains = [np.abs(fitted.operator_[0] / fitted.class_means_[0]).max() for fitted in (quiet, loud)]
    assert gains[0] > 100
    assert gains[1] < 0.1


def test_fit_means_refuses_what_it_cannot_use():
    shares = skewed(3, 0.1)
    means, sizes = shares @ WORLD.means, [9] * 3
    for estimator, arguments, message in (
        (ClassMeans(), {}, "linear"),
        (EnergyMeans(), {}, "linear"),
        (ClassMeans("linear"), {}, "covariance"),
        (WhitenedMeans("linear", debiased=False), {}, "covariance"),
        (WhitenedMeans("linear"), {"covariance": np.eye(5)}, None),
        (WhitenedMeans("linear"), {"covariance": np.eye(6), "covariance_rows": 3}, "covariance_rows"),
        (WhitenedMeans("linear"), {"covariance": np.eye(6), "mean_noise": -1.0}, "mean_noise"),
    ):
        with pytest.raises(InputError, match=message):
            estimator.fit_means(means, sizes, shares, **arguments)
    with pytest.raises(InputError, match="2"):
        ClassMeans("linear", debiased=False).fit_means(means[:2], [9] * 2, shares[:2])
    assert ClassMeans("linear", debiased=False).fit_means(means, sizes, shares).errors() is None


def centring(classes):
    return np.eye(classes) - 1 / classes


@settings(derandomize=True)
@given(st.integers(2, 5), st.integers(0, 20), st.integers(0, 2**32))
def test_it_is_weighted_least_squares_and_recovers_exact_means(classes, further, seed):
    rng = np.random.default_rng(seed)
    shares = np.concatenate([skewed(classes, 0.05), rng.dirichlet(np.ones(classes), further)])
    sizes = rng.integers(1, 100, len(shares)).astype(float)
    found = Unmixing(shares, sizes).matrix
    assert found.T @ shares == pytest.approx(np.eye(classes), abs=1e-9)
    assert found.sum(axis=0) == pytest.approx(1)
    answers = rng.normal(size=len(shares))
    roots = np.sqrt(sizes)
    expected = np.linalg.lstsq(roots[:, None] * shares, roots * answers, rcond=None)[0]
    assert found.T @ answers == pytest.approx(expected)
    if not further:  # as many bags as classes are inverted whatever their noise
        noise = np.tile(0.01 * centring(classes), (classes, 1, 1))
        assert Unmixing(shares, sizes, noise).matrix == pytest.approx(np.linalg.inv(shares))


def test_known_noise_is_corrected_and_ignored_noise_shrinks():
    """Errors in variables: the naive slope is attenuated by reliability, the corrected one is consistent."""
    rng, means = np.random.default_rng(0), np.array([[0.0, 1.0], [2.0, 0.0], [1.0, 3.0]])
    shares = rng.dirichlet(np.full(3, 0.5), 4000)
    released, noise = noisy(shares, 0.15, rng)
    sizes = np.full(len(shares), 30.0)
    naive, corrected = (Unmixing(released, sizes, known).matrix.T @ shares @ means for known in (None, noise))
    assert np.abs(corrected - means).max() < 0.05
    assert np.abs(naive - means).max() > 0.2
    released, noise = noisy(rng.dirichlet(np.full(3, 20.0), 200), 0.3, rng)  # as large as the signal
    assert np.abs(Unmixing(released, np.ones(200), noise).matrix).max() < 1


@pytest.mark.slow
@pytest.mark.parametrize("bags", [6, 8, 20])
def test_few_noisy_bags_are_corrected_as_far_as_they_should_be(bags):
    """The bias is of fourth order in the noise; naive least squares has one of second order."""
    rng, answers = np.random.default_rng(bags), np.array([0.0, 1.0, 3.0])
    shares, sizes = np.concatenate([skewed(3, 0.1)] * 7)[:bags], np.ones(bags)
    bias = {False: np.zeros(3), True: np.zeros(3)}
    for _ in range(1000):
        released, noise = noisy(shares, 0.02, rng)
        for mirrored in (released, 2 * shares - released):  # odd orders cancel
            for corrected in bias:
                unmix = Unmixing(mirrored, sizes, noise if corrected else None).matrix
                bias[corrected] += unmix.T @ shares @ answers - answers
    assert np.abs(bias[True]).max() < 0.2 * np.abs(bias[False]).max()


@pytest.mark.slow
@pytest.mark.parametrize("bags", [6, 15])
def test_distorted_products_are_mended(bags):
    """Exact means and noisy proportions: what is left of the noise's effect on mu'mu."""
    rng, means = np.random.default_rng(2), Mixtures(3).means
    shares, sizes = np.concatenate([skewed(3, 0.1)] * 5)[:bags], np.ones(bags)
    truth, raw, mended = centred(means @ means.T), np.zeros((3, 3)), np.zeros((3, 3))
    for _ in range(500):
        released, noise = noisy(shares, 0.03, rng)
        for mirrored in (released, 2 * shares - released):
            known = Unmixing(mirrored, sizes, noise)
            classes = known.matrix.T @ shares @ means
            raw += centred(classes @ classes.T) - truth
            mended += centred(undistorted(classes @ classes.T, known.distortion, known.mean_noise)) - truth
    assert np.abs(mended).max() < 0.4 * np.abs(raw).max()


def test_noise_is_weighted_by_bag_and_labels_covary_as_those_of_the_rows_do():
    shares, levels = np.concatenate([skewed(2, 0.2)] * 3), np.array([1.0, 2, 3, 4, 5, 6])
    known = Unmixing(shares, np.ones(6), 1e-9 * levels[:, None, None] * centring(2))
    expected = sum(s * np.outer(b, b) for s, b in zip(levels / 3.5, known.matrix, strict=True))
    assert known.distortion == pytest.approx(expected)
    assert known.mean_noise == pytest.approx(3.5e-9 * centring(2))
    assert not Unmixing(shares, np.ones(6)).distortion.any()
    # Q_U = Q - tr(Q L) K for U-statistics, whatever Q, K and L are.
    rng = np.random.default_rng(3)
    counts = rng.integers(1, 50, (40, 3))
    sizes = counts.sum(axis=1).astype(float)
    indicators = [np.repeat(np.eye(3), row, axis=0) for row in counts]
    within = np.concatenate([rows - rows.mean(axis=0) for rows in indicators])
    known = Unmixing(counts / sizes[:, None], sizes)
    assert known.label_covariance == pytest.approx(within.T @ within / len(within))
    products = centred(np.cov(rng.normal(size=(3, 9))))
    sampling, labels = 0.01 * np.eye(3), 0.2 * centring(3)
    taken = products - np.sum(products * labels) * sampling
    assert centred(given_labels(taken, sampling, labels)) == pytest.approx(centred(products))
    batch = given_labels(np.stack([taken, 2 * taken]), sampling, labels)
    assert batch[1] == pytest.approx(2 * batch[0])


@settings(derandomize=True)
@given(st.integers(2, 6), st.integers(0, 2**32))
def test_positive_changes_what_is_negative_and_nothing_else(classes, seed):
    rng = np.random.default_rng(seed)
    form = rng.normal(size=(classes, classes))
    form = form + form.T
    found = positive(form)
    assert np.linalg.eigvalsh(centred(found)).min() > -1e-9
    assert positive(found) == pytest.approx(found)
    # the nearest semidefinite form has the same positive part
    values, vectors = np.linalg.eigh(centred(form))
    assert centred(found) == pytest.approx((vectors * np.maximum(values, 0)) @ vectors.T)
    square = form @ form
    assert positive(square) == pytest.approx(square)
    difference = rng.normal(size=classes)
    difference -= difference.mean()
    assert difference @ centred(form) @ difference == pytest.approx(difference @ form @ difference)


SHARES = np.concatenate([skewed(3, 0.1), skewed(3, 0.3)])
SIZES = np.array([10.0, 20, 30, 10, 20, 30])
LEVELS = np.array([0.3, 0.1, 0.2, 0.0, 0.5, 0.1])


def errors(covariance, freedom=None, mean_noise=LEVELS):
    return MeanErrors.of(Unmixing(SHARES, SIZES), covariance, freedom, mean_noise)


@pytest.mark.parametrize("whitened", [False, True])
def test_the_excess_is_the_expected_product_of_errors(whitened):
    rng, covariance = np.random.default_rng(0), np.diag([4.0, 1.0, 0.5, 0.1])
    known = errors(covariance)
    metric = known.whitening(0.5) if whitened else np.eye(4)
    scale = np.sqrt(np.diag(covariance) / SIZES[:, None])
    drawn = scale * rng.normal(size=(20000, 6, 4)) + np.sqrt(LEVELS)[:, None] * rng.normal(size=(20000, 6, 4))
    moved = drawn.swapaxes(1, 2) @ Unmixing(SHARES, SIZES).matrix
    simulated = np.mean(moved.swapaxes(1, 2) @ metric @ moved, axis=0)
    # rows have no labels here, so nothing is given back for them
    found = replace(known, label_covariance=np.zeros((3, 3))).debiased(np.zeros((3, 3)), metric if whitened else None)
    assert -found == pytest.approx(simulated, rel=0.05, abs=0.02)


def test_a_metric_from_few_rows_is_corrected_and_where_there_are_no_errors_euclidean():
    """With as many dimensions as half of the rows, tr(W S) is far below what another row has."""
    rng, dimension, rows = np.random.default_rng(1), 60, 120
    scale = np.linspace(0.2, 2, dimension)
    predicted, found, naive = [], [], []
    for _ in range(30):
        covariance = np.cov(scale * rng.normal(size=(rows, dimension)), rowvar=False)
        known, exact = (errors(covariance, freedom, 0.0) for freedom in (rows - 1, None))
        metric = known.whitening(0.1)
        predicted.append(known.spread(metric))
        naive.append(exact.spread(metric))
        found.append(np.sum(metric * np.diag(scale**2)))
    assert np.mean(predicted) == pytest.approx(np.mean(found), rel=0.02)
    assert np.mean(naive) < 0.75 * np.mean(found)
    assert errors(np.zeros((4, 4)), mean_noise=0.0).whitening(1.0) == pytest.approx(np.eye(4))
    for shape in ((0, 8), (0, 0), (2, 3), (4,)):
        with pytest.raises(InputError):
            errors(np.zeros(shape), None, 1.0)


def released(classes, bags, sd, seed):
    rng = np.random.default_rng(seed)
    true = rng.dirichlet(np.ones(classes), bags)
    return true, *noisy(true, sd, rng)


@pytest.mark.parametrize("sd", [0.0, 1e-156, 0.1, 1e3])
def test_without_noise_they_are_what_was_released_and_equal_bags_stay_where_they_are(sd):
    proportions = np.tile([0.25, 0.75], (3, 1))
    found = expected_proportions(proportions, np.array([7, 8, 9]), np.tile(sd**2 * centring(2), (3, 1, 1)))
    assert found == pytest.approx(proportions)
    proportions, sizes = np.array([[0.1, 0.9], [0.8, 0.2], [0.4, 0.6]]), np.array([10, 20, 30])
    assert expected_proportions(proportions, sizes, None) is proportions
    assert expected_proportions(proportions, sizes, np.zeros((3, 2, 2))) == pytest.approx(proportions)


def test_two_classes_shrink_by_the_reliability_ratio_and_bags_of_more_noise_move_further():
    _, seen, noise = released(2, 400, 0.2, seed=0)
    sizes = np.full(400, 30)
    shares = seen[:, 1]
    variance = shares.var()
    added = noise[0, 1, 1] * (1 - 1 / 400)
    reliability = (variance - added) / (variance - added + noise[0, 1, 1])
    expected = shares.mean() + reliability * (shares - shares.mean())
    assert expected_proportions(seen, sizes, noise)[:, 1] == pytest.approx(expected)
    _, seen, noise = released(2, 200, 0.1, seed=3)
    noise[:100] *= 9
    mean = np.full(200, 1 / 200) @ seen
    moved = np.abs(expected_proportions(seen, np.full(200, 30), noise) - mean) / np.abs(seen - mean)
    assert moved[:100].max() < moved[100:].min() < 1
    raw = np.full((2, 2), 0.3)
    raw[0, 0] += 1e-17
    raw[0, 1] = raw[1, 0] = np.nextafter(0.3, 1)  # so that it is not even semidefinite
    found = tempered(np.array([raw - np.eye(2), raw]), np.array([raw, raw]))
    assert np.isfinite(found).all()
    assert np.linalg.eigvalsh(centred(found)).min() > -1e-30


@pytest.mark.parametrize("classes", [2, 4])
def test_least_squares_on_them_finds_slopes_that_noise_hides(classes):
    true, seen, noise = released(classes, 20_000, 0.3, seed=1)
    slopes = np.arange(1.0, classes + 1)
    values = true @ slopes
    expected = expected_proportions(seen, np.full(20_000, 30), noise)
    assert np.square(expected - true).mean() < np.square(seen - true).mean() / (2 if classes > 2 else 1.5)
    found = np.linalg.lstsq(expected, values)[0]
    naive = np.linalg.lstsq(seen, values)[0]
    assert found == pytest.approx(slopes, abs=0.05)
    assert np.abs(naive - slopes).max() > 0.15


@pytest.mark.parametrize("bags", [2, 200])
def test_noise_above_the_signal_pulls_bags_together_but_leaves_them_apart(bags):
    proportions = np.tile([[0.1, 0.9], [0.9, 0.1]], (bags // 2, 1))
    found = expected_proportions(proportions, np.full(bags, 5), np.tile(100.0 * centring(2), (bags, 1, 1)))
    assert 0 < found[0, 1] - found[0, 0] < 0.1
    assert found.sum(axis=1) == pytest.approx(1)


@example(classes=2, bags=1, sd=1.1088836576167726e-156, seed=0)
@given(classes=st.integers(2, 5), bags=st.integers(1, 12), sd=st.floats(0, 2), seed=st.integers(0, 2**32))
def test_they_sum_to_one_keep_the_mean_and_never_move_away(classes, bags, sd, seed):
    _, seen, noise = released(classes, bags, sd, seed)
    sizes = np.random.default_rng(seed).integers(1, 50, bags)
    found = expected_proportions(seen, sizes, noise)
    mean = sizes @ seen / sizes.sum()
    assert found.sum(axis=1) == pytest.approx(1)
    assert sizes @ found / sizes.sum() == pytest.approx(mean, abs=1e-7)
    moved, before = (np.square(sizes[:, None] * (shares - mean)).sum() for shares in (found, seen))
    assert moved <= before * (1 + 1e-4) + 1e-9 * np.abs(seen).max()  # rounding of an inverse
