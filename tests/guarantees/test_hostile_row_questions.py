"""Whatever an aggregator asks of a deployed party about rows that are protected, no failure tells of one."""

from dataclasses import replace

import numpy as np
import pytest
from support.two_class_questions import marginals, moment, row_moments

from federation.contract.errors import InputError
from federation.contract.plugins import Reference
from federation.engines.codec import decode_question, encode_question
from federation.features.feature_map import FeatureMap
from federation.features.steps import Affine, Append, ClipNorm, Fourier, OneHot, Polynomial, UnitNorm
from federation.numerics.binning import Bins
from federation.queries.marginals import Hypothesis
from parties.guard.answering import answered
from parties.party_data.cohort import Cohort
from parties.site.worker import cost_of

CONTENTS = ({}, {"missing": [0]}, {"huge": [0]}, {"strange": [0]})
COUNTS = marginals()
SUMS = replace(moment("gaussian", "row"), most=60)
MOMENTS = row_moments()
NO_COLUMN = OneHot(np.arange(3), np.zeros(0), np.zeros(4, dtype=np.int64))
THREE = (Append(1.0),) * 3
DATES = OneHot(np.array([0]), np.array(["2020-01-01"], dtype="datetime64[D]"), np.array([0, 1]))
MAPS = {
    "overflow": (Affine(np.zeros(3), np.full(3, 1e308)), Polynomial(3), Affine(np.zeros(10), np.ones((10, 3)))),
    "underflow": (Affine(np.zeros(3), np.full(3, 5e-324)), UnitNorm()),
    "fast waves": (Fourier(np.full((3, 1), 1e308)), Append(1.0)),
    "no column left": (NO_COLUMN, *THREE),
    "norm of no column": (NO_COLUMN, UnitNorm(), *THREE),
    "monomials of no column": (NO_COLUMN, Polynomial(2), *THREE),
    "a norm of three axes": (ClipNorm(np.ones((1, 1, 1))),),
    "a complex norm": (ClipNorm(np.ones((1, 1)) + 1j),),
    "dates for texts": (DATES,),
}
NARROW = ("no column left", "norm of no column", "monomials of no column")


def map_of(name):
    """The map, also where no honest aggregator could make it."""
    if name not in NARROW:
        return FeatureMap(3, MAPS[name])
    forged = object.__new__(FeatureMap)
    for field, value in (("columns", 3), ("steps", MAPS[name])):
        object.__setattr__(forged, field, value)
    return forged


def behind(question, feature_map):
    """The question about rows behind another map."""
    if question is MOMENTS:
        return replace(question, rows=replace(question.rows, feature_map=feature_map))
    return replace(question, feature_map=feature_map)


def outcome(question, **provided):
    """Of a deployed party's answer all but its numbers, and what it costs."""
    cohort = Cohort(Reference("support.two_class_parties:Parties", provided).to_json(), 0, 1, None)
    asked = replace(question, seeded=False)
    cost = cost_of(asked, cohort)
    answer = answered(replace(cohort, paid=True), asked)
    return len(answer.parties), tuple(answer.failures.items()), cost.to_json()


@pytest.mark.parametrize("question", [COUNTS, SUMS, MOMENTS], ids=["counts", "sums", "moments"])
@pytest.mark.parametrize("name", MAPS)
def test_no_row_decides_whether_a_question_is_answered_or_what_it_costs(name, question):
    asked = behind(question, map_of(name))
    contents = (*CONTENTS, {"empty": [0]}) if question is COUNTS else CONTENTS  # how many there are is public in sums
    assert len({outcome(asked, **held) for held in contents}) == 1


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("a norm of three axes", "feature map cannot be read"),
        ("a complex norm", "must be numbers, got complex128"),
        ("dates for texts", "must be numbers, got datetime64"),
        *((name, "columns between its steps, must be a whole number from 1") for name in NARROW),
    ],
)
def test_a_map_of_other_types_or_without_columns_reaches_no_row(name, why):
    question = replace(COUNTS, feature_map=map_of(name))
    with pytest.raises(InputError, match=why):
        decode_question(encode_question(question), type(question))


@pytest.mark.parametrize("name", NARROW)
def test_no_map_without_columns_can_be_made(name):
    with pytest.raises(InputError, match="1"):
        FeatureMap(3, MAPS[name])


@pytest.mark.parametrize(
    "other",
    [
        {"hypothesis": Hypothesis.constant(2, 1)},
        {"bins": Bins(np.zeros(0), np.ones(4, dtype=np.int64))},
        {"feature_map": FeatureMap(3, THREE)},
    ],
)
def test_a_query_about_other_features_fails_before_there_is_a_row(other):
    with pytest.raises(InputError):
        replace(COUNTS, **other)
