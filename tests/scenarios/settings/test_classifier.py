"""Mixtures of classifiers in scenario files."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from scenarios.settings.parties import Classifier, label, leading, parse, to_plain
from scenarios.settings.problems import problems

LOGISTIC = {"name": "logistic", "parameters": {"regularisation": 1e-4}}
TREE = {"name": "DecisionTreeClassifier", "parameters": {"max_depth": 3}}


def test_a_mixture_resolves_to_members_and_weights():
    plain = {"mixture": ["logistic", {"DecisionTreeClassifier": {"max_depth": 3}, "weight": 2}]}
    parsed = parse(plain)
    assert parsed == {"name": "mixture", "parameters": {"members": [LOGISTIC, TREE], "weights": [1.0, 2.0]}}
    assert to_plain(parsed) == {
        "mixture": [{"logistic": {"regularisation": 1e-4}}, {"DecisionTreeClassifier": {"max_depth": 3}, "weight": 2.0}]
    }
    assert label(parsed) == "mixture(1 logistic(regularisation=0.0001), 2 DecisionTreeClassifier(max_depth=3))"
    assert plain["mixture"][1]["weight"] == 2  # what was given stays as it is


MEMBERS = st.sampled_from(
    ["logistic", {"logistic": {"regularisation": 0.5}}, "GaussianNB", {"DecisionTreeClassifier": {"max_depth": 3}}]
)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(MEMBERS, st.none() | st.integers(1, 9) | st.floats(1e-3, 1e3)), min_size=2, max_size=5),
)
def test_what_is_written_is_read_back(members):
    entries = [
        m if w is None else {**(m if isinstance(m, dict) else {m: {}}), "weight": w} for m, w in members
    ]  # fmt: skip
    parsed = parse({"mixture": entries})
    assert parse(to_plain(parsed)) == parsed
    assert parsed["parameters"]["weights"] == [1.0 if w is None else float(w) for _, w in members]
    pytest.importorskip("jsonschema").validate(to_plain(parsed), TypeAdapter(Classifier).json_schema())


def test_the_leading_member_has_the_greatest_weight_and_is_the_first_of_several():
    assert leading(LOGISTIC) is LOGISTIC
    assert leading(parse({"mixture": ["logistic", "GaussianNB"]})) == LOGISTIC
    tree = {"DecisionTreeClassifier": {"max_depth": 3}, "weight": 2}
    assert leading(parse({"mixture": ["logistic", tree, {"GaussianNB": {}, "weight": 2}]})) == TREE


@pytest.mark.parametrize(
    ("entry", "path", "text"),
    [
        ("mixture", (), "must be a mixture of classifiers such as {mixture: [logistic, GaussianNB]}"),
        ({"mixture": ["logistic"], "weight": 1}, (), "must be a name or a section"),
        ({"mixture": ["logistic"]}, ("mixture",), "must be a list of two or more classifiers, got [logistic]"),
        ({"mixture": "logistic"}, ("mixture",), "must be a list of two or more classifiers"),
        ({"mixture": ["logistic", 3]}, ("mixture", 1), "must be a name or a section"),
        ({"mixture": ["logistic", "GausianNB"]}, ("mixture", 1), "classifier 'GausianNB' is n"),
        (
            {"mixture": ["logistic", {"mixture": ["logistic", "GaussianNB"]}]},
            ("mixture", 1),
            "a mixture cannot be a member of a mixture",
        ),
        (
            {"mixture": [{"logistic": {"regularisation": [1, 2]}}, "GaussianNB"]},
            ("mixture", 0, "logistic", "regularisation"),
            "inside a mixture the regularisation must be one number",
        ),
        (
            {"mixture": ["logistic", {"logistic": {"regularisation": 0}}]},
            ("mixture", 1, "logistic", "regularisation"),
            "must be a finite number greater than 0, got 0",
        ),
        (
            {"mixture": ["logistic", {"GaussianNB": {}, "weight": 0}]},
            ("mixture", 1, "weight"),
            "must be a finite number greater than 0, got 0",
        ),
        (
            {"mixture": ["logistic", {"GaussianNB": {}, "weight": True}]},
            ("mixture", 1, "weight"),
            "must be a finite number greater than 0, got true",
        ),
    ],
)
def test_mistakes_in_a_mixture(entry, path, text):
    with pytest.raises((ValidationError, PydanticCustomError)) as caught:
        parse(entry)
    error = caught.value
    found = problems(error) if isinstance(error, ValidationError) else [((), str(error))]
    assert found[0][0] == path
    assert found[0][1].startswith(text)
    assert len(found) == 1


def test_all_mistakes_at_once():
    with pytest.raises(ValidationError) as caught:
        parse({"mixture": [{"logistic": {"c": 1}}, {"GaussianNB": {}, "weight": -1}, 3]})
    assert [path for path, _ in problems(caught.value)] == [
        ("mixture", 0, "logistic", "c"), ("mixture", 1, "weight"), ("mixture", 2),
    ]  # fmt: skip
