"""Whatever some parties say about their bags, a run ends with estimates that are class ratios."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from support.bagged import draw
from support.worlds import run

from aggregator.releases.estimator_models import ReleasedRatios
from aggregator.trial.plan import VariantPlan
from federation.contract.errors import QuorumError
from federation.contract.plugins import Reference
from federation.engines.inline import open_grid
from federation.queries.bags import LARGEST_FEATURE
from scenarios.settings.words import Kind
from scenarios.simulated.simulation import Conduct, SplitSpec

EMBEDDING = {"submit": "embedding", "estimator": "whitened", "dimensions": 16}
ROWS = {"submit": "rows", "estimator": "whitened", "dimensions": 16}
VARIANTS = {  # every question, and every way to learn from the answers
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
PLANS = tuple(VariantPlan(name, "class_ratio", options) for name, options in VARIANTS.items())
MEANS = {name for name, options in VARIANTS.items() if options.get("submit") == "embedding"}  # all others ask for rows
EPSILON = 4.0


@pytest.fixture
def ratios(make_plan):
    """The class ratios that each variant estimates of one set (V, C), and the causes of failures, with `holdings`."""

    def estimated(holdings, rows, variants=PLANS, **fields):
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


SPEC = SplitSpec("breast_cancer", None, None, None, None, 60, 0.3, 8, 40, "iid", 1, 0, bags=2)


def attacked(ratios, conduct, **fields):
    table = SPEC.reference("public_rows").call()
    holdings = SPEC.reference("SimulatedParties", conduct=asdict(conduct))
    world = {"public": SPEC.reference("public_rows"), "parties": 8, "bags": 2, "largest_bag": 20, "quorum": 0.2}
    return ratios(holdings, table.rows[:50], classes=("no", "yes"), features=("standardise",), **{**world, **fields})


@pytest.fixture(scope="module")
def honest():
    """What is estimated, by variant, where nobody attacks: filled in by the first test that needs it."""
    return {}


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=() if kind == "malformed" else pytest.mark.slow) for kind in get_args(Kind)],
)
def test_attackers_end_no_run(ratios, kind, honest):
    found, failures = attacked(ratios, Conduct(hostile=3 / 8, kind=kind, seed=1))
    require_ratios(found)
    if not honest:
        estimated, nobody = attacked(ratios, Conduct())
        assert nobody == {}
        honest |= estimated
    if kind in ("malformed", "oversized"):
        asked = {count for cause, count in failures.items() if "outside the declared range" in cause}
        assert len(asked) == 1
        assert min(asked) % 3 == 0  # three parties, each time they were asked
    else:
        assert failures == {}
    changed = [name for name in found if not np.array_equal(found[name], honest[name])]
    assert len(changed) > len(found) / 2  # the attack is one


def test_dropouts_end_no_run_above_the_quorum(ratios):
    conduct = Conduct(dropout=0.4, seed=1)
    gone = sum(conduct.drops_out(party) for party in range(8))
    assert 2 <= gone <= 5
    found, failures = attacked(ratios, conduct)
    require_ratios(found)
    assert set(failures) == {"dropped out"}
    with pytest.raises(QuorumError):
        attacked(ratios, conduct, quorum=0.9)


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


SOME = (("rows", 1.01 * LARGEST_FEATURE, True), ("counts", 1e9, True), ("sizes", 0.5, True))


@pytest.mark.parametrize(
    ("hostile", "name", "largest", "refused"),
    [pytest.param([0, 1, 2, 3], *case, marks=() if case in SOME else pytest.mark.slow) for case in EXTREMES]
    + [pytest.param([0], *case, marks=pytest.mark.slow) for case in EXTREMES if not case[2]],
)
def test_extreme_values_end_no_run(ratios, hostile, name, largest, refused):
    """Of the variants whose answers have such a field: all others get what honest parties send."""
    holdings = Reference("support.hostile_answers:ExtremeBags", {"hostile": hostile, "name": name, "largest": largest})
    rows = draw(np.repeat(np.arange(3), 20), 5)
    world = {
        "public": Reference("support.bagged:public_table"),
        "parties": 6,
        "bags": 2,
        "largest_bag": 60,
        "quorum": 0.3,
    }
    own = tuple(plan for plan in PLANS if name in ("counts", "sizes", "means" if plan.name in MEANS else "rows"))
    found, failures = ratios(holdings, rows, own, features=("standardise",), **world)
    require_ratios(found)
    assert bool(failures) == refused
