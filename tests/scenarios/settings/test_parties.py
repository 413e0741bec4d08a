"""What `parties.partition`, `parties.bags` and `data.auxiliary` may say, and how it is shown, swept and kept.

Mixtures of classifiers in scenario files.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from scenarios.settings.guarantees import to_yaml
from scenarios.settings.loader import parse as parse_yaml
from scenarios.settings.parties import (
    Auxiliary,
    Bags,
    Classifier,
    Partition,
    leading,
    parse,
    partition_kind,
    swept_number,
    to_plain,
)
from scenarios.settings.parties import division_label as label
from scenarios.settings.parties import label as parties_label
from scenarios.settings.problems import problems
from scenarios.settings.schema import Scenario, resolve
from scenarios.settings.sweep import expand

PARTITION: TypeAdapter[Any] = TypeAdapter(Partition)
BAGS: TypeAdapter[Any] = TypeAdapter(Bags)
AUXILIARY: TypeAdapter[Any] = TypeAdapter(Auxiliary)
ALONG = {"by": "LB", "from": 0.1, "to": 0.9}
DOCUMENT: dict[str, Any] = {"data": {"source": "digits"}, "parties": {"count": 5}, "privacy": {"epsilon": 1}}


def _read(known: TypeAdapter[Any], entry: Any) -> Any:
    return known.validate_json(json.dumps(entry), strict=True)


@pytest.mark.parametrize(
    ("entry", "parsed", "text"),
    [
        ("iid", "iid", "iid"),
        ({"by": "site"}, {"by": "site"}, "by=site"),
        ({"dirichlet": 1}, {"dirichlet": 1.0}, "dirichlet=1.0"),
        ({"quantity": 1.3}, {"quantity": 1.3}, "quantity=1.3"),
        ({"majority": 0}, {"majority": 0.0}, "majority=0.0"),
        ({"proportions": [[1, 0], [0.2, 0.8]]}, {"proportions": [[1.0, 0.0], [0.2, 0.8]]}, "proportions=1_0-0.2_0.8"),
    ],
)
def test_entries(entry: Any, parsed: Any, text: str) -> None:
    assert _read(PARTITION, entry) == parsed
    assert _read(PARTITION, PARTITION.dump_python(parsed, mode="json")) == parsed
    assert label(parsed) == text
    assert partition_kind(parsed) == text.partition("=")[0]
    assert not swept_number(parsed)


@pytest.mark.parametrize(("entry", "text"), [(1, 1), (40, 40), ({"by": "ward"}, "by=ward")])
def test_bags(entry: Any, text: Any) -> None:
    assert _read(BAGS, entry) == entry
    assert label(entry) == text


@pytest.mark.parametrize("entry", [0, -1, 1.0, True, "1", None, {"by": ""}, {"by": 3}, {"by": "x", "of": "y"}, 10**10])
def test_what_are_no_bags(entry: Any) -> None:
    with pytest.raises(ValidationError, match=r"1.*COLUMN"):
        _read(BAGS, entry)


def test_a_list_of_numbers_is_swept() -> None:
    parsed = _read(PARTITION, {"dirichlet": [0.1, 1]})
    assert parsed == {"dirichlet": (0.1, 1.0)}
    assert swept_number(parsed)
    assert json.loads(PARTITION.dump_json(parsed)) == {"dirichlet": [0.1, 1.0]}
    assert swept_number(_read(PARTITION, {"majority": [0, 0.1]}))


@pytest.mark.parametrize(
    ("entry", "path", "text"),
    [
        (
            "idd",
            (),
            "must be iid, {dirichlet: ALPHA}, {quantity: SIGMA}, {majority: SHARE}, {proportions: ",
        ),
        ({"by": ""}, ("by",), 'must not be empty, got the text ""'),
        ({"by": 3}, ("by",), "must be text (quote it if it looks like a number), got 3"),
        ({"by": "x", "dirichlet": 1}, (), "must be iid, "),
        ({"dirichlet": 1, "quantity": 1}, (), "must be iid, "),
        ({"dirichlets": 1}, (), "must be iid, "),
        ({"dirichlet": 0}, ("dirichlet",), "must be a number from 1e-06 to 1e+06, got 0"),
        ({"dirichlet": True}, ("dirichlet",), "must be a number from 1e-06 to 1e+06, got true"),
        ({"quantity": "1"}, ("quantity",), 'must be a number from 1e-06 to 1e+06, got the text "1"'),
        ({"quantity": [1, -1]}, ("quantity", 1), "must be a number from 1e-06 to 1e+06, got -1"),
        ({"quantity": []}, ("quantity",), "must not be empty, got []"),
        ({"quantity": [1, 1]}, ("quantity",), "must not list a value twice, got [1, 1]"),
        (
            {"majority": 0.5},
            ("majority",),
            "must be a number from 0 to below 0.5, the share of each class but one, got",
        ),
        ({"majority": [0.1, -1]}, ("majority", 1), "must be a number from 0 to below 0.5, "),
        ({"proportions": 0.5}, ("proportions",), "must be a list of bags, each a list of the shares of all classes"),
        ({"proportions": []}, ("proportions",), "must be a list of bags, "),
        ({"proportions": [[1, 0], [1, 1]]}, ("proportions", 1), "must be the shares of all classes, numbers from 0"),
        ({"proportions": [[1, 0], [1, 0, 0]]}, ("proportions",), "must list equally many shares for every bag"),
    ],
)
def test_mistakes(entry: Any, path: Any, text: str) -> None:
    with pytest.raises(ValidationError) as caught:
        _read(PARTITION, entry)
    found = problems(caught.value)
    assert [at for at, _ in found] == [path]
    assert found[0][1].startswith(text)


def test_the_json_schema_says_the_same() -> None:
    validate = pytest.importorskip("jsonschema").validate
    refused = pytest.importorskip("jsonschema").ValidationError
    schema = PARTITION.json_schema()
    good = ("iid", {"by": "x"}, {"dirichlet": 0.5}, {"quantity": [1, 2]}, {"majority": 0}, {"proportions": [[1, 0]]})
    for entry in good:
        validate(entry, schema)
    bad = (
        "idd", {"by": 1}, {"dirichlet": 0}, {"quantity": [1, 1]}, {"dirichlet": 1, "quantity": 1}, {"majority": 0.5},
        {"proportions": [1, 0]},
    )  # fmt: skip
    for entry in bad:
        with pytest.raises(refused):
            validate(entry, schema)
    for entry in (3, {"by": "ward"}):
        validate(entry, BAGS.json_schema())
    for entry in (0, {"of": "ward"}, "3"):
        with pytest.raises(refused):
            validate(entry, BAGS.json_schema())


@pytest.mark.parametrize(
    ("entry", "shown"), [(100, 100), (0.5, 0.5), ("official", "official"), (ALONG, "by=LB_0.1_0.9")]
)
def test_public_rows_are_kept_and_shown_in_one_cell(entry: Any, shown: Any) -> None:
    assert _read(AUXILIARY, entry) == entry
    assert label(entry) == shown
    scenario = resolve({**DOCUMENT, "data": {"source": "digits", "auxiliary": entry}})
    assert scenario.data.auxiliary == entry
    assert resolve(scenario.to_plain()) == scenario
    assert parse_yaml(to_yaml(scenario), "s.yaml")[0]["data"]["auxiliary"] == entry


def test_public_rows_are_swept() -> None:
    listed = [0.5, "official", ALONG]
    points = expand(resolve({**DOCUMENT, "data": {"source": "digits", "auxiliary": listed}}))
    assert [point.swept["data.auxiliary"] for point in points] == [0.5, "official", "by=LB_0.1_0.9"]
    assert [point.scenario.data.auxiliary for point in points] == listed


@pytest.mark.parametrize(
    "entry", [0, 1.0, -3, True, "all", None, [1], {**ALONG, "to": 1.5}, {"by": "LB"}, {**ALONG, "to": 0.1}]
)
def test_what_are_no_public_rows(entry: Any) -> None:
    with pytest.raises(ValidationError, match=r"COLUMN.*PROBABILITY.*PROB"):
        _read(AUXILIARY, entry)


def test_editors_know_the_entries() -> None:
    pytest.importorskip("jsonschema")
    from jsonschema import ValidationError as Refused
    from jsonschema import validate

    validate(
        {**resolve(DOCUMENT).to_plain(), "data": {"source": "digits", "auxiliary": ALONG}}, Scenario.model_json_schema()
    )
    for entry in (100, 0.5, "official", ALONG):
        validate(entry, AUXILIARY.json_schema())
    for entry in (0, 1.5, "all", {"by": "LB"}, {**ALONG, "to": 1.5}):
        with pytest.raises(Refused):
            validate(entry, AUXILIARY.json_schema())


LOGISTIC = {"name": "logistic", "parameters": {"regularisation": 1e-4}}
TREE = {"name": "DecisionTreeClassifier", "parameters": {"max_depth": 3}}


def test_a_mixture_resolves_to_members_and_weights():
    plain = {"mixture": ["logistic", {"DecisionTreeClassifier": {"max_depth": 3}, "weight": 2}]}
    parsed = parse(plain)
    assert parsed == {"name": "mixture", "parameters": {"members": [LOGISTIC, TREE], "weights": [1.0, 2.0]}}
    assert to_plain(parsed) == {
        "mixture": [{"logistic": {"regularisation": 1e-4}}, {"DecisionTreeClassifier": {"max_depth": 3}, "weight": 2.0}]
    }
    assert parties_label(parsed) == "mixture(1 logistic(regularisation=0.0001), 2 DecisionTreeClassifier(max_depth=3))"
    assert plain["mixture"][1]["weight"] == 2  # what was given stays as it is


MEMBERS = st.sampled_from(
    ["logistic", {"logistic": {"regularisation": 0.5}}, "GaussianNB", {"DecisionTreeClassifier": {"max_depth": 3}}]
)


@settings(derandomize=True)
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
