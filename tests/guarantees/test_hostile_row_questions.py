"""Whatever an aggregator asks of a deployed party about rows that are protected, no failure tells of one."""

import json
from dataclasses import replace

import numpy as np
import pytest
from two_class_questions import marginals, moment

from federation.contract.errors import InputError
from federation.feature_steps import Affine, Append, ClipNorm, Fourier, OneHot, Polynomial, UnitNorm
from federation.features import FeatureMap
from federation.grids.codec import decode_question, encode_question
from federation.hypotheses import Hypothesis
from federation.numerics.binning import Bins
from federation.reference import Reference
from parties.registry import questions
from parties.holdings import Cohort

CONTENTS = ({}, {"missing": [0]}, {"huge": [0]}, {"strange": [0]})
COUNTS = marginals()
SUMS = replace(moment("gaussian", "row"), most=60)
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


def outcome(folder, question, **provided):
    """Of a deployed party's answer all but its numbers, and what it paid."""
    folder.mkdir()
    allowance = json.dumps({"ledger": str(folder / "spent.json"), "epsilon": 5.0, "delta": 1e-3})
    cohort = Cohort(Reference("two_class_parties:Parties", provided).to_json(), 0, 1, None, allowance)
    question = replace(question, noising=replace(question.noising, seeded=False))
    answer = questions()[question.kind].load()(cohort, question)
    paid = (folder / "spent.json").read_text()
    return len(answer.parties), tuple(answer.failures.items()), paid


@pytest.mark.parametrize("question", [COUNTS, SUMS], ids=["counts", "sums"])
@pytest.mark.parametrize("name", MAPS)
def test_no_row_decides_whether_a_question_is_answered_or_what_it_costs(tmp_path, name, question):
    asked = replace(question, feature_map=FeatureMap(3, MAPS[name]))
    contents = (*CONTENTS, {"empty": [0]}) if question is COUNTS else CONTENTS  # how many there are is public in sums
    assert len({outcome(tmp_path / str(world), asked, **held) for world, held in enumerate(contents)}) == 1


@pytest.mark.parametrize("name", ["a norm of three axes", "a complex norm", "dates for texts"])
def test_a_map_of_other_types_reaches_no_row(name):
    question = replace(COUNTS, feature_map=FeatureMap(3, MAPS[name]))
    with pytest.raises(InputError, match="feature map cannot be read"):
        decode_question(encode_question(question), type(question))


@pytest.mark.parametrize(
    "other",
    [
        {"hypothesis": Hypothesis.constant(2, 1)},
        {"bins": Bins(np.zeros(0), np.ones(4, dtype=np.int64))},
        {"feature_map": FeatureMap(3, THREE)},
    ],
)
def test_a_query_about_other_features_fails_before_there_is_a_row(other):
    with pytest.raises(InputError, match="one number of features"):
        replace(COUNTS, **other)
