"""Questions about real labels: what they promise follows from public numbers alone."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.refusals import refused

from aggregator.trial.feature_fitting import fit
from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, NoGuarantee, Unit
from federation.contract.query import Declared, ReleaseId
from federation.engines.codec import decode_question, encode_question
from federation.mechanisms.labels.unbiased_response import table
from federation.queries.labels import (
    BagSums,
    BagSumsNoise,
    BagSumsQuestion,
    LabelledRows,
    LabelsNoise,
    LabelSumsNoise,
    LabelSumsQuestion,
    PrivateLabelsQuestion,
    WeightedSumsNoise,
    WeightedSumsQuestion,
)

RAW = np.random.default_rng(4).normal(size=(40, 3))
ROWS = LabelledRows(fit(["standardise"], RAW), -2.0, 2.0, 50)
DESIGN = BagSums(40, 5, 8, "signs", 4, 0)
KNOWN = {"release": ReleaseId("a release"), "draws": 3}
ASKED = {
    "bag_sums": BagSumsQuestion(BagSumsNoise("gaussian", 1.0, 1e-3, sigma=None), ROWS, DESIGN, **KNOWN),
    "weighted_sums": WeightedSumsQuestion(WeightedSumsNoise("gaussian", 1.0, 1e-3), ROWS, DESIGN, **KNOWN),
    "private_labels": PrivateLabelsQuestion(LabelsNoise("one_bit", 1.0, 1e-3, debiased=True), ROWS, **KNOWN),
    "label_sums": LabelSumsQuestion(LabelSumsNoise("auto", 1.0, 1e-3), ROWS, "whitened", **KNOWN),
}
SHAPES = {
    "bag_sums": {"formed": (), "rows": (5, 8, 3), "weights": (3, 5, 8), "sums": (3, 5)},
    "weighted_sums": {"formed": (), "row_sums": (3, 5, 3), "label_sums": (3, 5)},
    "private_labels": {"size": (), "rows": (50, 3), "labels": (3, 50)},
    "label_sums": {"size": (), "gram": (3, 3), "moment": (3, 3), "row_sum": (3,), "covariance": (3, 3)},
}


@pytest.mark.parametrize("kind", ASKED)
def test_answers_have_one_form(kind):
    assert {name: field.shape for name, field in ASKED[kind].fields().items()} == SHAPES[kind]


@pytest.mark.parametrize("kind", ASKED)
def test_a_label_is_promised_what_was_asked_for(kind):
    question = ASKED[kind]
    promised = question.promise()
    assert (promised.unit, promised.adjacency, promised.epsilon) == (Unit.LABEL, Adjacency.REPLACE, 1.0)
    assert promised.delta <= 1e-3
    assert question.payment() == promised == replace(question, draws=1).promise()
    assert question.assumes() == Declared(most_rows=50, label_range=(-2.0, 2.0))


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        (Declared(label_range=(-2.0, 3.0)), r"label_range.*-2\.0.*2\.0.*-2\.0.*3\.0"),
        (Declared(most_rows=51), r"most_rows.*50.*51"),
    ],
)
@pytest.mark.parametrize("kind", ASKED)
def test_labels_of_another_range_are_not_protected_by_its_noise(kind, declared, words):
    """Labels are moved into the range whatever it is; but a site that knows another was asked by mistake."""
    for promised in (ASKED[kind].promise, ASKED[kind].payment):
        refused(words, promised, declared)
        promised(Declared(label_range=(-2.0, 2.0), most_rows=49, classes=2))


def test_noise_that_misses_the_declared_delta_promises_nothing():
    quiet, loud = (
        replace(ASKED["bag_sums"], noise=BagSumsNoise("gaussian", 1.0, 1e-3, sigma=sigma)).promise()
        for sigma in (0.5, 50.0)
    )
    assert isinstance(quiet, NoGuarantee)
    assert "above the declared 0.001" in quiet.reason
    assert quiet.claimed == (1.0, 1e-3)
    assert loud.unit is Unit.LABEL
    published = replace(ASKED["weighted_sums"], noise=WeightedSumsNoise("published", 1.0, 1e-3)).promise()
    assert "secret weights have no guarantee for all data" in published.reason


@pytest.mark.parametrize(
    ("epsilon", "delta", "less", "more"),
    [(1.0, 0.0, "pure", None), (50.0, 1e-9, "pure", "gaussian"), (0.1, 1e-3, "gaussian", "pure")],
)
def test_auto_is_the_less_noise_of_the_two_by_public_numbers(epsilon, delta, less, more):
    def asked(kind):
        return replace(ASKED["label_sums"], noise=LabelSumsNoise(kind, epsilon, delta))

    assert asked("auto").promise() == asked(less).promise()
    if more is not None:
        assert asked("auto").promise() != asked(more).promise()
        assert np.trace(asked(less).mechanism(RAW).covariance()) < np.trace(asked(more).mechanism(RAW).covariance())


@pytest.mark.parametrize(
    ("known", "changes", "told"),
    [
        *(
            (ROWS, {"lowest": lowest, "highest": highest}, None)
            for lowest, highest in ((1.0, 1.0), (2.0, 1.0), (0.0, np.inf), (-np.inf, 0.0), (np.nan, 1.0))
        ),
        *((ROWS, {"most": most}, r"1.*1000000000") for most in (0, 10**9 + 1, 5.0, True)),
        *((DESIGN, {"bags": bags}, "bags") for bags in (0, 2.0)),
        *((DESIGN, {"size": size}, "size") for size in (0, 2**20 + 1)),
        *((DESIGN, {name: value}, name) for name, value in (("records", -1), ("per_bag", True), ("noisy", 1.5))),
    ],
)
def test_ranges_have_two_ends_and_numbers_of_rows_and_bags_are_whole(known, changes, told):
    with pytest.raises(InputError, match=told):
        replace(known, **changes)


def test_a_table_travels_as_it_is_and_its_reader_checks_it():
    asked = PrivateLabelsQuestion(LabelsNoise("unbiased", 2.0, 0.0, False, *table(2.0)), ROWS, **KNOWN)
    restored = decode_question(encode_question(asked), PrivateLabelsQuestion)
    assert restored.noise == asked.noise
    promised = restored.promise()
    assert (promised.epsilon, promised.delta, promised.mechanism) == (2.0, 0.0, "label_unbiased")
    assert restored.mechanism() is asked.mechanism()  # for equal tables it is made, and checked, once
    for changed in ({"epsilon": 1.9}, {"weights": ()}, {"outputs": ()}, {"epsilon": 13.0}):
        refused(None, replace(asked, noise=replace(asked.noise, **changed)).promise)


@pytest.mark.parametrize("kind", ["bag_sums", "weighted_sums", "label_sums"])
def test_the_curve_falls_to_the_promised_point(kind):
    question = ASKED[kind]
    if kind == "label_sums":
        question = replace(question, noise=replace(question.noise, kind="gaussian"))
    promised, curve = question.promise(), question.curve()
    deltas = [curve(epsilon) for epsilon in (0.0, 0.3, 0.6, 1.0)]
    assert deltas == sorted(deltas, reverse=True)
    assert deltas[0] > 10 * promised.delta
    assert deltas[-1] == pytest.approx(promised.delta, rel=1e-2)
    # Pure noise and single labels have no further curve: a guarantee's own says it all.
    assert replace(ASKED["label_sums"], noise=LabelSumsNoise("pure", 1.0, 0.0)).curve() is None
    assert ASKED["private_labels"].curve() is None


@settings(derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    shape=st.sampled_from(["optimal", "whitened", "isotropic"]),
    epsilon=st.floats(0.1, 4.0),
    part=st.floats(0.0, 1.0),
)
def test_noise_of_no_shape_exceeds_the_curve_of_label_sums(seed, shape, epsilon, part):
    rows = np.random.default_rng(seed).normal(size=(30, 3)) * [1.0, 0.01, 5.0]
    question = LabelSumsQuestion(LabelSumsNoise("gaussian", epsilon, 1e-6), ROWS, shape, **KNOWN)
    own = question.mechanism(rows)
    assert own.delta_at(part * epsilon) <= question.curve()(part * epsilon)
