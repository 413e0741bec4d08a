"""Questions about bags: they survive the wire, say what an answer may look like, and promise by public numbers.

Questions about bags that are the same at all parties: what is hidden in a sum, what is promised, what is refused.
"""

import json
import math
import re
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.questions import BAGS as QUESTIONS_BAGS
from support.questions import QUESTIONS
from support.questions import WAVES as QUESTIONS_WAVES
from support.refusals import refused

from aggregator.trial.feature_fitting import fit
from federation.contract.errors import InputError
from federation.contract.guarantee import UNTIMED, Adjacency, Check, Guarantee, Keeper, NoGuarantee, Unit
from federation.contract.query import OFF, Declared, ReleaseId, Submission, check_submission
from federation.engines.codec import (
    bytes_per_party,
    decode_question,
    decode_submission,
    encode_question,
    encode_submission,
)
from federation.features.feature_map import FeatureMap, with_fourier
from federation.mechanisms.accounting.composition import GaussianCurve, compose
from federation.queries.bags import (
    LARGEST_COUNT,
    LARGEST_FEATURE,
    PUBLISHED,
    Bags,
    CountsNoise,
    CountsQuestion,
    EmbeddingsQuestion,
    EmbeddingTotalsQuestion,
    JointNoise,
    NoisyEmbeddingsQuestion,
    RowsQuestion,
    TotalsNoise,
    largest_bag,
)

ROWS = np.random.default_rng(3).normal(size=(40, 3))
UNIT = fit(["standardise", "unit_norm"], ROWS)
WAVES = with_fourier(UNIT, 0.7, 6, seed=2)
BAGS = Bags(2, 3, 4)
NOISE = CountsNoise("dirichlet_floor", 0.1, 1e-6, floor=7)
JOINT = JointNoise("gaussian", 0.1, 1e-6)
RELEASE = ReleaseId("a|b")
ASKED = {
    "counts": CountsQuestion(NOISE, BAGS, release=RELEASE, draws=5),
    "embeddings": EmbeddingsQuestion(BAGS, WAVES),
    "noisy_embeddings": NoisyEmbeddingsQuestion(JOINT, BAGS, WAVES, 1 / 3, release=RELEASE, draws=5),
    "rows": RowsQuestion(BAGS, UNIT, 9),
}
SHAPES = {
    "counts": {"sizes": (2,), "counts": (5, 2, 3)},
    "embeddings": {"sizes": (2,), "means": (2, 6)},
    "noisy_embeddings": {"sizes": (2,), "counts": (5, 2, 3), "means": (5, 2, 6)},
    "rows": {"sizes": (2,), "rows": (2, 9, 3)},
}


@given(
    st.floats(1e-300, 1e100),
    st.floats(0, 1, exclude_max=True),
    st.integers(1, 1000),
    st.text(min_size=1, max_size=20),
    st.booleans(),
    st.integers(0, 50),
)
def test_every_number_arrives_as_it_was(epsilon, delta, draws, name, seeded, most):
    noise, release = CountsNoise("pure", epsilon, delta), ReleaseId(name)
    question = CountsQuestion(noise, Bags(1, 2, most), release=release, draws=draws, seeded=seeded)
    assert decode_question(encode_question(question), CountsQuestion) == question


def answer(kind, parties=3):
    question = ASKED[kind]
    arrays = {name: np.zeros((parties, *declared.shape)) for name, declared in question.fields().items()}
    promise = Guarantee(0.1, 1e-6, Unit.PERSON, Adjacency.REPLACE, "dirichlet_floor")
    return Submission(kind, np.arange(parties), arrays, promise, {7: "dropped out"})


@pytest.mark.parametrize("kind", ASKED)
def test_an_answer_has_the_declared_form_and_survives_the_wire(kind):
    question, sent = ASKED[kind], answer(kind)
    assert {name: declared.shape for name, declared in question.fields().items()} == SHAPES[kind]
    check_submission(question, sent)
    entries = sum(int(np.prod(shape)) for shape in SHAPES[kind].values())
    assert bytes_per_party(question.fields()) == 8 * (1 + entries)
    found = decode_submission(encode_submission(sent, question.fields()), question.fields())
    assert (found.kind, found.guarantee, found.failures) == (kind, sent.guarantee, sent.failures)
    for name, array in sent.arrays.items():
        np.testing.assert_array_equal(found.arrays[name], array)
        cut = {**sent.arrays, name: array[:, :-1]}
        refused("shape", check_submission, question, replace(sent, arrays=cut))


