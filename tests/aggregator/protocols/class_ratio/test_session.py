"""Class ratios through the two apps: what is asked, what is learned, and what is promised.

Class ratios from bags that are the same at all parties: as of one party that holds them all, but for one noise.
Estimators from what is known of bags: proportions and their noise, and which parameters an estimator gets.
"""

import warnings
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from support.bagged import FIELDS, draw
from support.mixtures import Mixtures, skewed
from support.ratio_choices import ESTIMATORS, KERNELS, MEANS, OF_MEANS
from support.worlds import guarantees, plan_fixture, run, run_in_cohorts

from aggregator.contract.registry import protocol
from aggregator.learners.class_ratios.class_means import ClassMeans, WhitenedMeans
from aggregator.learners.class_ratios.kernel_means import DistributionRegression
from aggregator.protocols.class_ratio.options import CORRECTED, RatioOptions
from aggregator.protocols.class_ratio.session import (
    CommonSession,
    Fitting,
    Labelled,
    RatioSession,
    least_rows,
)
from aggregator.releases.estimator_models import ReleasedRatios
from aggregator.server.releasing import Inquiry
from aggregator.server.variants import Variants
from aggregator.trial.feature_fitting import fit
from aggregator.trial.plan import VariantPlan
from aggregator.trial.trial import Views, World
from federation.contract.errors import InputError, QuorumError
from federation.contract.plugins import Reference
from federation.contract.query import PrivateQuestion, Submission
from federation.contract.randomness import NoiseBits
from federation.engines.inline import open_grid
from federation.features.feature_map import with_fourier
from scenarios.simulated.secure_aggregation import NAME

BAGGED = Reference("support.bagged:Parties")
EMBEDDED = {"estimator": "whitened", "submit": "embedding", "dimensions": 64}
VARIANTS = {
    "default": {},
    "gaussian": {**EMBEDDED, "noise": "gaussian"},
    "uncorrected": {**EMBEDDED, "noise": "gaussian", "corrected": False},
    "means": {**EMBEDDED, "noise": "gaussian", "estimator": "class_means"},
    "rows": {"noise": "gaussian", "estimator": "whitened", "dimensions": 64},
    "published": {"noise": "published_dirichlet", "estimator": "mmd", "kernel": "exact"},
    "floor": {**EMBEDDED, "noise": "dirichlet_floor", "floor": 10},
    "shifted": {**EMBEDDED, "noise": "dirichlet_shifted", "pseudo_count": 100},
    "private_rows": {**EMBEDDED, "noise": "gaussian", "protect": "row", "dimensions": 16},
    "energy": {"noise": "off", "estimator": "energy"},
    "classifier": {"noise": "off"},
    "off": {**EMBEDDED, "noise": "off"},
}
SHARES = np.array([0.7, 0.2, 0.1])

plan = plan_fixture(
    {name: VariantPlan(name, "class_ratio", options) for name, options in VARIANTS.items()},
    epsilons=(1.0, 4.0),
    draws=2,
    **FIELDS,
)


def ratios(plan, name, release=0, noise=0):
    """The estimated class ratios of a large set whose shares are known."""
    models = ReleasedRatios.load(Path(plan.run.directory) / f"{name}.npz")
    labels = np.repeat(np.arange(3), (3000 * SHARES).astype(int))
    return models.estimator(release, noise).predict(models.feature_maps[release].transform(draw(labels, 7)))


def session(plan):
    """Begin the session of the plan's only variant at the plan's first epsilon."""
    [variant] = plan.variants
    world = World(plan, Views(plan)).of(variant)
    return protocol("class_ratio")(**variant.options).begin(world, plan.releases.epsilons[0], plan.public.draws)


@pytest.mark.slow
def test_releases_are_the_same_bytes_whatever_the_cohorts(plan):
    _, summary = run_in_cohorts(plan(), Reference("support.bagged:Parties", {"broken": [3]}))
    assert summary["answered"] == 5
    assert "class code" in " ".join(summary["failures"])


@pytest.mark.parametrize("name", [name for name in VARIANTS if name not in ("published", "private_rows", "energy")])
def test_every_variant_estimates_the_shares_of_a_shifted_set(plan, name):
    chosen = plan(name, epsilons=(8.0,))
    run(open_grid("inline"), chosen, 6, BAGGED)
    assert np.abs(ratios(chosen, name) - SHARES).sum() < 0.15


