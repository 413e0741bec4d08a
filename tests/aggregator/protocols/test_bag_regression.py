"""Weighted sums of labels in bags: what is asked, what is learned from it, and which sigma is a guarantee.

Sums of rows and labels with secret weights: what is asked and promised, and what is learned from it. How many bags of
which rows a party forms, and options that leave it none.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.label_answers import LEAST, MOST, collected, question
from support.linear_labels import FIELDS, RANGE, WEIGHTS
from support.worlds import plan_fixture, run

from aggregator.contract.protocol import Trust
from aggregator.protocols.bag_regression import NoisyWeightedLLP, WeightedLBA, bags_of_size
from aggregator.trial.plan import PublicNumbers, VariantPlan
from federation.contract.errors import BudgetExceededError, InputError
from federation.contract.plugins import Reference
from federation.engines.inline import open_grid

plan = plan_fixture({}, draws=2, **FIELDS)


@pytest.mark.parametrize(("kind", "options", "text"), [
    (NoisyWeightedLLP, {"size": 0}, "size"), (NoisyWeightedLLP, {"bags": 0}, "bags"),
    (NoisyWeightedLLP, {"rho": 0.0}, "rho"), (NoisyWeightedLLP, {"rho": 1.5}, "rho"),
    (NoisyWeightedLLP, {"sigma": -1.0}, "sigma"),
    (NoisyWeightedLLP, {"noise": "laplace", "weights": "gaussian"}, "signs"),
    (NoisyWeightedLLP, {"noise": "laplace", "rho": 0.5}, "noise: gaussian"),
    (NoisyWeightedLLP, {"learner": "network", "shrink": False}, r"learner.*linear"),
    (WeightedLBA, {"size": 0}, r"size.*1.*0"), (WeightedLBA, {"bags": 0}, r"bags.*0"),
    (WeightedLBA, {"solver": "adam", "epochs": 0}, r"epochs.*0"),
    (WeightedLBA, {"solver": "adam", "learning_rate": -0.1}, "learning_rate"),
    (WeightedLBA, {"solver": "adam", "batch_rows": 0}, "batch_rows"),
    (WeightedLBA, {"epochs": 7, "batch_rows": 8}, r"batch_rows.*solver.*adam"),
    (WeightedLBA, {"solver": "adam", "shrink": False}, r"solver.*exact"),
])  # fmt: skip
def test_options_that_make_no_sense_are_refused(kind, options, text):
    kind(size=1, bags=1)
    with pytest.raises(InputError, match=text):
        kind(**options)


@pytest.mark.parametrize(("options", "design"), [
    ({"size": 4}, (0, MOST // 4, 4, 0)),  # each party forms what it can, and all rows of bags have noise
    ({"size": 4, "bags": 3}, (LEAST, 3, 4, 0)),
    ({"size": 8, "noisy_rows": "fixed", "rho": 0.5}, (LEAST, LEAST // 8, 0, LEAST // 2)),
])  # fmt: skip
def test_bags_are_those_that_all_parties_can_form(options, design):
    found = question(NoisyWeightedLLP(**options)).design
    assert (found.records, found.bags, found.per_bag, found.noisy) == design


@pytest.mark.parametrize("options", [
    *(NoisyWeightedLLP(size=4, weights=weights, noise="off") for weights in ("signs", "gaussian")),
    *(WeightedLBA(size=4, noise=noise) for noise in ("published", "off")),
])  # fmt: skip
def test_sums_without_noise_give_the_law_of_the_labels(options):
    description, arrays = options.learn(collected(options), 0, 0)
    assert description == {"learner": "linear", "range": list(RANGE)}
    np.testing.assert_allclose(arrays["weights"], [*WEIGHTS, 0.0], atol=0.05)


def test_bags_that_are_asked_for_fit_every_party_and_the_model_takes_account_of_noise():
    answers = collected(WeightedLBA(size=4), epsilon=1.0)
    shrunk, least = (WeightedLBA(size=4, shrink=asked).learn(answers, 0, 0)[1]["weights"] for asked in (True, False))
    assert np.linalg.norm(shrunk) < np.linalg.norm(least)
    published = WeightedLBA(noise="published").promise(PublicNumbers(1e-6), 1.0, Trust.NONE).spends
    assert "nothing holds for all data" in published.reason
    exact = collected(WeightedLBA(size=4, noise="published"))
    one, other = (WeightedLBA(size=4, noise="published", shrink=asked).learn(exact, 0, 0) for asked in (True, False))
    np.testing.assert_array_equal(one[1]["weights"], other[1]["weights"])
    assert question(WeightedLBA(size=LEAST // 2, bags=2)).design.bags == 2
    with pytest.raises(InputError, match=r"3.*40.*120.*80"):
        question(WeightedLBA(size=LEAST // 2, bags=3))
    assert question(WeightedLBA(size=4)) == question(WeightedLBA(size=4, solver="adam", epochs=3))


def test_a_sigma_is_a_guarantee_where_its_exact_delta_is_within_the_declared_one(plan):
    bags = (VariantPlan("bags", "noisy_weighted_llp", {"size": 8, "sigma": 12.0}),)
    loose, tight = (plan(variants=bags, epsilons=(1.0,), delta=delta) for delta in (0.2, 1e-3))
    for chosen, kept in ((loose, True), (tight, False)):
        _, summary = run(open_grid("inline"), chosen, 6, Reference("support.linear_labels:Parties"))
        [entry] = summary["ledger"]["releases"]
        assert ("non_private" not in entry["guarantee"]) == kept
        if kept:
            assert 1e-3 < entry["guarantee"]["delta"] < 0.2
    absent = Reference("support.linear_labels:NoSuchProvider")
    with pytest.raises(BudgetExceededError, match=r"12.*delta.*0\.0173.*0\.001"):
        run(open_grid("inline"), tight.changed(budget={"epsilon": 1.0, "delta": 1e-3}), 6, absent)
    large = plan(variants=(VariantPlan("big", "noisy_weighted_llp", {"size": 81}),))  # does not fit a party
    with pytest.raises(InputError, match="81"):
        run(open_grid("inline"), large, 6, absent)


@pytest.mark.parametrize("given", [{}, {"noise": "laplace"}, {"weights": "gaussian", "noisy_rows": "fixed"}])
def test_a_linear_model_takes_account_of_the_noise_unless_told_not_to(given):
    answers = collected(NoisyWeightedLLP(size=4, **given), epsilon=0.5)
    known, plain = (NoisyWeightedLLP(size=4, **given, shrink=asked).learn(answers, 0, 0)[1] for asked in (True, False))
    distances = [np.linalg.norm(found["weights"] - [*WEIGHTS, 0.0]) for found in (known, plain)]
    assert distances[0] < distances[1]


def test_adam_comes_near_least_squares_with_enough_steps_of_the_same_answers():
    answers = collected(WeightedLBA(size=4, noise="published"))

    def learned(seed=0, **options):
        return WeightedLBA(size=4, noise="published", **options).learn(answers, 0, seed)[1]["weights"]

    exact, enough = learned(), {"solver": "adam", "learning_rate": 0.1, "batch_rows": 32}
    np.testing.assert_allclose(learned(**enough), exact, atol=0.01)
    few = learned(**enough, epochs=1)
    assert np.linalg.norm(few) < 0.9 * np.linalg.norm(exact)
    np.testing.assert_array_equal(few, learned(**enough, epochs=1))
    assert not np.array_equal(few, learned(1, **enough, epochs=1))  # other bags are first


@given(st.integers(1, 50), st.integers(1, 20), st.integers(0, 500), st.integers(0, 500))
def test_so_many_bags_as_are_asked_for_take_the_rows_that_every_party_has(size, bags, least, further):
    if least < size * bags:
        with pytest.raises(InputError, match=rf"{bags}.*{size}.*{bags * size}"):
            bags_of_size(size, bags, least, least + further)
    else:
        assert bags_of_size(size, bags, least, least + further) == (least, bags)


@given(st.integers(1, 50), st.integers(1, 500), st.integers(0, 500))
def test_without_a_number_each_party_forms_what_it_can(size, least, further):
    if least < size:
        with pytest.raises(InputError, match=f"{least}"):
            bags_of_size(size, None, least, least + further)
    else:
        records, bags = bags_of_size(size, None, least, least + further)
        assert records == 0
        assert bags * size <= least + further < (bags + 1) * size


@pytest.mark.parametrize("noise", [0.0, 5.0, 20.0])
def test_bags_of_several_parties_tell_less_when_they_are_added_up_under_one_noise(noise):
    """Why sums over random bags are not added in a secure sum: squared errors of least squares, by their formulas."""
    random, parties, bags, size, features = np.random.default_rng(1), 10, 50, 4, 4
    errors = {"apart": [], "added": []}
    for _ in range(150):
        rows = random.normal(size=(parties, bags, size, features))
        labels = rows.sum(axis=-1) + random.normal(size=rows.shape[:-1])
        weights = random.choice([-1.0, 1.0], size=rows.shape[:-1])
        row_sums, label_sums = np.einsum("pmk,pmkr->pmr", weights, rows), (weights * labels).sum(axis=-1)
        apart = row_sums.reshape(-1, features), (label_sums + noise * random.normal(size=(parties, bags))).ravel()
        added = row_sums.sum(axis=0), label_sums.sum(axis=0) + noise * random.normal(size=bags)
        for name, (left, right) in (("apart", apart), ("added", added)):
            errors[name].append(np.square(np.linalg.lstsq(left, right)[0] - 1).sum())
    of_apart = features * (size + noise**2) / (parties * bags * size)
    of_added = features * (parties * size + noise**2) / (bags * parties * size) * bags / (bags - features - 1)
    assert np.mean(errors["apart"]) == pytest.approx(of_apart, rel=0.25)
    assert np.mean(errors["added"]) == pytest.approx(of_added, rel=0.25)
    assert np.mean(errors["added"]) > np.mean(errors["apart"])