@pytest.mark.parametrize(
    ("kind", "name", "valid", "refused"),
    [
        ("counts", "sizes", (0.0, LARGEST_COUNT), (-1.0,)),
        ("counts", "counts", (-LARGEST_COUNT,), (1.01 * LARGEST_COUNT, np.nan)),
        ("embeddings", "means", (-1.0,), (1.01,)),
        ("noisy_embeddings", "means", (1.01,), (np.inf,)),  # noise
        ("noisy_embeddings", "counts", (), (np.nan,)),
        ("rows", "rows", (-LARGEST_FEATURE,), (1.01 * LARGEST_FEATURE, np.nan)),
    ],
)
def test_values_out_of_range_are_those_of_one_party(kind, name, valid, refused):
    for values, out in ((valid, False), (refused, True)):
        for value in values:
            array = answer(kind).arrays[name]
            array.reshape(3, -1)[1, -1] = value
            assert ASKED[kind].fields()[name].invalid(array).tolist() == [False, out, False]


@pytest.mark.parametrize(
    ("made", "wrong", "words"),
    [
        # Of 1.5 bags a person would be in two, for the noise of 1.5: more would be spent than is claimed.
        *((Bags, {"rows_per_person": most}, "rows_per_person") for most in (1.5, -1, True)),
        (Bags, {"count": 0}, "count"),
        (Bags, {"classes": 2.0}, "classes"),
        # Cells of classes in bags are counted, and whoever asks could else ask for more than there is memory.
        *((Bags, {"count": count, "classes": classes}, None) for count, classes in ((2**20 + 1, 1), (1, 2**16 + 1))),
        (Bags, {"count": 2**12, "classes": 2**9}, None),
        *(
            (partial(RowsQuestion, BAGS, UNIT), {"largest": rows}, r"0.*1000000000")
            for rows in (-1, 2.0, True, 10**9 + 1)
        ),
    ],
)
def test_bags_and_rows_are_counted_in_whole_numbers_up_to_what_any_party_holds(made, wrong, words):
    assert Bags(2**12, 2**8).fields()["sizes"].numbers == 2**12
    with pytest.raises(InputError, match=words):
        made(**{"count": 1, "classes": 2} | wrong if made is Bags else wrong)


def test_questions_about_bags_take_their_numbers_for_granted_and_a_floor_is_for_simulations():
    for kind in ("counts", "noisy_embeddings"):
        assert ASKED[kind].assumes() == Declared(classes=3, bags=2, rows_per_person=4)
    assert "a floor protects only where it is true" in ASKED["counts"].simulated_only()
    assert replace(ASKED["counts"], noise=CountsNoise("pure", 1.0)).simulated_only() is None
    assert ASKED["noisy_embeddings"].simulated_only() is None


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (lambda: counts("gaussian", delta=0.0).promise(), r"delta.*0"),
        (lambda: counts("pure", epsilon=0.0).promise(), "epsilon"),
        (lambda: counts("pure", classes=1).promise(), r"classes.*2"),
        (lambda: counts("gauss").promise(), "gaussian"),
        (lambda: replace(counts("pure"), noise=CountsNoise("dirichlet_floor", 1.0, 1e-6)).promise(), "floor"),
        (lambda: counts("dirichlet_floor", epsilon=0.05).promise(), r"floor.*161"),
        (lambda: counts("dirichlet_shifted", epsilon=1.0, delta=1e-3, most=20).promise(), "pseudo_count"),
        # Its noise is for one answer: paid for once, it would be asked for often.
        (lambda: replace(ASKED["counts"], release=ReleaseId("a release", 2, 1)), r"counts.*2"),
        (lambda: joint(most=1).promise(), None),
        (lambda: joint(weight=0.0).promise(), "label_weight"),
        (lambda: joint(delta=0.0).promise(), "delta"),
    ],
)
def test_what_no_mechanism_serves_or_protects_is_refused(asked, words):
    with pytest.raises(InputError, match=words):
        asked()