@pytest.mark.slow
def test_what_the_default_found_about_the_bags_is_among_its_diagnostics(plan):
    """Six parties are enough for three classes to leave each party's bags out together."""
    _, summary = run(open_grid("inline"), plan("default", "off", epsilons=(8.0,)), 6, BAGGED)
    [found], [other] = summary["diagnostics"]["default"], summary["diagnostics"]["off"]
    assert found["bags"] == 12
    assert found["weight_bag_classifier"] == 1
    assert found["drift_p_value"] >= 0.01
    assert found["error_bag_classifier"] < found["error_mean_of_bags"]
    assert other.keys() < found.keys()


def test_parties_are_asked_once_for_what_several_variants_use(plan):
    chosen = plan("gaussian", "uncorrected", "means", "rows")
    _, summary = run(open_grid("inline"), chosen, 6, BAGGED)
    [total] = summary["ledger"]["published_together"]
    assert total["releases"] == 8  # four variants at two epsilons, of two noisy answers
    assert 4.0 < total["epsilon"] <= 5.0
    assert not np.allclose(ratios(chosen, "gaussian"), ratios(chosen, "uncorrected"), atol=1e-12)


@pytest.mark.parametrize("noise", ["pure", "laplace", "gaussian", "independent_laplace"])
@pytest.mark.parametrize("epsilon", [2.0, 10.0, 25.0])
def test_no_honest_answer_is_out_of_reach(plan, noise, epsilon):
    """Where noise is rare, a record of it is many of its standard deviations, and takes an empty class below zero."""
    chosen = plan(variants=(VariantPlan("one", "class_ratio", {"noise": noise}),), epsilons=(epsilon,))
    [collector] = [asked.collector for asked in session(chosen).questions() if asked.question.kind == "counts"]
    mechanism = collector.question.mechanism()
    sizes, counts = np.array([[60.0, 0.0]]), np.zeros((1, 2, 2, 3))
    released = mechanism.release(np.array([60, 0, 0]), NoiseBits(1, "a party"), 40_000)
    counts[0, :, 0] = released[np.argsort(released.min(axis=1))[:2]]
    arrays = {"sizes": sizes, "counts": counts}
    promise = collector.question.promise()
    assert collector.add(Submission("counts", np.array([0]), arrays, promise)) == {}


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_labels_get_their_share_of_the_noises_budget_and_what_is_known_of_noise_follows(plan, share):
    """A replaced row moves weighted counts by sqrt 2 times their weight, and the sum of rows by 2."""
    options = {"noise": "gaussian", "protect": "row", **EMBEDDED, "dimensions": 8, "label_share": share}
    chosen = plan(variants=(VariantPlan("one", "class_ratio", options),), epsilons=(1.0,))
    begun = session(chosen)
    [asked] = begun.questions()
    weight, sigma = asked.question.label_weight, asked.question.mechanism().parameters["scale"]
    assert 2 * weight**2 / (2 * weight**2 + 4) == pytest.approx(share)

    covariances, variance = begun._noise_of(np.array([60.0, 30.0]))
    released = asked.question.mechanism().release(np.zeros(3 + 8), NoiseBits(1, "noise"), 20_000)
    counts = (released[:, :3] - released[:, :3].mean(axis=1, keepdims=True)) / weight  # moved to the public size
    for covariance in covariances:
        np.testing.assert_allclose(covariance, np.cov(counts, rowvar=False), atol=0.05 * covariance.max())
    assert variance == pytest.approx(released[:, 3:].var(), rel=0.05)

    def sent(deviations):
        moved = np.array([1.0, -1.0, 0.0]) * deviations * sigma / weight
        counts = np.broadcast_to(20.0 + moved, (1, chosen.public.draws, 2, 3))
        arrays = {"sizes": np.full((1, 2), 60.0), "counts": counts, "means": np.zeros((1, chosen.public.draws, 2, 8))}
        return Submission("noisy_embeddings", np.array([0]), arrays, asked.question.promise())

    far = asked.collector.add(sent(50.0 + 60.0 * weight / sigma))
    assert list(far) == [0]
    assert asked.collector.add(sent(39.0)) == {}


