"""Weighted sums of labels in bags: what is asked, what is learned from it, and which sigma is a guarantee."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.label_answers import LEAST, MOST, collected, question
from support.linear_labels import RANGE, WEIGHTS
from support.worlds import plan_fixture, run

from aggregator.protocols.bag_regression import NoisyWeightedLLP
from aggregator.trial.plan import PublicNumbers, VariantPlan
from federation.contract.errors import BudgetExceededError, InputError
from federation.contract.plugins import Reference
from federation.engines.inline import open_grid

LINEAR = Reference("support.linear_labels:Parties")

plan = plan_fixture(
    {},
    public=Reference("support.linear_labels:public_table"),
    features=("constant",),
    classes=(),
    class_names="the range is declared",
    label_range=RANGE,
    parties=6,
    largest_bag=87,
    smallest_bag=80,
    delta=1e-3,
    draws=2,
)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"size": 0}, "size"),
        ({"bags": 0}, "bags"),
        ({"rho": 0.0}, "rho"),
        ({"rho": 1.5}, "rho"),
        ({"sigma": -1.0}, "sigma"),
        ({"noise": "laplace", "weights": "gaussian"}, "signs"),
        ({"noise": "laplace", "rho": 0.5}, "noise: gaussian"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, text):
    with pytest.raises(InputError, match=text):
        NoisyWeightedLLP(**options)


@pytest.mark.parametrize(
    ("options", "design"),
    [
        ({"size": 4}, (0, MOST // 4, 4, 0)),  # each party forms what it can, and all rows of bags have noise
        ({"size": 4, "bags": 3}, (LEAST, 3, 4, 0)),
        ({"size": 8, "noisy_rows": "fixed", "rho": 0.5}, (LEAST, LEAST // 8, 0, LEAST // 2)),
    ],
)
def test_bags_are_those_that_all_parties_can_form(options, design):
    found = question(NoisyWeightedLLP(**options)).design
    assert (found.records, found.bags, found.per_bag, found.noisy) == design


@pytest.mark.parametrize("weights", ["signs", "gaussian"])
def test_sums_without_noise_give_the_law_of_the_labels(weights):
    options = NoisyWeightedLLP(size=4, weights=weights, noise="off")
    description, arrays = options.learn(collected(options), 0, 0)
    assert description == {"learner": "linear", "range": list(RANGE)}
    np.testing.assert_allclose(arrays["weights"], [*WEIGHTS, 0.0], atol=0.05)


def test_what_leaves_a_party_is_counted_in_bags():
    rows, sums = NoisyWeightedLLP(size=4).sends(PublicNumbers(1e-6, features=5, largest_bag=42))
    assert (rows.numbers, sums.numbers) == (10 * 4 * 5, 10)
    assert (rows.private, sums.private) == (False, True)
    assert [sent.numbers for sent in NoisyWeightedLLP(size=4).sends(PublicNumbers(1e-6))] == [None, None]


def test_a_sigma_is_a_guarantee_where_its_exact_delta_is_within_the_declared_one(plan):
    bags = {"size": 8, "sigma": 12.0}
    loose, tight = (
        plan(variants=(VariantPlan("bags", "noisy_weighted_llp", bags),), epsilons=(1.0,), delta=delta)
        for delta in (0.2, 1e-3)
    )
    for chosen, kept in ((loose, True), (tight, False)):
        _, summary = run(open_grid("inline"), chosen, 6, LINEAR)
        [entry] = summary["ledger"]["releases"]
        assert ("non_private" not in entry["guarantee"]) == kept
        if kept:
            assert 1e-3 < entry["guarantee"]["delta"] < 0.2
    absent = Reference("support.linear_labels:NoSuchProvider")
    said = r"standard deviation 12 .* has delta 0\.0173, above the declared 0\.001; choose .* or remove the budget"
    with pytest.raises(BudgetExceededError, match=said):
        run(open_grid("inline"), replace(tight, budget={"epsilon": 1.0, "delta": 1e-3}), 6, absent)


def test_bags_that_do_not_fit_a_party_are_refused_before_any_is_asked(plan):
    chosen = plan(variants=(VariantPlan("big", "noisy_weighted_llp", {"size": 81}),))
    with pytest.raises(InputError, match="81 rows"):
        run(open_grid("inline"), chosen, 6, Reference("support.linear_labels:NoSuchProvider"))


@pytest.mark.parametrize("given", [{}, {"noise": "laplace"}, {"weights": "gaussian", "noisy_rows": "fixed"}])
def test_a_linear_model_takes_account_of_the_noise_unless_told_not_to(given):
    answers = collected(NoisyWeightedLLP(size=4, **given), epsilon=0.5)
    known, plain = (NoisyWeightedLLP(size=4, **given, shrink=asked).learn(answers, 0, 0)[1] for asked in (True, False))
    distances = [np.linalg.norm(found["weights"] - [*WEIGHTS, 0.0]) for found in (known, plain)]
    assert distances[0] < distances[1]
    with pytest.raises(InputError, match="shrink belongs to learner: linear"):
        NoisyWeightedLLP(learner="network", shrink=False)
