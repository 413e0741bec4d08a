"""A world as the sessions of its variants see it: its numbers, its releases, and what is done once."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.trial import trial as module
from aggregator.trial.plan import KnownNumbers, VariantPlan
from aggregator.trial.trial import (
    FEW,
    OMITTED,
    ROWS_PER_DIMENSION,
    SIZES,
    Spectrum,
    Views,
    World,
    affordable,
    errors,
    fitted,
    spectrum_to_whiten,
)
from federation.contract.errors import InputError
from federation.contract.query import Noise
from federation.contract.trust import TrustTerms
from federation.mechanisms.accounting import sensitivity
from federation.mechanisms.noise.additive import calibrate

FLAT = Spectrum(10**6, np.ones(300))
STEEP = Spectrum(1352, np.arange(1, 301) ** -1.5)
NUMBERS = {"classes": st.integers(2, 50), "parties": st.integers(1, 10**6), "epsilon": st.floats(1e-3, 1e3)}
WORLDS = st.fixed_dictionaries({**NUMBERS, "delta": st.just(1e-6)})
NOISES = st.sampled_from(["pure", "gaussian"])
SPECTRA = st.builds(
    lambda rows, rank, decay: Spectrum(rows, np.arange(1, rank + 1) ** -decay),
    st.integers(1, 10**5),
    st.integers(1, 200),
    st.floats(0, 3),
)


@settings(derandomize=True)
@given(seed=st.integers(0, 10**6), rows=st.integers(2, 30), columns=st.integers(1, 30))
def test_the_spectrum_is_that_of_the_singular_values(seed, rows, columns):
    public = np.random.default_rng(seed).normal(size=(rows, columns)) * 3 + 5
    spectrum = Spectrum.of(public)
    rank = min(rows - 1, columns)
    expected = np.linalg.svd(public - public.mean(axis=0), compute_uv=False)[:rank] ** 2 / rows
    assert spectrum.rows == rows
    np.testing.assert_allclose(spectrum.variances, expected, atol=1e-9)
    left = [expected[d:].sum() / expected.sum() for d in range(1, rank + 1)]
    np.testing.assert_allclose(spectrum.omitted(), left, atol=1e-9)


def test_directions_are_left_out_as_the_stated_law_says():
    faint, loud = np.full(100, 0.01), np.ones(40)
    assert Spectrum(10**4, np.append(loud, faint)).usable() == 40
    assert Spectrum(10**4, np.append(loud[:5], faint)).usable() == FEW
    assert Spectrum(10**4, np.append(loud[:5], faint[:9])).usable() == 14
    assert Spectrum(100, np.append(loud, faint)).usable() == 25
    assert Spectrum(3, loud).usable() == 0
    _, by_omission = errors("pure", FLAT, classes=2, parties=10, epsilon=1.0, delta=0.0)
    for d in (1, 40, 300):
        assert by_omission[d - 1] == pytest.approx(OMITTED * (1 - d / 300) / d**1.5)
    world = {"classes": 2, "parties": 10**6, "epsilon": 10.0, "delta": 1e-6}
    assert affordable("pure", Spectrum(1000, np.ones(7)), **world) == 7
    assert affordable("pure", Spectrum(1000, np.ones(2)), **world) == 2
    assert affordable("pure", Spectrum(7 * ROWS_PER_DIMENSION - 1, np.ones(7)), **world) == 6
    for rows, expected in ((1, 3), (12, 3), (16, 4), (100, 24), (10**6, SIZES[-1])):
        spectrum = Spectrum(rows, np.ones(200))
        assert affordable("off", spectrum, classes=3, parties=1, epsilon=np.inf, delta=0.0) == expected


@pytest.mark.parametrize("noise", ["pure", "gaussian"])
@pytest.mark.parametrize(
    ("classes", "parties", "epsilon"), [(6, 1000, 1.0), (2, 1000, 0.1), (10, 5000, 3.0), (3, 9, 10)]
)
def test_the_error_by_noise_is_that_of_the_mechanism_itself(noise, classes, parties, epsilon):
    """The calibrated mechanism's own expected norm, squared and spread over the classes, but for the grid's charge."""
    known = {"epsilon": epsilon, "delta": 1e-6}
    by_noise, _ = errors(noise, FLAT, classes=classes, parties=parties, **known)
    for d in (3, 10, 200):
        dimension = (classes - 1) * d
        mechanism = calibrate(noise, sensitivity=sensitivity.statistic(parties), dimension=dimension, **known)
        found = mechanism.expected_noise_norm() ** 2 / classes
        # The norm of a Gaussian is a little below sigma sqrt(dimension).
        np.testing.assert_allclose(found, by_noise[d - 1], rtol=0.6 / dimension + 2e-3)


@settings(derandomize=True)
@given(noise=NOISES, world=WORLDS, spectrum=SPECTRA, factor=st.floats(1, 100))
def test_more_budget_parties_or_rows_never_mean_fewer_dimensions(noise, world, spectrum, factor):
    chosen = affordable(noise, spectrum, **world)
    assert chosen in (*SIZES, len(spectrum.variances))
    assert chosen <= max(SIZES[0], spectrum.usable())
    assert chosen <= affordable("off", spectrum, **world)
    assert affordable(noise, spectrum, **{**world, "epsilon": world["epsilon"] * factor}) >= chosen
    assert affordable(noise, spectrum, **{**world, "parties": int(world["parties"] * factor)}) >= chosen
    assert affordable(noise, Spectrum(int(spectrum.rows * factor), spectrum.variances), **world) >= chosen


@settings(derandomize=True)
@given(noise=NOISES, world=WORLDS, spectrum=SPECTRA)
def test_the_size_next_above_is_beyond_the_least_error_or_what_is_usable(noise, world, spectrum):
    chosen = affordable(noise, spectrum, **world)
    best = 1 + int(np.argmin(sum(errors(noise, spectrum, **world))))
    following = [size for size in SIZES if size > chosen]
    assert chosen <= max(SIZES[0], best)
    assert not following or following[0] > min(best, spectrum.usable())


def test_a_minimiser_affords_fewer_dimensions_and_the_sizes_are_those_of_the_spectrum():
    world = {"classes": 6, "parties": 1000, "delta": 1e-6}
    epsilons = (0.1, 0.3, 1, 3, 10)
    assert [affordable("pure", STEEP, epsilon=epsilon, **world) for epsilon in epsilons] == [4, 8, 10, 24, 40]
    assert [affordable("gaussian", STEEP, epsilon=epsilon, **world) for epsilon in epsilons] == [8, 10, 24, 56, 56]
    world = {"classes": 10, "parties": 1000, "epsilon": 1.0, "delta": 1e-6}
    sizes = [
        affordable("pure", Spectrum(10**6, np.arange(1, 301) ** -decay), **world) for decay in (0.0, 1.0, 2.0, 4.0)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1]
    world = {"classes": 6, "parties": 1000, "delta": 1e-6}
    for noise in ("pure", "gaussian"):
        sizes = [
            [affordable(noise, STEEP, epsilon=epsilon, minimiser=minimiser, **world) for epsilon in (0.1, 1.0, 10.0)]
            for minimiser in (False, True)
        ]
        assert sizes[1] == sorted(sizes[1])
        assert all(few < many for many, few in zip(*sizes, strict=True) if many > SIZES[0])


@pytest.mark.parametrize("changes", [
    {"noise": "laplace"}, {"classes": 1}, {"parties": 0}, {"epsilon": 0.0}, {"epsilon": np.inf},
    {"noise": "gaussian", "delta": 0.0}, {"noise": "gaussian", "epsilon": -1.0},
])  # fmt: skip
def test_numbers_out_of_range_and_rows_that_do_not_differ_are_refused(changes):
    world = {"noise": "pure", "classes": 6, "parties": 1000, "epsilon": 1.0, "delta": 1e-6, **changes}
    with pytest.raises(InputError):
        affordable(spectrum=FLAT, **world)
    for rows in (np.ones((5, 3)), np.empty((0, 4)), np.ones((1, 2))):
        with pytest.raises(InputError):
            Spectrum.of(rows)


def test_a_world_knows_the_numbers_of_its_plan_and_equal_maps_are_one_view(make_plan, public):
    plan = make_plan()
    views = Views(plan)
    assert views.at("pure", 1.0) is views.at("gaussian", 10.0) is views.at("off", np.inf)  # nothing is automatic
    assert views.at("pure", 1.0).public.feature_map.dimension == 3
    # The table has four columns, so two choices beyond that end in the same map.
    views = Views(make_plan(features=({"whiten": "auto"}, "unit_norm"), parties=10**6))
    assert views.at("pure", 50.0) is views.at("off", np.inf)
    known = {"noise": "pure", "classes": 3, "parties": 40, "epsilon": 1.0, "delta": 1e-6}
    expected, rows = fitted(plan.task.stages, public, **known)
    found = Views(plan.changed(noise_seed=7)).at("pure", 1.0).public.rows
    np.testing.assert_array_equal(found, expected.transform(public.rows))  # of any number of rows at a time
    np.testing.assert_array_equal(found, rows)
    # Standardised columns have variance 1 each, whatever their units; principal variances sum to their number.
    features = ("standardise", {"whiten": "auto"}, "unit_norm")
    scaled = replace(public, rows=public.rows * [1.0, 10.0, 100.0, 1e3])
    spectrum = spectrum_to_whiten(features, scaled)
    assert spectrum.rows == len(public.rows)
    np.testing.assert_allclose(spectrum.variances.sum(), 4)
    np.testing.assert_allclose(spectrum.variances, spectrum_to_whiten(features, public).variances)
    terms = {"quorum": 0.7, "colluding": 0.2, "servers": "two"}
    numbers = {"rows": 500, "bags": 4, "smallest_bag": 2, "largest_bag": 9, "rows_per_person": 3, "common_bags": True}
    plan = make_plan(**terms, **numbers)
    world = World(plan, Views(plan))
    known = {"draws": 3, "classes": 3, "features": 7, "public_rows": len(public.rows)}
    assert world.numbers(7) == KnownNumbers(1e-6, terms=TrustTerms(40, **terms), **numbers, **known)
    assert world.numbers().features is None
    real = make_plan(classes=(), label_range=(-1.0, 2.0))
    assert World(real, Views(real)).numbers().label_range == (-1.0, 2.0)


def test_dimensions_follow_the_release_and_are_fitted_once_where_they_are_equal(make_plan, public, monkeypatch):
    plan = make_plan(features=({"whiten": "auto"}, "unit_norm"), parties=400, epsilons=(0.01, 100.0))
    views = Views(plan)
    few, many = (views.at("pure", epsilon).public.feature_map.dimension for epsilon in plan.releases.epsilons)
    spectrum = spectrum_to_whiten(plan.task.stages, public)
    known = {"classes": 3, "parties": 400, "delta": plan.public.delta}
    expected = [min(4, affordable("pure", spectrum, epsilon=epsilon, **known)) for epsilon in plan.releases.epsilons]
    assert [few, many] == expected == [3, 4]
    plan = make_plan(features=({"whiten": "auto"}, "unit_norm"), parties=400)
    asked = []
    fit = module.fit_rows
    monkeypatch.setattr(module, "fit_rows", lambda stages, *known: asked.append(stages) or fit(stages, *known))
    views = Views(plan)
    found = {views.at("pure", epsilon) for epsilon in (0.01, 0.011, 0.012)}
    assert len(found) == 1
    assert asked == [(), [{"whiten": 3}, "unit_norm"]]  # the spectrum's, and the view's


@pytest.fixture
def world(make_plan):
    def make(**changes):
        plan = make_plan(**changes)
        return World(plan, Views(plan)).of(plan.variants[0])

    return make


def test_work_is_done_for_the_first_of_equal_keys_and_sessions_belong_to_a_variant(world, make_plan):
    seen, done = world(), []
    other = seen.of(VariantPlan("other", "majority_vote", {}))
    found = [one.once(("key", 1), lambda: done.append(1) or object()) for one in (seen, seen, other)]
    assert found[0] is found[1] is found[2]
    assert len(done) == 1
    assert seen.once(("key", 2), object) is not found[0]
    for _ in range(2):
        assert seen.once("nothing", lambda: done.append(1)) is None  # and that is known too
    assert len(done) == 2
    plan = make_plan()
    nobodys = World(plan, Views(plan))
    assert nobodys.of(plan.variants[0]).own is plan.variants[0]
    with pytest.raises(InputError):
        _ = nobodys.own


@pytest.mark.parametrize("classes", [(), ("a", "b", "c")])
def test_other_numbers_of_classes_than_two_are_refused(world, classes):
    world(classes=("a", "b")).require_two_classes()
    with pytest.raises(InputError, match=rf"soft_vote.*{len(classes)}"):
        world(classes=classes).require_two_classes()


def test_what_is_asked_alike_is_one_release_and_a_seeded_world_names_it_alike_in_every_run(world):
    seen, noise = world(), Noise("pure", 1.0)
    name = seen.release(noise, (1, None)).name
    assert seen.of(VariantPlan("twin", "soft_vote", {})).release(noise, (1, None)).name == name
    others = [
        seen.release(Noise("pure", 2.0), (1, None)),
        seen.release(Noise("gaussian", 1.0), (1, None)),
        seen.release(noise, (2, None)),
        seen.of(VariantPlan("other", "majority_vote", {})).release(noise, (1, None)),
        world(world="another-world").release(noise, (1, None)),
    ]
    assert len({name, *(other.name for other in others)}) == 6
    assert world().named("a", 1) == world().named("a", 1)
    fresh = {"noise_seed": None}
    first, second = world(**fresh), world(**fresh)
    assert first.named("a") == first.of(VariantPlan("x", "y", {})).named("a") != second.named("a")