def test_what_parties_send_is_counted_and_noise_from_the_operating_system_does_not_repeat(plan):
    chosen = plan("gaussian", "rows", "off")
    _, summary = run(open_grid("inline"), chosen, 6, BAGGED)
    sizes, counts = 2 * 8, 2 * 3 * 8
    embedding, rows = 2 * 64 * 8, 2 * 60 * 3 * 8
    costs = summary["bytes_per_party"]
    assert costs["gaussian"] == [8 + sizes + 2 * counts + 8 + sizes + embedding] * 2
    assert costs["rows"] == [8 + sizes + 2 * counts + 8 + sizes + rows] * 2
    assert costs["off"] == [8 + sizes + counts + 8 + sizes + embedding]
    chosen = plan("gaussian", noise_seed=None, draws=1)
    first, summary = run(open_grid("inline"), chosen, 6, BAGGED)
    second, _ = run(open_grid("inline"), chosen, 6, BAGGED)
    assert first != second
    assert summary["ledger"]["releases"][0]["guarantee"]["parameters"]["entropy"] == "system"


def test_guarantees_say_who_is_protected_and_which_releases_protect_nobody(plan):
    _, summary = run(open_grid("inline"), plan(epsilons=(1.0,), draws=1), 6, BAGGED)
    found = guarantees(summary)
    units = {name: guarantee.get("unit", "none") for name, guarantee in found.items()}
    nobody = {"published", "energy", "classifier", "off"}
    assert units == {name: "none" if name in nobody else "label" for name in VARIANTS} | {"private_rows": "row"}
    assert found["published"]["claimed"] == [1.0, 1e-3]
    texts = {a["text"] for a in found["default"]["assumptions"]}
    assert any("every party adds its noise itself" in text for text in texts)
    assert summary["ledger"]["non_private"]
    floors = [a for a in found["floor"]["assumptions"] if "at least 10" in a["text"] or "10 " in a["text"]]
    assert [a["check"] for a in floors] == ["declared"]


def test_persons_pay_for_every_bag_that_they_are_in(plan):
    persons = Reference("support.bagged:Parties", {"persons": True})
    scales = []
    for most in (1, 2):
        chosen = plan("gaussian", rows_per_person=most, draws=1)
        _, summary = run(open_grid("inline"), chosen, 6, persons)
        guarantee = summary["ledger"]["releases"][0]["guarantee"]
        assert (guarantee["unit"], guarantee["epsilon"], guarantee["delta"]) == ("person", 1.0, 1e-3)
        scales.append(guarantee["parameters"]["scale"])
    assert scales[1] > 1.9 * scales[0]


@pytest.mark.parametrize(("name", "changes", "provider", "error"), [
    ("off", {"parties": 1}, "support.bagged:NoSuchProvider", InputError),  # before any party is asked
    ("off", {"parties": 2, "quorum": 0.4}, {"broken": [1]}, InputError),  # bags cannot tell the classes apart
    ("default", {}, {"broken": [0, 1, 2, 3]}, QuorumError),
    ("gaussian", {}, {"persons": True}, QuorumError),  # of an unknown number of rows each
])  # fmt: skip
def test_runs_that_cannot_learn_are_refused(plan, name, changes, provider, error):
    held = Reference(provider) if isinstance(provider, str) else Reference("support.bagged:Parties", provider)
    with pytest.raises(error):
        run(open_grid("inline"), plan(name, **changes), changes.get("parties", 6), held)


@pytest.mark.slow
def test_a_change_of_variants_beside_one_changes_nothing_about_it(plan):
    alone, _ = run(open_grid("inline"), plan("gaussian"), 6, BAGGED)
    together, _ = run(open_grid("inline"), plan("default", "gaussian", "rows"), 6, BAGGED)
    assert alone["gaussian.npz"] == together["gaussian.npz"]


