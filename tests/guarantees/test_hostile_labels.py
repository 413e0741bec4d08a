"""Whatever some parties say about their labels or bags, a run ends with models that predict numbers or class ratios."""

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from support.bagged import draw as draw_bag
from support.linear_labels import RANGE, draw
from support.worlds import run

from aggregator.releases.estimator_models import ReleasedRatios, ReleasedRegressions
from aggregator.trial.plan import VariantPlan
from federation.contract.errors import QuorumError
from federation.contract.plugins import Reference
from federation.engines.inline import open_grid
from federation.queries.bags import LARGEST_FEATURE
from scenarios.settings.words import Kind
from scenarios.simulated.simulation import Conduct, SplitSpec

BAGS = {"size": 4}
VARIANTS = {  # every question, mechanism and way to learn
    "sums": ("label_sums", {}),
    "isotropic": ("label_sums", {"shape": "isotropic", "noise": "gaussian"}),
    "whitened": ("label_sums", {"shape": "whitened", "noise": "gaussian"}),
    "optimal": ("label_sums", {"noise": "gaussian"}),
    "exact sums": ("label_sums", {"noise": "off"}),
    "unbiased": ("private_labels", {}),
    "one bit": ("private_labels", {"noise": "one_bit"}),
    "laplace": ("private_labels", {"noise": "laplace"}),
    "gaussian": ("private_labels", {"noise": "gaussian"}),
    "bins": ("private_labels", {"noise": "bins"}),
    "debiased": ("private_labels", {"noise": "bins", "debiased": True}),
    "estimated": ("private_labels", {"noise": "estimated_bins"}),
    "free": ("private_labels", {"noise": "estimated_bins", "debiased": True}),
    "exact labels": ("private_labels", {"noise": "off"}),
    "network": ("private_labels", {"learner": "network"}),
    "bags": ("noisy_weighted_llp", BAGS),
    "bag laplace": ("noisy_weighted_llp", {**BAGS, "noise": "laplace"}),
    "bag weights": ("noisy_weighted_llp", {**BAGS, "weights": "gaussian", "noisy_rows": "fixed"}),
    "exact bags": ("noisy_weighted_llp", {**BAGS, "noise": "off"}),
    "bag network": ("noisy_weighted_llp", {**BAGS, "learner": "network"}),
    "secret": ("weighted_lba", BAGS),
    "published": ("weighted_lba", {**BAGS, "noise": "published"}),
}
PLANS = tuple(VariantPlan(name, *entry) for name, entry in VARIANTS.items())
LINEAR = {
    "public": Reference("support.linear_labels:public_table"),
    "features": ("constant",),
    "label_range": RANGE,
    "parties": 6,
    "largest_bag": 87,
    "smallest_bag": 80,
    "quorum": 0.3,
}


@pytest.fixture
def predicted(make_plan):
    """What each variant predicts for some rows, and the causes of failures, with `holdings`."""

    def predictions(holdings, rows, variants=PLANS, **fields):
        known = {"classes": (), "delta": 1e-3, "epsilons": (4.0,), "draws": 1, "variants": variants}
        plan = make_plan(**{**known, **fields})
        _, summary = run(open_grid("inline"), plan, plan.terms.parties, holdings)
        found = {}
        for variant in variants:
            models = ReleasedRegressions.load(Path(plan.run.directory) / f"{variant.name}.npz")
            found[variant.name] = models.predict(0, 0, models.feature_maps[0].transform(rows))
        return found, summary["failures"]

    return predictions


def require_numbers(found):
    for name, values in found.items():
        assert np.isfinite(values).all(), name


SPEC = SplitSpec(
    "diabetes", None, None, None, None, 40, 0.2, 8, None, "iid", 1, 0, label_range=(25.0, 346.0), outside="clip"
)


def attacked(predicted, conduct, **fields):
    table = SPEC.reference("public_rows").call()
    holdings = SPEC.reference("SimulatedParties", conduct=asdict(conduct))
    world = {"public": SPEC.reference("public_rows"), "parties": 8, "quorum": 0.2}
    world |= {"largest_bag": 40, "smallest_bag": 39}
    features = ("standardise", "constant")
    return predicted(holdings, table.rows, features=features, label_range=(25.0, 346.0), **{**world, **fields})


@pytest.fixture(scope="module")
def honest():
    """What is predicted, by variant, of labels and of bags where nobody attacks: filled in by the first test."""
    return {"labels": {}, "bags": {}}


def require_harmless(estimate, require, kind, honest):
    """Require that a run in which three parties attack ends as `require` says, for what it estimates; return failures.

    Each attacker is refused for values out of range, each time that it was asked, or for nothing.
    """
    found, failures = estimate(Conduct(hostile=3 / 8, kind=kind, seed=1))
    require(found)
    if not honest:
        expected, nobody = estimate(Conduct())
        assert nobody == {}
        honest |= expected
    if kind in ("malformed", "oversized"):
        [count] = {count for cause, count in failures.items() if "outside the declared range" in cause}
        assert count % 3 == 0
    else:
        assert failures == {}
    assert sum(not np.array_equal(found[name], honest[name]) for name in found) > len(found) / 2  # the attack is one
    return failures


