"""The test of over-identifying restrictions: its law without drift, its power with it, and its minimum.

Intervals hold the ratios of sets as often as they say, and are as wide as what they account for.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import check_grad, least_squares
from scipy.stats import binom, chi2, kstest
from support.mixtures import Mixtures, noisy, skewed

from aggregator.learners.class_ratios.class_means import ClassMeans, EnergyMeans, WhitenedMeans
from aggregator.learners.class_ratios.drift import Sketch, drift_test, intervals, misfit
from federation.contract.errors import InputError

CLASSES, BAGS, FEATURES = 3, 12, 5


def sketched(random, noise_deviation=0.0, bags=BAGS, drift=0.0, size=50):
    """Bags whose class means are the same up to `drift`, straight from the law that the test reckons with."""
    true = random.dirichlet(np.ones(CLASSES), bags)
    root = random.normal(size=(FEATURES, FEATURES)) + 3 * np.eye(FEATURES)
    class_means = 2 * random.normal(size=(CLASSES, FEATURES)) @ root.T
    sizes = random.integers(size // 2, 2 * size, bags)
    errors = random.normal(size=(bags, FEATURES)) / np.sqrt(sizes)[:, None]
    errors += drift * random.normal(size=(bags, FEATURES))
    centring = np.eye(CLASSES) - 1 / CLASSES
    proportions = true + noise_deviation * random.normal(size=true.shape) @ centring
    noise = np.tile(noise_deviation**2 * centring, (bags, 1, 1)) if noise_deviation else None
    sketch = Sketch(true @ class_means + errors @ root.T, root @ root.T, np.zeros(bags))
    return sketch, sizes, proportions, noise


def test_without_drift_it_is_chi_squared_and_drift_is_found_by_the_minimum_of_an_independent_solver():
    random = np.random.default_rng(0)
    found = [drift_test(*sketched(random)) for _ in range(300)]
    assert {one.freedom for one in found} == {FEATURES * (BAGS - CLASSES)}
    assert kstest([one.statistic for one in found], chi2(found[0].freedom).cdf).pvalue > 0.001
    assert np.mean([one.ratio for one in found]) == pytest.approx(1, abs=0.05)
    random = np.random.default_rng(2)
    for deviation in (0.0, 0.05):
        assert all(drift_test(*sketched(random, deviation, drift=1.0)).p_value < 1e-6 for _ in range(20))
    sketch, sizes, proportions, noise = sketched(np.random.default_rng(3), 0.1)

    def scaled(flat):
        class_means = flat.reshape(CLASSES, FEATURES)
        found = []
        for mean, size, shares, cover in zip(sketch.means, sizes, proportions, noise, strict=True):
            law = sketch.covariance / size + class_means.T @ cover @ class_means
            found.append(np.linalg.solve(np.linalg.cholesky(law), mean - shares @ class_means))
        return np.concatenate(found)

    start = np.linalg.lstsq(proportions, sketch.means)[0]
    least = 2 * least_squares(scaled, start.ravel(), xtol=1e-12, ftol=1e-12).cost
    assert drift_test(sketch, sizes, proportions, noise).statistic == pytest.approx(least, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("bags", "size", "deviation"), [(12, 50, 0.05), (60, 20, 0.2)])
def test_noise_of_the_proportions_is_no_drift(bags, size, deviation):
    """Plain least squares in place of the minimum takes it for drift nearly always."""
    random, alarms, attenuated = np.random.default_rng(1), 0, 0
    for _ in range(60):
        sketch, sizes, proportions, noise = sketched(random, deviation, bags, size=size)
        found = drift_test(sketch, sizes, proportions, noise)
        alarms += found.p_value < 0.05
        attenuated += drift_test(sketch, sizes, proportions).p_value < 0.05
    assert binom.sf(alarms - 1, 60, 0.1) > 1e-3
    assert attenuated > 30


@given(st.integers(0, 2**32 - 1), st.floats(0, 0.5))
def test_its_gradient_is_that_of_differences(seed, deviation):
    random = np.random.default_rng(seed)
    sketch, sizes, proportions, noise = sketched(random, deviation)
    sampling = sketch.covariance / sizes[:, None, None]
    noise = np.zeros((BAGS, CLASSES, CLASSES)) if noise is None else noise
    known = (sketch.means, proportions, sampling, noise)
    at = random.normal(size=(CLASSES, FEATURES))
    gradient = misfit(at, *known)[1]

    def of(flat):
        return misfit(flat.reshape(at.shape), *known)

    off = check_grad(lambda flat: of(flat)[0], lambda flat: of(flat)[1].ravel(), at.ravel())
    assert off <= 1e-4 * np.linalg.norm(gradient)


def test_drift_of_rows_and_means_is_found_and_as_many_bags_as_classes_cannot_be_tested():
    world, random = Mixtures(CLASSES), np.random.default_rng(4)
    shares = random.dirichlet(np.ones(CLASSES), 8)
    bags = world.bags(shares, 150, random)
    sizes = np.array([len(bag) for bag in bags])
    exact = np.diff(np.rint(np.cumsum(shares, axis=1) * 150), prepend=0) / 150
    assert drift_test(Sketch.of_rows(bags, 0), sizes, exact).p_value > 0.01
    moved = [bag + random.normal(scale=0.5, size=6) for bag in bags]
    assert drift_test(Sketch.of_rows(moved, 0), sizes, exact).p_value < 1e-6
    means, covariance = np.stack([bag.mean(axis=0) for bag in moved]), np.cov(np.concatenate(bags), rowvar=False)
    assert drift_test(Sketch.of_means(means, covariance, np.zeros(8)), sizes, exact).p_value < 1e-6
    blurred = Sketch.of_means(means, covariance, np.full(8, 10.0))  # released with noise that hides all of it
    assert drift_test(blurred, sizes, exact).p_value > 0.01
    # A column that is constant in every bag has no variance within them.
    random = np.random.default_rng(5)
    shares = random.dirichlet(np.ones(2), 6)
    bags = [np.column_stack([random.normal(size=40), np.full(40, random.normal())]) for _ in range(6)]
    assert drift_test(Sketch.of_rows(bags, 0), np.full(6, 40), shares).p_value < 1e-6
    sketch, sizes, proportions, _ = sketched(np.random.default_rng(6), bags=CLASSES)
    with pytest.raises(InputError, match=r"3.*3"):
        drift_test(sketch, sizes, proportions)


SHARES = np.concatenate([skewed(3, 0.1)] * 2)
TARGETS = ([0.2, 0.3, 0.5], [0.6, 0.3, 0.1], [0.34, 0.33, 0.33])


@pytest.mark.slow
@pytest.mark.parametrize("deviation", [0.0, 0.05])
@pytest.mark.parametrize("estimator", [
    ClassMeans(features=32), WhitenedMeans(features=32), WhitenedMeans("linear"),
], ids=lambda one: one.name)  # fmt: skip
def test_nine_of_ten_hold_the_truth(estimator, deviation):
    """The share is taken over all classes and shifted sets, and over 50 fits to fresh noisy bags."""
    world, rng, inside = Mixtures(3, distance=1.2), np.random.default_rng(0), []
    for repetition in range(50):
        bags = world.bags(SHARES, 100, rng)
        shares, noise = noisy(SHARES, deviation, rng)
        estimator.set_params(seed=repetition).fit(bags, shares, noise if deviation else None)
        for ratios in TARGETS:
            rows = world.rows(ratios, 200, rng)
            low, high = intervals(estimator, rows, draws=100, seed=repetition).T
            inside.append((low <= ratios) & (ratios <= high))
    assert 0.85 <= np.mean(inside) <= 0.96


@pytest.mark.slow
def test_intervals_cover_released_means_and_every_source_of_error_widens_them():
    world, rng, inside = Mixtures(3, distance=1.2), np.random.default_rng(1), []
    known = {"covariance": np.eye(6), "mean_noise": 0.01}
    for repetition in range(20):
        means = SHARES @ world.means + 0.1 * rng.normal(size=(6, 6))
        estimator = WhitenedMeans("linear").fit_means(means, [10_000] * 6, SHARES, **known)
        for ratios in TARGETS:
            low, high = intervals(estimator, world.rows(ratios, 400, rng), draws=100, seed=repetition).T
            inside.append((low <= ratios) & (ratios <= high))
    assert 0.85 <= np.mean(inside) <= 0.96
    base = width(2000, 2000, 0.0)
    assert width(100, 2000, 0.0) > 1.5 * base
    assert width(2000, 100, 0.0) > 1.5 * base
    assert width(2000, 2000, 0.1) > 1.5 * base
    assert width(2000, 2000, 0.0, level=0.5) < 0.6 * base
    assert width(20_000, 20_000, 0.0) < 0.5 * base


def width(size, target_size, deviation, level=0.9):
    world, rng = Mixtures(3, distance=1.2), np.random.default_rng(2)
    shares, noise = noisy(SHARES, deviation, rng)
    estimator = WhitenedMeans(features=32).fit(world.bags(SHARES, size, rng), shares, noise if deviation else None)
    low, high = intervals(estimator, world.rows([0.3, 0.3, 0.4], target_size, rng), level).T
    return float(np.mean(high - low))


def test_they_are_inside_the_simplex_hold_the_estimate_and_depend_on_the_seed_alone():
    world, rng = Mixtures(3), np.random.default_rng(3)
    estimator = WhitenedMeans(features=32).fit(world.bags(SHARES, 60, rng), SHARES)
    rows = world.rows([0.0, 0.2, 0.8], 50, rng)
    found = intervals(estimator, rows, seed=1)
    assert found.shape == (3, 2)
    assert found.min() >= 0
    assert found.max() <= 1
    estimate = estimator.predict(rows)
    assert np.all((found[:, 0] <= estimate + 1e-9) & (estimate <= found[:, 1] + 1e-9))
    assert np.array_equal(found, intervals(estimator, rows, seed=1))
    assert not np.array_equal(found, intervals(estimator, rows, seed=2))
    stored = WhitenedMeans.from_arrays(*estimator.to_arrays())
    assert np.array_equal(found, intervals(stored, rows, seed=1))
    assert np.isfinite(intervals(estimator, rows[:1])).all()


def test_they_refuse_what_they_cannot_do():
    world, rng = Mixtures(3), np.random.default_rng(4)
    bags = world.bags(SHARES, 20, rng)
    biased = WhitenedMeans(features=32, debiased=False), ClassMeans("linear", debiased=False)
    for estimator in (ClassMeans("exact"), EnergyMeans(), *biased):
        with pytest.raises(InputError):
            intervals(estimator.fit(bags, SHARES), bags[0])
    fitted = WhitenedMeans(features=32).fit(bags, SHARES)
    for arguments in ({"level": 1.0}, {"level": 0.0}, {"draws": 10}):
        with pytest.raises(InputError, match="level"):
            intervals(fitted, bags[0], **arguments)
    with pytest.raises(InputError, match="6"):
        intervals(fitted, bags[0][:, 1:])