def test_noise_is_shared_by_estimators_of_one_answer_and_by_no_two_answers(plan):
    """From two answers with the same noise it would cancel by subtraction."""
    private = VARIANTS["private_rows"]
    several = {
        "first": private,
        "again": {**private, "estimator": "class_means"},
        "narrow": {**private, "bandwidth": 2.0},
        "short": {**private, "dimensions": 8},
        "labels": {**private, "label_share": 0.7},
        "counts": VARIANTS["gaussian"],
        "means": VARIANTS["means"],
    }
    chosen = plan(variants=tuple(VariantPlan(name, "class_ratio", options) for name, options in several.items()))
    inquiry = Inquiry()
    Variants(World(chosen, Views(chosen)), inquiry)
    keys = [asked.release.key for asked, _ in inquiry.questions() if isinstance(asked, PrivateQuestion)]
    assert len(keys) == len(set(keys)) == 2 * 5  # two epsilons


PARTIES = 7

OPTIONS = {
    "auto": {},
    "rows": {"noise": "gaussian", "estimator": "whitened", "dimensions": 64},
    "exact": {"noise": "pure", "estimator": "mmd", "kernel": "exact"},
    "embedded": {**EMBEDDED, "noise": "gaussian"},
    "means": {**EMBEDDED, "estimator": "class_means"},
    "private_rows": {**EMBEDDED, "noise": "gaussian", "protect": "row", "dimensions": 16},
}
SECURE = {
    **{name: {**options, "trust": "secure"} for name, options in OPTIONS.items()},
    **{
        f"{name}_off": {**OPTIONS[name], "trust": "secure", "noise": "off"}
        for name in OPTIONS
        if name != "private_rows"
    },
    **{f"{name}_own": options for name, options in OPTIONS.items()},
}


common_session_plan = plan_fixture(
    {name: VariantPlan(name, "class_ratio", options) for name, options in SECURE.items()},
    **{**FIELDS, "parties": PARTIES, "bags": 5},
    common_bags=True,
    quorum=1.0,
    epsilons=(1.0, 8.0),
    draws=2,
    summation=NAME,
)


def dealt(parties=PARTIES):
    return Reference("support.common_bags:Dealt", {"parties": parties, "of": PARTIES})


@pytest.mark.parametrize("name", [name for name in OPTIONS if "protect" not in OPTIONS[name]])
def test_without_noise_it_learns_what_it_would_of_one_party_with_all_rows(common_session_plan, name):
    found = []
    for parties, changes in ((PARTIES, {}), (1, {"parties": 1, "common_bags": False})):
        chosen = common_session_plan(f"{name}_off", **changes)
        run(open_grid("inline"), chosen, parties, dealt(parties))
        found.append(ratios(chosen, f"{name}_off"))
    exact = name in ("auto", "rows", "exact")  # rows as they come; sums are rounded to a grid
    np.testing.assert_allclose(*found, atol=0 if exact else 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIONS)
def test_every_variant_estimates_the_shares_of_a_shifted_set_common_session(common_session_plan, name):
    chosen = common_session_plan(name, epsilons=(8.0,))
    _, summary = run(open_grid("inline"), chosen, PARTIES, dealt())
    assert not summary["failed_variants"]
    assert np.abs(ratios(chosen, name) - SHARES).sum() < 0.2
    promised = guarantees(summary)[name]
    assert promised["unit"] == ("row" if name == "private_rows" else "label")
    assert promised["parameters"]["contributors"] == PARTIES - 1  # one of seven may collude
    assert promised["epsilon"] == 8.0
    told = " ".join(check for entry in summary["ledger"]["releases"] for check in entry["checks"])
    assert "all messages real" in told  # of a masked sum
    assert ("rows of bags, which are public, were checked" in told) is ("submit" not in OPTIONS[name])


def test_masks_change_no_byte_and_counts_of_several_variants_are_asked_for_once(common_session_plan):
    plans = [common_session_plan("rows", "embedded", epsilons=(1.0,), summation=summed) for summed in (NAME, "")]
    masked, clear = (run(open_grid("inline"), plan, 3, dealt())[0] for plan in plans)
    assert masked == clear
    variants = [VariantPlan(n, "class_ratio", {**SECURE["rows"], "estimator": n}) for n in ("whitened", "class_means")]
    chosen = common_session_plan(variants=tuple(variants), epsilons=(1.0,))
    _, summary = run(open_grid("inline"), chosen, PARTIES, dealt())
    [total] = summary["ledger"]["published_together"]
    assert 0.99 < total["epsilon"] <= 1.0  # of one release