def require_quorum(estimate, require):
    """Require that dropouts end no run above the quorum."""
    conduct = Conduct(dropout=0.4, seed=1)
    assert 2 <= sum(conduct.drops_out(party) for party in range(8)) <= 5
    found, failures = estimate(conduct)
    require(found)
    assert set(failures) == {"dropped out"}
    with pytest.raises(QuorumError):
        estimate(conduct, quorum=0.9)


@pytest.mark.slow
@pytest.mark.parametrize("kind", get_args(Kind))
def test_attackers_end_no_run(predicted, kind, honest):
    failures = require_harmless(partial(attacked, predicted), require_numbers, kind, honest["labels"])
    assert len(failures) <= 1


@pytest.mark.slow
def test_dropouts_end_no_run_above_the_quorum(predicted, ratios):
    require_quorum(partial(attacked, predicted), require_numbers)
    require_quorum(partial(attacked_bags, ratios), require_ratios)


@pytest.mark.parametrize("hostile", [pytest.param([0], marks=pytest.mark.slow), [0, 1, 2]])
@pytest.mark.parametrize(
    ("name", "factor", "more", "refused"),
    [
        ("rows", 0.0, 0.0, False),
        ("rows", 2.0**90, 0.0, False),  # features have no declared range
        ("weights", 0.0, 0.0, True),  # no signs
        ("weights", 1.5, 0.0, True),
        ("sums", 1.0, 2.0**60, True),
        ("sums", 1.0, 1e4, True),  # where there is little noise
        ("sums", 0.0, 0.0, False),
        ("row_sums", 2.0**60, 0.0, False),
        ("row_sums", 0.0, 0.0, False),
        ("label_sums", 1.0, 2.0**60, True),
        ("size", 0.0, 1.5, True),
        ("size", 0.0, 88.0, True),
        ("size", 0.0, 1.0, True),  # then rows and labels beyond must be zeros
        ("labels", 1.0, 2.0**60, True),
        ("labels", 1.0, 100.0, True),
        ("gram", 0.0, 0.0, True),  # such rows have no sum X'y but 0
        ("gram", -1.0, 0.0, True),
        ("gram", 1.0, 1e6, False),  # as if the constant column had such a value in every row and all others too
        ("gram", 2.0**60, 0.0, False),
        ("signed gram", 1.0, 200.0, True),  # entries beyond what the diagonal allows make a negative square
        ("covariance", 0.0, 0.0, False),
        ("covariance", -1.0, 0.0, True),
        ("covariance", 1.0, 2.0**60, True),
        ("row_sum", -1.0, 0.0, False),
        ("row_sum", 0.0, 1e9, True),
        ("moment", 1.0, 2.0**60, True),
        ("moment", 0.0, 0.0, False),
    ],
)
def test_extreme_values_end_no_run(predicted, hostile, name, factor, more, refused):
    signed, name = name.startswith("signed"), name.removeprefix("signed ")
    arguments = {"hostile": hostile, "name": name, "factor": factor, "more": more, "signed": signed}
    kinds = {
        "rows": ("one bit", "exact labels", "network", "bags", "exact bags", "bag network"),
        "weights": ("bags", "exact bags", "bag weights"),
        "sums": ("bags", "bag laplace", "bag weights", "exact bags", "bag network"),
        "row_sums": ("secret", "published"),
        "label_sums": ("secret", "published"),
        "size": ("sums", "exact sums", "one bit", "exact labels"),
        "labels": [name for name, (kind, _) in VARIANTS.items() if kind == "private_labels" and name != "network"],
        "gram": ("sums", "isotropic", "whitened", "optimal", "exact sums"),
        "moment": ("sums", "isotropic", "whitened", "optimal", "exact sums"),
        "covariance": ("sums", "isotropic", "whitened", "optimal"),
        "row_sum": ("sums", "isotropic", "whitened", "optimal"),
    }
    variants = tuple(plan for plan in PLANS if plan.name in kinds[name])
    found, failures = predicted(
        Reference("support.hostile_answers:ExtremeLabels", arguments), draw(5, 50)[0], variants, **LINEAR
    )
    require_numbers(found)
    assert bool(failures) == refused


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 60.0])
def test_honest_answers_are_never_refused(predicted, epsilon):
    loud = Reference("support.linear_labels:Parties", {"loud": [0, 3]})  # labels at the ends of the range
    spared = ("estimated", "free", "network", "bag network")
    variants = tuple(plan for plan in PLANS if plan.name not in spared)
    _, failures = predicted(loud, draw(5, 50)[0], variants, **{**LINEAR, "epsilons": (epsilon,), "draws": 40})
    assert failures == {}


