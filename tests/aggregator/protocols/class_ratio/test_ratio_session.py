"""Class ratios through the two apps: what is asked, what is learned, and what is promised."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.bagged import draw
from support.worlds import guarantees, plan_fixture, run, run_in_cohorts

from aggregator.contract.registry import protocol
from aggregator.releases.estimator_models import ReleasedRatios
from aggregator.server.releasing import Inquiry
from aggregator.server.variants import Variants
from aggregator.trial.plan import VariantPlan
from aggregator.trial.trial import Views, World
from federation.contract.errors import BudgetExceededError, InputError, QuorumError
from federation.contract.plugins import Reference
from federation.contract.query import PrivateQuestion, Submission
from federation.contract.randomness import NoiseBits
from federation.engines.inline import open_grid

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
    public=Reference("support.bagged:public_table"),
    features=("standardise",),
    parties=6,
    bags=2,
    largest_bag=60,
    epsilons=(1.0, 4.0),
    delta=1e-3,
    draws=2,
)


def ratios(plan, name, release=0, noise=0):
    """The estimated class ratios of a large set whose shares are known."""
    models = ReleasedRatios.load(Path(plan.directory) / f"{name}.npz")
    labels = np.repeat(np.arange(3), (3000 * SHARES).astype(int))
    return models.estimator(release, noise).predict(models.feature_maps[release].transform(draw(labels, 7)))


def test_releases_are_the_same_bytes_whatever_the_cohorts(plan):
    _, summary = run_in_cohorts(plan(), Reference("support.bagged:Parties", {"broken": [3]}))
    assert summary["answered"] == 5
    assert "class code" in " ".join(summary["failures"])


@pytest.mark.parametrize("name", [name for name in VARIANTS if name not in ("published", "private_rows", "energy")])
def test_every_variant_estimates_the_shares_of_a_shifted_set(plan, name):
    chosen = plan(name, epsilons=(8.0,))
    run(open_grid("inline"), chosen, 6, BAGGED)
    assert np.abs(ratios(chosen, name) - SHARES).sum() < 0.15


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
    world = World(chosen, Views(chosen)).of(chosen.variants[0])
    session = protocol("class_ratio")(noise=noise).begin(world, epsilon, chosen.draws)
    [collector] = [asked.collector for asked in session.questions() if asked.question.kind == "counts"]
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
    world = World(chosen, Views(chosen)).of(chosen.variants[0])
    session = protocol("class_ratio")(**options).begin(world, 1.0, chosen.draws)
    [asked] = session.questions()
    weight, sigma = asked.question.label_weight, asked.question.mechanism().parameters["scale"]
    assert 2 * weight**2 / (2 * weight**2 + 4) == pytest.approx(share)

    covariances, variance = session._noise_of(np.array([60.0, 30.0]))
    released = asked.question.mechanism().release(np.zeros(3 + 8), NoiseBits(1, "noise"), 20_000)
    counts = (released[:, :3] - released[:, :3].mean(axis=1, keepdims=True)) / weight  # moved to the public size
    for covariance in covariances:
        np.testing.assert_allclose(covariance, np.cov(counts, rowvar=False), atol=0.05 * covariance.max())
    assert variance == pytest.approx(released[:, 3:].var(), rel=0.05)

    def sent(deviations):
        moved = np.array([1.0, -1.0, 0.0]) * deviations * sigma / weight
        counts = np.broadcast_to(20.0 + moved, (1, chosen.draws, 2, 3))
        arrays = {"sizes": np.full((1, 2), 60.0), "counts": counts, "means": np.zeros((1, chosen.draws, 2, 8))}
        return Submission("noisy_embeddings", np.array([0]), arrays, asked.question.promise())

    far = asked.collector.add(sent(50.0 + 60.0 * weight / sigma))
    assert list(far) == [0]
    assert asked.collector.add(sent(39.0)) == {}


def test_what_parties_send_is_counted(plan):
    chosen = plan("gaussian", "rows", "off")
    _, summary = run(open_grid("inline"), chosen, 6, BAGGED)
    sizes, counts = 2 * 8, 2 * 3 * 8
    embedding, rows = 2 * 64 * 8, 2 * 60 * 3 * 8
    costs = summary["bytes_per_party"]
    assert costs["gaussian"] == [8 + sizes + 2 * counts + 8 + sizes + embedding] * 2
    assert costs["rows"] == [8 + sizes + 2 * counts + 8 + sizes + rows] * 2
    assert costs["off"] == [8 + sizes + counts + 8 + sizes + embedding]


def test_guarantees_say_who_is_protected_and_which_releases_protect_nobody(plan):
    _, summary = run(open_grid("inline"), plan(), 6, BAGGED)
    found = guarantees(summary)
    units = {name: guarantee.get("unit", "none") for name, guarantee in found.items()}
    nobody = {"published", "energy", "classifier", "off"}
    assert units == {name: "none" if name in nobody else "label" for name in VARIANTS} | {"private_rows": "row"}
    assert found["published"]["claimed"] == [1.0, 1e-3]
    texts = {a["text"] for a in found["default"]["assumptions"]}
    assert any("every party adds its noise itself" in text for text in texts)
    assert summary["ledger"]["non_private"]


def test_a_floor_is_declared_and_not_checked(plan):
    _, summary = run(open_grid("inline"), plan("floor"), 6, BAGGED)
    [first, _] = summary["ledger"]["releases"]
    floors = [a for a in first["guarantee"]["assumptions"] if "at least 10" in a["text"] or "10 " in a["text"]]
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
    with pytest.raises(QuorumError, match="one person"):
        run(open_grid("inline"), plan("gaussian"), 6, persons)


def test_too_few_answers_end_the_run(plan):
    with pytest.raises(QuorumError):
        run(open_grid("inline"), plan("default"), 6, Reference("support.bagged:Parties", {"broken": [0, 1, 2, 3]}))


def test_fewer_bags_than_classes_are_refused_before_any_party_is_asked(plan):
    with pytest.raises(InputError, match="at least as many bags as classes"):
        run(open_grid("inline"), plan("off", parties=1), 1, Reference("support.bagged:NoSuchProvider"))


def test_bags_that_cannot_tell_the_classes_apart_are_refused_without_noise(plan):
    with pytest.raises(InputError, match="cannot be told apart"):
        run(
            open_grid("inline"),
            plan("off", parties=2, quorum=0.4),
            2,
            Reference("support.bagged:Parties", {"broken": [1]}),
        )


def test_noise_from_the_operating_system_does_not_repeat(plan):
    chosen = plan("gaussian", noise_seed=None, draws=1)
    first, summary = run(open_grid("inline"), chosen, 6, BAGGED)
    second, _ = run(open_grid("inline"), chosen, 6, BAGGED)
    assert first != second
    assert summary["ledger"]["releases"][0]["guarantee"]["parameters"]["entropy"] == "system"


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


def test_a_budget_holds_for_what_parties_release(plan):
    with pytest.raises(BudgetExceededError):
        run(open_grid("inline"), plan("gaussian", budget={"epsilon": 2.0, "delta": 1e-3}), 6, BAGGED)


def test_released_estimators_are_read_back_as_they_were(plan):
    chosen = plan("gaussian", "published")
    run(open_grid("inline"), chosen, 6, BAGGED)
    for name in ("gaussian", "published"):
        path = Path(chosen.directory) / f"{name}.npz"
        models = ReleasedRatios.load(path)
        replace(models, variant="again").save(path.with_name("again.npz"))
        again = ReleasedRatios.load(path.with_name("again.npz"))
        assert again.draws(1) == models.draws(1) == 2
        rows = draw(np.repeat(np.arange(3), 20), 3)
        mapped = models.feature_maps[1].transform(rows)
        np.testing.assert_array_equal(again.estimator(1, 1).predict(mapped), models.estimator(1, 1).predict(mapped))


@pytest.mark.parametrize("damage", [b"", b"not a zip", None])
def test_a_damaged_file_is_refused(plan, damage, tmp_path):
    path = tmp_path / "damaged.npz"
    if damage is None:
        np.savez(path, epsilon=np.ones(1))
    else:
        path.write_bytes(damage)
    with pytest.raises(InputError, match="not a released estimator"):
        ReleasedRatios.load(path)