EXTRA = {"dirichlet_floor": {"floor": 40}, "dirichlet_shifted": {"pseudo_count": 40}}
PURE = ("pure", "published_laplace", "laplace_prior")
WITH_DELTA = ("gaussian", "laplace", "independent_laplace", "dirichlet_floor", "dirichlet_shifted")
PRIVATE = ("auto", *PURE, *WITH_DELTA, "published_gaussian")
PURPOSE = ReleaseId("purpose")
EIGHT_WAVES = with_fourier(FeatureMap(2, ()), 1.0, 8, seed=1)


def counts(noise, epsilon=1.0, delta=1e-6, most=0, seeded=True, classes=3, draws=1):
    known = CountsNoise(noise, epsilon, delta, **EXTRA.get(noise, {}))
    return CountsQuestion(known, Bags(4, classes, most), release=PURPOSE, draws=draws, seeded=seeded)


def joint(weight=1.0, epsilon=1.0, delta=1e-6, most=0, seeded=True):
    known = JointNoise("gaussian", epsilon, delta)
    return NoisyEmbeddingsQuestion(known, Bags(4, 3, most), EIGHT_WAVES, weight, release=PURPOSE, seeded=seeded)


@pytest.mark.parametrize("noise", PRIVATE)
def test_one_label_is_promised_what_was_asked_for_by_both_sides(noise):
    promised = counts(noise).promise()
    assert (promised.epsilon, promised.unit, promised.adjacency) == (1.0, Unit.LABEL, Adjacency.REPLACE)
    mechanism = counts(noise).mechanism()
    assert promised.mechanism == mechanism.name
    assert promised.delta == mechanism.delta
    assert mechanism.delta_at(promised.epsilon) <= promised.delta
    if noise in PURE:
        assert promised.delta == 0
    if noise in WITH_DELTA:
        assert promised.delta == 1e-6
    assert Guarantee.from_dict(json.loads(json.dumps(promised.to_dict()))) == promised
    assert counts(noise, draws=50).promise() == promised
    assert counts(noise, epsilon=0.5).promise().parameters != promised.parameters


@pytest.mark.parametrize("noise", PRIVATE)
@pytest.mark.parametrize("most", [1, 2, pytest.param(5, marks=pytest.mark.slow)])
def test_a_person_is_promised_as_much_by_more_noise_in_each_bag(noise, most):
    question = counts(noise, epsilon=2.0, delta=1e-3, most=most)
    promised, mechanism = question.promise(), question.mechanism()
    assert promised.unit is Unit.PERSON
    assert promised.epsilon == pytest.approx(2.0)
    assert promised.delta == pytest.approx(most * mechanism.delta)
    bag = mechanism.guarantee(Unit.PERSON)
    total = compose([replace(bag, gaussian_mu=None)] * most, 0.0)
    assert total == pytest.approx((promised.epsilon, promised.delta))
    assert promised.parameters.get("bags_per_person", 1) == most
    assert (promised.gaussian_mu is None) == (bag.gaussian_mu is None or most > 1)
    if most > 1:
        once = counts(noise, epsilon=2.0, delta=1e-3).mechanism()
        assert np.trace(mechanism.covariance(100)) > np.trace(once.covariance(100))


@pytest.mark.parametrize("noise", ["gaussian", "dirichlet_shifted"])
def test_the_curve_of_counts_is_that_of_the_mechanism(noise):
    question = counts(noise)
    for epsilon in (0.0, 0.25, 1.0):
        assert question.curve()(epsilon) == question.mechanism().delta_at(epsilon)
    assert question.curve()(1.0) <= question.promise().delta
    assert [counts(noise).curve() for noise in ("pure", "laplace")] == [None, None]  # epsilon says it all


