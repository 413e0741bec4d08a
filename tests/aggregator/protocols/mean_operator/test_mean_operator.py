"""The mean operator through the two apps: what is asked, what is learned, and what is promised."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.two_class_parties import draw, plan_fixture
from support.worlds import guarantees, run, run_in_cohorts

from aggregator.learners.mean_operators.classifiers import MeanOperatorClassifier
from aggregator.protocols.mean_operator.mean_operator import MeanOperator
from aggregator.releases.models import ReleasedModels
from aggregator.trial.feature_fitting import fit
from aggregator.trial.plan import PublicNumbers, VariantPlan
from federation.contract.errors import BudgetExceededError, InputError
from federation.contract.plugins import Reference
from federation.contract.trust import TrustTerms
from federation.engines.inline import open_grid
from federation.features.feature_map import completed

HONEST = Reference("support.two_class_parties:Parties")
VARIANTS = {
    "auto": {},
    "laplace": {"noise": "laplace", "l1_bound": 1.5},
    "pure": {"noise": "pure"},
    "gaussian": {"noise": "gaussian"},
    "response": {"noise": "randomised_response"},
    "published": {"noise": "published_laplace"},
    "row": {"protect": "row", "noise": "pure"},
    "secure": {"trust": "secure", "noise": "gaussian"},
    "secure_pure": {"trust": "secure", "noise": "pure"},
    "fourier": {"expansion": "fourier", "dimensions": 20},
    "polynomial": {"expansion": "polynomial"},
    "hinges": {"loss": "double_hinge"},
    "off": {"noise": "off"},
    "off_square": {"noise": "off", "loss": "square", "unlabelled": "auxiliary"},
}

plan = plan_fixture("mean_operator", VARIANTS)


def models(plan, name):
    return ReleasedModels.load(Path(plan.run.directory) / f"{name}.npz")


def test_releases_are_the_same_bytes_whatever_the_cohorts(plan):
    chosen = plan(epsilons=(1.0,))
    _, summary = run_in_cohorts(chosen, Reference("support.two_class_parties:Parties", {"broken": [3]}))
    assert summary["answered"] == 5


def test_every_variant_learns_where_noise_leaves_something_and_says_what_is_protected_and_who_is_trusted(plan):
    chosen = plan()
    _, summary = run(open_grid("inline"), chosen, 6, HONEST)
    rows, labels = draw(7777, 2000)
    spread = labels.var()  # the mean squared error of the share of the second class
    assert models(chosen, "hinges").probabilities(0, 0, rows) is None  # which no proper loss has
    for name in VARIANTS:
        released = models(chosen, name)
        last = len(released.epsilons) - 1
        assert np.mean(released.scores(rows, last, 0).argmax(axis=1) == labels) > 0.85, name
        if name not in ("hinges", "published"):
            found = [released.probabilities(release, 0, rows)[:, 1] for release in (0, last)]
            loudest, quietest = (np.square(shares - labels).mean() for shares in found)
            assert quietest < 0.8 * spread, name
            assert loudest < 1.1 * spread, name  # much noise brings all to 1/2
    found = guarantees(summary)
    assert {name for name, guarantee in found.items() if guarantee.get("non_private")} == {"off", "off_square"}
    for name in set(VARIANTS) - {"off", "off_square", "published"}:
        assert (found[name]["unit"], found[name]["epsilon"]) == ("row" if name == "row" else "label", 1.0)
        texts = " ".join(assumption["text"] for assumption in found[name]["assumptions"])
        assert ("secure summation" in texts) == name.startswith("secure")
        assert ("trusts nobody" in texts) != name.startswith("secure")
    assert found["published"]["epsilon"] == pytest.approx(2.0, rel=1e-6)  # the root of 4 features
    assert found["secure"]["parameters"]["contributors"] == 2  # a quorum of one half, less one that may collude


def test_without_noise_it_is_the_classifier_on_all_rows_and_a_budget_holds_before_anybody_is_asked(plan):
    chosen = plan("off", parties=4)
    run(open_grid("inline"), chosen, 4, HONEST)
    held = [draw(party, 60 + 7 * (party % 2)) for party in range(4)]
    rows, labels = (np.concatenate(parts) for parts in zip(*held, strict=True))
    feature_map = completed(fit(("standardise",), Reference("support.two_class_parties:public_table").call().rows))
    expected = MeanOperatorClassifier(regularisation=1e-4).fit(feature_map.transform(rows), labels)
    weights = models(chosen, "off").weights[0][0]
    np.testing.assert_allclose(weights[1] - weights[0], expected.weights_, atol=1e-5)
    absent = Reference("support.two_class_parties:NoSuchProvider")
    with pytest.raises(BudgetExceededError, match="published"):
        run(open_grid("inline"), plan("published", budget={"epsilon": 8.0, "delta": 1e-5}), 6, absent)
    with pytest.raises(InputError, match=r"data\.positive"):
        run(open_grid("inline"), plan("auto", classes=("a", "b", "c")), 6, HONEST)


def test_what_is_called_idle_makes_no_difference(plan):
    linear = {"loss": "unhinged", "noise": "laplace"}
    pairs = {
        "denoise": ({"noise": "off"}, {"noise": "off", "denoise": False}),
        "unlabelled": (linear, {**linear, "unlabelled": "own"}),
    }
    for name, both in pairs.items():
        weights = []
        for options in both:
            chosen = plan(variants=(VariantPlan("same", "mean_operator", options),))
            _, summary = run(open_grid("inline"), chosen, 6, HONEST)
            assert summary["bytes_per_party"]["same"][0] < 500 or name == "denoise"  # no row is sent
            weights.append(models(chosen, "same").weights[0])
        np.testing.assert_array_equal(*weights)
        assert MeanOperator(**both[0]).idle().keys() == {name, "denoise"}
    assert MeanOperator().idle() == {}


def test_what_is_expected_follows_from_the_noise_and_is_nothing_without_numbers():
    known = PublicNumbers(1e-6, terms=TrustTerms(100), rows=12_000, features=51, classes=2)
    found = MeanOperator().expected_error(known, 1.0)
    assert (round(1 - found.error, 2), found.basis) == (0.89, "measured")
    assert MeanOperator().expected_error(PublicNumbers(1e-6), 1.0) is None
    assert MeanOperator(noise="sums").expected_error(known, 1.0).error > found.error
    # Where the least noise is not what costs least by the law:
    few = replace(known, terms=TrustTerms(1), rows=60, features=9)
    auto, other = (MeanOperator(noise=noise).expected_error(few, 0.3) for noise in ("auto", "sums"))
    assert auto.error <= other.error
    assert MeanOperator(expansion="fourier", noise="sums").expected_error(known, 1.0).error > found.error
