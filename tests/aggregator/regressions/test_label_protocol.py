"""Regressions from private labels through the two apps: what is asked, what is learned, and what is promised."""

import re
from pathlib import Path

import numpy as np
import pytest
from support.linear_labels import FIELDS, draw
from support.worlds import guarantees, plan_fixture, run, run_in_cohorts

from aggregator.releases.estimator_models import ReleasedRegressions
from aggregator.trial.plan import VariantPlan
from federation.contract.errors import InputError
from federation.contract.plugins import Reference
from federation.engines.inline import open_grid

LINEAR = Reference("support.linear_labels:Parties")
VARIANTS = {
    "sums": ("label_sums", {}),
    "shaped": ("label_sums", {"noise": "gaussian"}),
    "isotropic": ("label_sums", {"shape": "isotropic", "noise": "pure"}),
    "labels": ("private_labels", {}),
    "laplace": ("private_labels", {"noise": "laplace"}),
    "gaussian": ("private_labels", {"noise": "gaussian"}),
    "bins": ("private_labels", {"noise": "bins", "debiased": True}),
    "network": ("private_labels", {"noise": "off", "learner": "network"}),
    "bags": ("noisy_weighted_llp", {"size": 4}),
    "bag_laplace": ("noisy_weighted_llp", {"size": 4, "noise": "laplace"}),
    "bag_published": (
        "noisy_weighted_llp",
        {"size": 8, "weights": "gaussian", "noisy_rows": "fixed", "rho": 0.5, "sigma": 1.0},
    ),
    "bag_network": ("noisy_weighted_llp", {"size": 4, "noise": "off", "learner": "network"}),
    "repaired": ("weighted_lba", {"size": 4}),
    "lba_published": ("weighted_lba", {"size": 4, "noise": "published"}),
    "lba_off": ("weighted_lba", {"size": 4, "noise": "off"}),
    "bags_off": ("noisy_weighted_llp", {"size": 4, "noise": "off"}),
    "sums_off": ("label_sums", {"noise": "off"}),
    "labels_off": ("private_labels", {"noise": "off"}),
}
UNSAFE = {"network", "bag_network", "bag_published", "lba_published", "lba_off", "bags_off", "sums_off", "labels_off"}

plan = plan_fixture(
    {name: VariantPlan(name, *variant) for name, variant in VARIANTS.items()}, epsilons=(1.0, 8.0), draws=2, **FIELDS
)


def error(plan, name, release=0, noise=0):
    """Mean squared error on new rows, whose labels have a noise of variance .01."""
    models = ReleasedRegressions.load(Path(plan.run.directory) / f"{name}.npz")
    rows, labels = draw(7777, 2000)
    return np.mean((models.predict(release, noise, models.feature_maps[release].transform(rows)) - labels) ** 2)


@pytest.mark.slow
def test_releases_are_the_same_bytes_whatever_the_cohorts(plan):
    chosen = plan(epsilons=(1.0,))
    _, summary = run_in_cohorts(chosen, Reference("support.linear_labels:Parties", {"broken": [3]}))
    assert summary["answered"] == 5


@pytest.mark.parametrize("name", ["lba_off", "lba_published", "bags_off", "sums_off", "labels_off"])
def test_without_noise_every_protocol_finds_the_linear_law(plan, name):
    chosen = plan(name)
    run(open_grid("inline"), chosen, 6, LINEAR)
    assert error(chosen, name) < 0.012


@pytest.mark.parametrize("name", sorted(set(VARIANTS) - UNSAFE))
def test_more_privacy_costs_more(plan, name):
    chosen = plan(name, epsilons=(0.05, 50.0), draws=4)
    run(open_grid("inline"), chosen, 6, LINEAR)
    low, high = (np.mean([error(chosen, name, release, noise) for noise in range(4)]) for release in (0, 1))
    assert high < low
    assert high < 1.0


def test_guarantees_say_what_is_protected_and_which_releases_protect_nobody(plan):
    _, summary = run(open_grid("inline"), plan(), 6, LINEAR)
    found = guarantees(summary)
    assert {name for name, guarantee in found.items() if guarantee.get("non_private")} == UNSAFE
    for name in set(VARIANTS) - UNSAFE:
        assert (found[name]["unit"], found[name]["epsilon"]) == ("label", 1.0)
        texts = " ".join(assumption["text"] for assumption in found[name]["assumptions"])
        assert "range" in texts
        assert "every party adds its noise itself" in texts
    pure = {"sums", "isotropic", "labels", "laplace", "bins", "bag_laplace"}
    assert {name for name in set(VARIANTS) - UNSAFE if found[name]["delta"] == 0} == pure
    assert found["bag_published"]["claimed"] == [1.0, 1e-3]
    assert re.search(r"1.*-10.*10.*delta.*0", found["bag_published"]["reason"])
    assert found["bags"]["delta"] == found["repaired"]["delta"] == found["shaped"]["delta"] == 1e-3


@pytest.mark.parametrize(("name", "fewest"), [("bags_off", 80), ("lba_off", 80), ("bags_off", 40)])
def test_all_bags_of_all_parties_count(plan, name, fewest):
    kind, options = VARIANTS[name]
    chosen = plan(variants=(VariantPlan(name, kind, {**options, "size": 10}),), smallest_bag=fewest, draws=1)
    _, summary = run(open_grid("inline"), chosen, 6, LINEAR)
    assert summary["bytes_per_party"][name][0] > 8 * 8  # rows of up to 8 bags
    assert error(chosen, name) < 0.02


def test_equal_answers_are_asked_for_once_and_classes_are_not_real_labels(plan):
    _, summary = run(open_grid("inline"), plan("labels", "sums"), 6, LINEAR)
    assert summary["ledger"]["published_together"][0]["releases"] == 4
    twins = [VariantPlan(name, "private_labels", {"learner": name}) for name in ("linear", "network")]
    _, summary = run(open_grid("inline"), plan(variants=tuple(twins), epsilons=(2.0,)), 6, LINEAR)
    [total] = summary["ledger"]["published_together"]
    assert (total["releases"], total["epsilon"]) == (2, 2.0)
    with pytest.raises(InputError, match="range"):
        run(open_grid("inline"), plan("labels", classes=("a", "b"), label_range=None), 6, LINEAR)