def test_gaussian_noise_in_several_bags_of_a_person_has_the_curve_of_all_together():
    question = counts("gaussian", most=3)
    bag, promised = question.mechanism().guarantee(), question.promise()
    curve = GaussianCurve.of([bag] * 3)
    assert question.curve()(0.5) == curve.delta(0.5)
    assert curve.mu == pytest.approx(math.sqrt(3) * bag.gaussian_mu)
    assert question.curve()(promised.epsilon) < promised.delta  # less than the sum that is promised
    assert counts("dirichlet_shifted", most=3).curve() is None


def texts(promised, check):
    return " / ".join(assumption.text for assumption in promised.assumptions if assumption.check is check)


def test_what_nobody_can_check_is_declared():
    label, person = counts("pure").promise(), counts("pure", most=3).promise()
    assert "a row lies in one bag of one party" in texts(label, Check.ENFORCED)
    assert "no two parties hold the same row or person" in texts(label, Check.DECLARED)
    assert "every row is about another person" in texts(label, Check.DECLARED)
    assert "every row is about another person" not in texts(person, Check.DECLARED)
    assert "one counts in each of at most 3 bags" in texts(person, Check.ENFORCED)
    assert "at least 40 records" in texts(counts("dirichlet_floor").promise(), Check.DECLARED)
    row = joint().promise()
    assert "norm at most 1" in texts(row, Check.ENFORCED)
    assert "bag sizes" in texts(row, Check.DECLARED)
    assert UNTIMED in row.assumptions
    assert UNTIMED not in label.assumptions


def test_nothing_is_promised_without_a_guarantee():
    assert counts(OFF).promise() == NoGuarantee("noise is off")
    published = counts(PUBLISHED, epsilon=0.05, delta=0.05).promise()
    assert isinstance(published, NoGuarantee)
    assert published.claimed == (0.05, 0.05)
    assert re.search(r"delta.*0\.135", published.reason)  # measured by quadrature, of the promised 0.05


@pytest.mark.parametrize("tile", [1, 2, 100, 1024])
@pytest.mark.parametrize("weight", [1e-3, 1.0, 1e6])
def test_the_joint_noise_covers_the_rounding_of_the_largest_bag_and_of_none_larger(tile, weight):
    """(n - 1) additions of a summand err by at most n 2^-53 / (1 - n 2^-53) of the magnitudes that are summed."""
    unit = Fraction(1, 2**53)
    rows, charged = largest_bag(tile), Fraction(joint(weight).mechanism().sensitivity) ** 2

    def moved(rows):
        additions = tile + Fraction(rows, tile) + 1
        rounding = additions * unit / (1 - additions * unit) * rows
        products = 2 * Fraction(weight) ** 2 * (1 + 2 * rows * unit) ** 2
        return products + 4 * (1 + rounding + Fraction(1, 10**14)) ** 2

    assert moved(rows) <= charged
    assert rows * (tile + rows / tile) * 2.0**-53 > 0.98e-6
    if weight < 1:
        assert moved(math.ceil(1.01 * rows)) > charged
    assert largest_bag(1024) > 2_500_000


@given(st.floats(0.05, 5), st.floats(1e-9, 0.1), st.floats(0.01, 100))
def test_the_joint_noise_covers_labels_and_rows_at_once(epsilon, delta, weight):
    question = joint(weight, epsilon, delta)
    promised, mechanism = question.promise(), question.mechanism()
    assert (promised.epsilon, promised.delta, promised.unit) == (epsilon, delta, Unit.ROW)
    assert mechanism.dimension == 3 + 8
    assert mechanism.sensitivity >= math.hypot(math.sqrt(2) * weight, 2)
    assert mechanism.sensitivity <= math.hypot(math.sqrt(2) * weight, 2) * (1 + 1e-5)
    assert promised.parameters["charged_sensitivity"] >= mechanism.sensitivity


COUNTS, ROWS_BAG_TOTALS = QUESTIONS["count_totals"], QUESTIONS["embedding_totals"]
LABELS = replace(ROWS_BAG_TOTALS, protect="label", label_weight=0.0)
each = pytest.mark.parametrize("question", [COUNTS, LABELS, ROWS_BAG_TOTALS], ids=["counts", "labels", "rows"])