def test_one_noise_for_all_is_less_than_one_of_each_and_bags_of_no_row_are_left_out(common_session_plan):
    """Of seven parties at a small epsilon: the root mean square error over draws."""
    chosen = common_session_plan("rows", "rows_own", epsilons=(0.3,), draws=8)
    run(open_grid("inline"), chosen, PARTIES, dealt())
    shared, own = (
        np.mean([np.abs(ratios(chosen, name, noise=draw) - SHARES).sum() for draw in range(8)])
        for name in ("rows", "rows_own")
    )
    assert shared < 0.6 * own
    chosen = common_session_plan("embedded", "rows", "private_rows", bags=6, epsilons=(8.0,))
    _, summary = run(open_grid("inline"), chosen, PARTIES, dealt())
    assert not summary["failed_variants"]
    for name in ("embedded", "rows", "private_rows"):
        assert np.abs(ratios(chosen, name) - SHARES).sum() < 0.3


def test_parts_of_a_bag_are_left_out_together_where_each_party_has_its_own_noise(common_session_plan, monkeypatch):
    left = {}

    def fitted(fitting, labelled, draw):
        left[len(labelled.sizes)] = labelled.groups.tolist()
        return fit(fitting, labelled, draw)

    fit = Fitting.fit
    monkeypatch.setattr(Fitting, "fit", fitted)
    for common in (True, False):
        run(open_grid("inline"), common_session_plan("rows_own", epsilons=(8.0,), common_bags=common), PARTIES, dealt())
        [groups] = left.values()
        parts = [[0, 1, 2, 3, 4], *[[0, 1, 2, 3]] * (PARTIES - 1)]
        of_party = [[party] * len(bags) for party, bags in enumerate(parts)]
        assert groups == [*chain(*(parts if common else of_party))]


def test_bags_of_each_party_are_not_added_up_and_too_few_bags_for_the_classes_are_refused(common_session_plan):
    assert isinstance(session(common_session_plan("auto")), CommonSession)
    assert type(session(common_session_plan("auto_own"))) is RatioSession
    assert type(session(common_session_plan("auto_off", common_bags=False))) is RatioSession
    with pytest.raises(InputError, match=r"parties\.common_bags"):
        run(open_grid("inline"), common_session_plan("auto", common_bags=False), PARTIES, dealt())
    with pytest.raises(InputError, match=r"2.*3"):
        session(common_session_plan("auto", bags=2))
    with pytest.raises(InputError, match="bags"):
        run(open_grid("inline"), common_session_plan("private_rows", epsilons=(0.01,)), PARTIES, dealt())


WORLD = Mixtures(3)
PROPORTIONS = skewed(3, 0.1)
BAGS = WORLD.bags(PROPORTIONS, 100, np.random.default_rng(1))
PUBLIC = np.random.default_rng(2).normal(size=(300, 6))
SIZES = np.full(3, 100.0)


def labelled(features=BAGS, **changes):
    counts = 100 * PROPORTIONS[None]
    return replace(Labelled(SIZES, counts, None, features, 0.0, np.arange(len(SIZES))), **changes)


def fitting(options, feature_map=None):
    return Fitting(options, feature_map or fit([], PUBLIC), PUBLIC, 5)