EMBEDDING = {"submit": "embedding", "estimator": "whitened", "dimensions": 16}
ROWS = {"submit": "rows", "estimator": "whitened", "dimensions": 16}
BAG_VARIANTS = {  # every question, and every way to learn from the answers
    "default": {},
    "embedding": EMBEDDING,
    "gaussian": {**EMBEDDING, "noise": "gaussian", "estimator": "class_means"},
    "floor": {**EMBEDDING, "noise": "dirichlet_floor", "floor": 4},
    "prior": {**EMBEDDING, "noise": "laplace_prior"},
    "published": {**EMBEDDING, "noise": "published_dirichlet"},
    "off": {**EMBEDDING, "noise": "off"},
    "row": {**EMBEDDING, "noise": "gaussian", "protect": "row"},
    "rows": ROWS,
    "nystrom": {**ROWS, "kernel": "nystrom"},
    "mmd": {**ROWS, "estimator": "mmd"},
    "exact": {"submit": "rows", "estimator": "class_means", "kernel": "exact"},
    "energy": {"submit": "rows", "estimator": "energy"},
    "classifier": {"submit": "rows", "estimator": "bag_classifier"},
    "svm": {"submit": "rows", "estimator": "proportion_svm"},
}
BAG_PLANS = tuple(VariantPlan(name, "class_ratio", options) for name, options in BAG_VARIANTS.items())
# All others ask for rows.
MEANS = {name for name, options in BAG_VARIANTS.items() if options.get("submit") == "embedding"}
EPSILON = 4.0


@pytest.fixture
def ratios(make_plan):
    """The class ratios that each variant estimates of one set (V, C), and the causes of failures, with `holdings`."""

    def estimated(holdings, rows, variants=BAG_PLANS, **fields):
        plan = make_plan(variants=variants, epsilons=(EPSILON,), delta=1e-3, draws=1, **fields)
        _, summary = run(open_grid("inline"), plan, plan.terms.parties, holdings)
        found = {}
        for variant in variants:
            models = ReleasedRatios.load(Path(plan.run.directory) / f"{variant.name}.npz")
            found[variant.name] = models.estimator(0, 0).predict(models.feature_maps[0].transform(rows))
        return found, summary["failures"]

    return estimated


def require_ratios(found):
    for name, values in found.items():
        assert np.isfinite(values).all(), name
        assert values.min() >= 0, name
        assert values.sum() == pytest.approx(1), name


BAG_SPEC = SplitSpec("breast_cancer", None, None, None, None, 60, 0.3, 8, 40, "iid", 1, 0, bags=2)


def attacked_bags(ratios, conduct, **fields):
    table = BAG_SPEC.reference("public_rows").call()
    holdings = BAG_SPEC.reference("SimulatedParties", conduct=asdict(conduct))
    world = {"public": BAG_SPEC.reference("public_rows"), "parties": 8, "bags": 2, "largest_bag": 20, "quorum": 0.2}
    return ratios(holdings, table.rows[:50], classes=("no", "yes"), features=("standardise",), **{**world, **fields})


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind == "malformed" else pytest.mark.slow) for kind in get_args(Kind)]
)
def test_attackers_end_no_run_about_bags(ratios, kind, honest):
    require_harmless(partial(attacked_bags, ratios), require_ratios, kind, honest["bags"])


EXTREMES = [  # of a field, and whether they are refused
    ("rows", LARGEST_FEATURE, False),
    ("rows", 1.01 * LARGEST_FEATURE, True),
    ("rows", 0.0, False),
    ("means", 1.0, True),  # each feature within its range, but together longer than a row
    ("means", 1 / 4, False),  # 16 features of norm 1
    ("means", 1e9, True),
    ("counts", 1e9, True),
    ("counts", 20.0, True),  # more than the noise of most mechanisms can do
    ("counts", 0.0, False),
    ("sizes", 1.0, False),
    ("sizes", 61.0, True),
    ("sizes", 0.5, True),
]


SOME = (("rows", 1.01 * LARGEST_FEATURE, True), ("sizes", 0.5, True))


@pytest.mark.parametrize(
    ("hostile", "name", "largest", "refused"),
    [pytest.param([0, 1, 2, 3], *case, marks=() if case in SOME else pytest.mark.slow) for case in EXTREMES]
    + [pytest.param([0], *case, marks=pytest.mark.slow) for case in EXTREMES if not case[2]],
)
def test_extreme_values_end_no_run_about_bags(ratios, hostile, name, largest, refused):
    """Of the variants whose answers have such a field: all others get what honest parties send."""
    holdings = Reference("support.hostile_answers:ExtremeBags", {"hostile": hostile, "name": name, "largest": largest})
    rows = draw_bag(np.repeat(np.arange(3), 20), 5)
    world = {
        "public": Reference("support.bagged:public_table"),
        "parties": 6,
        "bags": 2,
        "largest_bag": 60,
        "quorum": 0.3,
    }
    own = tuple(plan for plan in BAG_PLANS if name in ("counts", "sizes", "means" if plan.name in MEANS else "rows"))
    found, failures = ratios(holdings, rows, own, features=("standardise",), **world)
    require_ratios(found)
    assert bool(failures) == refused