@each
def test_it_is_a_release_by_itself(question):
    off = replace(question, noise=TotalsNoise("off"))
    assert isinstance(off.promise(), NoGuarantee)
    assert off.steps == {}
    refused("draws", replace, question, draws=0)
    refused(None, replace, question, release=ReleaseId("two", 2, 0))


@each
def test_nothing_of_an_answer_is_seen_but_in_a_sum(question):
    """Sizes neither: they would say which bags a party has."""
    assert question.shared
    assert question.steps.keys() == question.fields().keys()
    assert question.open_fields == {}
    assert question.hidden_numbers == sum(field.numbers for field in question.fields().values())
    assert question.steps["counts"] == question.mechanism().step
    assert "share of the noise hides nothing by itself" in question.simulated_only()


def test_what_has_no_noise_is_sent_on_a_grid_and_where_rows_are_protected_nothing_is():
    assert (LABELS.steps["sizes"], LABELS.steps["sums"]) == (1.0, 2.0**-26)
    assert "sizes" not in ROWS_BAG_TOTALS.fields()
    assert set(ROWS_BAG_TOTALS.steps.values()) == {ROWS_BAG_TOTALS.mechanism().step}
    draws = replace(ROWS_BAG_TOTALS, draws=4).fields()
    assert (draws["counts"].shape, draws["sums"].shape) == ((4, 2, 3), (4, 2, QUESTIONS_WAVES.dimension))


@each
def test_it_promises_what_the_sum_does_and_a_party_that_counts_on_fewer_honest_ones_refuses(question):
    promise = question.promise()
    assert promise.unit is (Unit.ROW if question is ROWS_BAG_TOTALS else Unit.LABEL)
    assert (promise.adjacency, promise.epsilon) == (Adjacency.REPLACE, 1.0)
    assert promise.delta == (0.0 if question is COUNTS else 1e-6)
    assert promise.parameters["contributors"] == 80
    said = [one for one in promise.assumptions if "every bag" in one.text]
    assert [(one.check) for one in said] == [Check.ENFORCED]
    [public] = [one for one in promise.assumptions if one.text.startswith("which bags there are")]
    assert (public.check, public.keeper) == (Check.DECLARED, Keeper.HOLDER)
    assert ("in which bag a row lies is not" in public.text) is (question is ROWS_BAG_TOTALS)
    assert question.takes_features_as_public is (question is LABELS)
    question.promise(Declared(honest=80, classes=3, bags=2))
    for declared in (Declared(honest=79), Declared(classes=2), Declared(bags=3), Declared(rows_per_person=1)):
        refused(None, question.promise, declared)


def test_a_persons_rows_are_protected_together_and_a_row_adds_one_or_the_label_weight():
    of_person = replace(COUNTS, bags=replace(QUESTIONS_BAGS, rows_per_person=3))
    assert of_person.promise().unit is Unit.PERSON
    assert of_person.promise().epsilon == 1.0
    assert of_person.mechanism().additive.dimension == 6
    assert COUNTS.longest == LABELS.longest == ROWS_BAG_TOTALS.longest == 1.0
    assert [replace(ROWS_BAG_TOTALS, label_weight=weight).longest for weight in (7.0, 0.5)] == [7.0, 1.0]
    # Its size is bounded before anything is made.
    assert EmbeddingTotalsQuestion.work(ROWS_BAG_TOTALS) == 2 * (3 + QUESTIONS_WAVES.dimension)
    assert COUNTS.work() == 6


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"label_weight": 0.0}, "label_weight"),
        ({"label_weight": math.inf}, "label_weight"),
        ({"protect": "label"}, r"label_weight.*protect.*row"),
        ({"protect": "person"}, "protect"),
        ({"noise": TotalsNoise("pure", 1.0)}, r"protect.*row"),
        ({"bags": replace(QUESTIONS_BAGS, rows_per_person=1)}, None),
        ({"contributors": 0}, "contributors"),
    ],
)
def test_what_does_not_go_together_is_refused(changes, told):
    with pytest.raises(InputError, match=told):
        replace(ROWS_BAG_TOTALS, **changes)