def test_proportions_are_unbiased_and_bags_of_one_row_of_use_unless_their_rows_are_compared():
    sizes, counts = np.array([10.0, 40.0]), np.array([[[12.0, -2.0], [10.0, 30.0]]])
    known = Labelled(sizes, counts, np.array([4 * np.eye(2), np.eye(2)]), [], 0.0, np.arange(2))
    np.testing.assert_array_equal(known.proportions(0), [[1.2, -0.2], [0.25, 0.75]])
    np.testing.assert_array_equal(known.noise(), [4 * np.eye(2) / 100, np.eye(2) / 1600])
    assert labelled().noise() is None
    exact = labelled().conditioning()
    assert "noise_to_signal" not in exact
    noisy = labelled(count_noise=np.tile(25 * np.eye(3), (3, 1, 1))).conditioning()
    # Three classes with a standard deviation of 5 in 100 rows.
    assert noisy["noise_to_signal"] == pytest.approx(np.sqrt(2 / np.pi) * 3 * 0.05 / 2)
    assert {name: noisy[name] for name in exact} == exact
    exact = {"estimator": "class_means", "kernel": "exact"}
    assert least_rows(RatioOptions(**exact)) == least_rows(RatioOptions(estimator="energy")) == 2
    for estimator in set(ESTIMATORS) - {"energy"}:
        assert least_rows(RatioOptions(estimator=estimator)) == 1


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_estimator_gets_its_own_parameters_among_the_options(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what an estimator warns of stands in the options
        found = fitting(RatioOptions(estimator=estimator)).fit(labelled(), 0)
    assert found.name == estimator
    known = found.get_params()
    assert known.get("seed", 5) == 5
    if estimator in CORRECTED:
        assert known["corrected"] is True
    if "bandwidth" in known and estimator in (*OF_MEANS, "mmd"):
        assert known["bandwidth"] == ("auto" if estimator == "mmd" else 1.0)


KNOWN = {"bandwidth": 2.0, "corrected": False}
SAID = {"estimator": "class_means", **KNOWN}
SVM = {"estimator": "proportion_svm"}  # which has a kernel where its bandwidth is said


@pytest.mark.parametrize(("chosen", "known"), [
    *(({**SAID, "kernel": kernel, "dimensions": 16}, {**KNOWN, "kernel": kernel, "features": 16})
      for kernel in KERNELS if kernel not in ("exact", "linear")),
    ({**SAID, "kernel": "exact"}, {**KNOWN, "kernel": "exact", "features": RatioOptions().dimensions}),
    pytest.param(SVM, {"features": None, "bandwidth": 1.0}, marks=pytest.mark.slow),
    pytest.param({**SVM, "bandwidth": "auto", "dimensions": 8}, {"features": 8, "bandwidth": "auto"},
                 marks=pytest.mark.slow),
])  # fmt: skip
def test_options_of_the_kernel_reach_the_estimator(chosen, known):
    found = fitting(RatioOptions(**chosen)).fit(labelled(), 0).get_params()
    assert known.items() <= found.items()


@pytest.mark.slow
def test_bags_of_a_group_are_left_out_together_and_the_linear_kernel_is_for_the_regression():
    """Of six bags in three groups each class is in one group alone, without which nothing can be fitted."""
    shares = np.repeat(PROPORTIONS.round(), 2, axis=0)
    bags, pairs = WORLD.bags(shares, 100, np.random.default_rng(3)), (np.arange(6), np.arange(6) // 2)
    known = Labelled(np.full(6, 100.0), 100 * shares[None], None, bags, 0.0, pairs[0])
    apart, together = (fitting(RatioOptions()).fit(replace(known, groups=groups), 0) for groups in pairs)
    assert "error_mean_of_bags" in apart.diagnostics_
    assert "error_mean_of_bags" not in together.diagnostics_
    found = fitting(RatioOptions(estimator="regression", kernel="linear")).fit(labelled(), 0)
    own = DistributionRegression("linear").fit(BAGS, PROPORTIONS)
    np.testing.assert_array_equal(found.predict(BAGS[0]), own.predict(BAGS[0]))


@pytest.mark.parametrize(("estimator", "kind"), [("whitened", WhitenedMeans), ("class_means", ClassMeans)])
def test_mean_embeddings_are_learned_from_draw_by_draw_or_once_for_all(estimator, kind):
    options = RatioOptions(**{**MEANS, "estimator": estimator, "dimensions": 32})
    feature_map = with_fourier(fit([], PUBLIC), 0.05, 32, 3)
    means = np.stack([feature_map.transform(bag).mean(axis=0) for bag in BAGS])
    counts = np.repeat(100 * PROPORTIONS[None], 2, axis=0)
    behind = fitting(options, feature_map)
    shared = labelled(means[None], counts=counts)
    own = labelled(np.stack([means, means[::-1]]), counts=counts)
    found = [behind.fit(one, draw) for one, draw in ((shared, 0), (shared, 1), (own, 0), (own, 1))]
    assert all(type(one) is kind and one.get_params()["kernel"] == "linear" for one in found)
    rows = feature_map.transform(WORLD.rows(np.array([0.6, 0.3, 0.1]), 400, np.random.default_rng(4)))
    first, second, third, fourth = (one.predict(rows) for one in found)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, third)
    assert (fourth != first).any()
    assert np.abs(first - [0.6, 0.3, 0.1]).sum() < 0.3
