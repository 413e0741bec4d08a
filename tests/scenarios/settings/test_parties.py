"""What `parties.partition`, `parties.bags` and `data.auxiliary` may say, and how it is shown, swept and kept.

Mixtures of classifiers in scenario files.
"""

import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError
from support.json_schemas import accepted

from scenarios.settings import parties
from scenarios.settings.guarantees import to_yaml
from scenarios.settings.loader import parse as parse_yaml
from scenarios.settings.problems import problems
from scenarios.settings.schema import Scenario, resolve
from scenarios.settings.sweep import expand

PARTITION: TypeAdapter[Any] = TypeAdapter(parties.Partition)
BAGS: TypeAdapter[Any] = TypeAdapter(parties.Bags)
AUXILIARY: TypeAdapter[Any] = TypeAdapter(parties.Auxiliary)
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
    assert parties.division_label(parsed) == text
    assert parties.partition_kind(parsed) == text.partition("=")[0]
    assert not parties.swept_number(parsed)


def test_bags() -> None:
    for entry, text in ((1, 1), (40, 40), ({"by": "ward"}, "by=ward")):
        assert _read(BAGS, entry) == entry
        assert parties.division_label(entry) == text
    for entry in (0, -1, 1.0, True, "1", None, {"by": ""}, {"by": 3}, {"by": "x", "of": "y"}, 10**10):
        with pytest.raises(ValidationError, match=r"1.*COLUMN"):
            _read(BAGS, entry)


def test_a_list_of_numbers_is_swept() -> None:
    parsed = _read(PARTITION, {"dirichlet": [0.1, 1]})
    assert parsed == {"dirichlet": (0.1, 1.0)}
    assert json.loads(PARTITION.dump_json(parsed)) == {"dirichlet": [0.1, 1.0]}
    assert parties.swept_number(parsed)
    assert parties.swept_number(_read(PARTITION, {"majority": [0, 0.1]}))


@pytest.mark.parametrize(
    ("entry", "path", "text"),
    [
        ("idd", (), "must be iid, {dirichlet: ALPHA}, {quantity: SIGMA}, {majority: SHARE}, {proportions: "),
        ({"by": ""}, ("by",), 'must not be empty, got the text ""'),
        ({"by": 3}, ("by",), "must be text (quote it if it looks like a number), got 3"),
        ({"by": "x", "dirichlet": 1}, (), "must be iid, "),
        ({"dirichlet": 1, "quantity": 1}, (), "must be iid, "),
        ({"dirichlet": 0}, ("dirichlet",), "must be a number from 1e-06 to 1e+06, got 0"),
        ({"dirichlet": True}, ("dirichlet",), "must be a number from 1e-06 to 1e+06, got true"),
        ({"quantity": [1, -1]}, ("quantity", 1), "must be a number from 1e-06 to 1e+06, got -1"),
        ({"quantity": []}, ("quantity",), "must not be empty, got []"),
        ({"quantity": [1, 1]}, ("quantity",), "must not list a value twice, got [1, 1]"),
        ({"majority": 0.5}, ("majority",), "must be a number from 0 to below 0.5, the share of each class but one, "),
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


@pytest.mark.parametrize(
    ("known", "good", "bad"),
    [
        (
            PARTITION,
            ["iid", {"by": "x"}, {"dirichlet": 0.5}, {"quantity": [1, 2]}, {"majority": 0}, {"proportions": [[1, 0]]}],
            ["idd", {"by": 1}, {"dirichlet": 0}, {"quantity": [1, 1]}, {"majority": 0.5}, {"proportions": [1, 0]}],
        ),
        (BAGS, [3, {"by": "ward"}], [0, {"of": "ward"}, "3"]),
        (AUXILIARY, [100, 0.5, "official", ALONG], [0, 1.5, "all", {"by": "LB"}, {**ALONG, "to": 1.5}]),
    ],
)
def test_the_json_schema_says_the_same(known, good, bad) -> None:
    valid = accepted(known.json_schema())
    assert [entry for entry in good if not valid(entry)] == []
    assert [entry for entry in bad if valid(entry)] == []


def test_editors_know_the_entries() -> None:
    plain = resolve(DOCUMENT).to_plain() | {"data": {"source": "digits", "auxiliary": ALONG}}
    assert accepted(Scenario.model_json_schema())(plain)


def test_public_rows_are_kept_shown_in_one_cell_and_swept_and_others_are_refused():
    listed = [100, 0.5, "official", ALONG]
    points = expand(resolve({**DOCUMENT, "data": {"source": "digits", "auxiliary": listed}}))
    assert [point.swept["data.auxiliary"] for point in points] == [100, 0.5, "official", "by=LB_0.1_0.9"]
    for point, entry in zip(points, listed, strict=True):
        assert _read(AUXILIARY, entry) == point.scenario.data.auxiliary == entry
        assert parties.division_label(entry) == point.swept["data.auxiliary"]
        assert resolve(point.scenario.to_plain()) == point.scenario
        assert parse_yaml(to_yaml(point.scenario), "s.yaml")[0]["data"]["auxiliary"] == entry
    for entry in (0, 1.0, -3, True, "all", None, [1], {**ALONG, "to": 1.5}, {"by": "LB"}, {**ALONG, "to": 0.1}):
        with pytest.raises(ValidationError, match=r"COLUMN.*PROBABILITY.*PROB"):
            _read(AUXILIARY, entry)


LOGISTIC = {"name": "logistic", "parameters": {"regularisation": 1e-4}}
TREE = {"name": "DecisionTreeClassifier", "parameters": {"max_depth": 3}}


def test_a_mixture_resolves_to_members_and_weights_and_the_first_of_greatest_weight_leads():
    plain = {"mixture": ["logistic", {"DecisionTreeClassifier": {"max_depth": 3}, "weight": 2}]}
    parsed = parties.parse(plain)
    assert parsed == {"name": "mixture", "parameters": {"members": [LOGISTIC, TREE], "weights": [1.0, 2.0]}}
    assert parties.to_plain(parsed) == {
        "mixture": [{"logistic": {"regularisation": 1e-4}}, {"DecisionTreeClassifier": {"max_depth": 3}, "weight": 2.0}]
    }
    assert parties.label(parsed) == "mixture(1 logistic(regularisation=0.0001), 2 DecisionTreeClassifier(max_depth=3))"
    assert plain["mixture"][1]["weight"] == 2  # what was given stays as it is
    assert parties.leading(LOGISTIC) is LOGISTIC
    assert parties.leading(parties.parse({"mixture": ["logistic", "GaussianNB"]})) == LOGISTIC
    tree = {"DecisionTreeClassifier": {"max_depth": 3}, "weight": 2}
    assert parties.leading(parties.parse({"mixture": ["logistic", tree, {"GaussianNB": {}, "weight": 2}]})) == TREE


@cache
def accepted_classifiers():
    return accepted(TypeAdapter(parties.Classifier).json_schema())


MEMBERS = st.sampled_from(
    ["logistic", {"logistic": {"regularisation": 0.5}}, "GaussianNB", {"DecisionTreeClassifier": {"max_depth": 3}}]
)


@settings(derandomize=True)
@given(st.lists(st.tuples(MEMBERS, st.none() | st.integers(1, 9) | st.floats(1e-3, 1e3)), min_size=2, max_size=5))
def test_what_is_written_is_read_back(members):
    entries = [m if w is None else {**(m if isinstance(m, dict) else {m: {}}), "weight": w} for m, w in members]
    parsed = parties.parse({"mixture": entries})
    assert parties.parse(parties.to_plain(parsed)) == parsed
    assert parsed["parameters"]["weights"] == [1.0 if w is None else float(w) for _, w in members]
    assert accepted_classifiers()(parties.to_plain(parsed))


AT = ("mixture", 1, "logistic", "regularisation")
POSITIVE = "must be a finite number greater than 0, got"


@pytest.mark.parametrize(
    ("entry", "path", "text"),
    [
        ("mixture", (), "must be a mixture of classifiers such as {mixture: [logistic, GaussianNB]}"),
        ({"mixture": ["logistic"], "weight": 1}, (), "must be a name or a section"),
        ({"mixture": ["logistic"]}, ("mixture",), "must be a list of two or more classifiers, got [logistic]"),
        ({"mixture": ["logistic", 3]}, ("mixture", 1), "must be a name or a section"),
        ({"mixture": ["logistic", "GausianNB"]}, ("mixture", 1), "classifier 'GausianNB' is n"),
        ({"mixture": ["logistic", {"mixture": ["logistic"] * 2}]}, ("mixture", 1), "a mixture cannot be a member of a"),
        ({"mixture": ["GaussianNB", {"logistic": {"regularisation": [1, 2]}}]}, AT, "inside a mixture the regularisa"),
        ({"mixture": ["logistic", {"logistic": {"regularisation": 0}}]}, AT, f"{POSITIVE} 0"),
        ({"mixture": ["logistic", {"GaussianNB": {}, "weight": 0}]}, ("mixture", 1, "weight"), f"{POSITIVE} 0"),
        ({"mixture": ["logistic", {"GaussianNB": {}, "weight": True}]}, ("mixture", 1, "weight"), f"{POSITIVE} true"),
    ],
)
def test_mistakes_in_a_mixture(entry, path, text):
    with pytest.raises((ValidationError, PydanticCustomError)) as caught:
        parties.parse(entry)
    error = caught.value
    found = problems(error) if isinstance(error, ValidationError) else [((), str(error))]
    assert found[0][0] == path
    assert found[0][1].startswith(text)
    assert len(found) == 1


def test_all_mistakes_at_once():
    with pytest.raises(ValidationError) as caught:
        parties.parse({"mixture": [{"logistic": {"c": 1}}, {"GaussianNB": {}, "weight": -1}, 3]})
    assert [path for path, _ in problems(caught.value)] == [
        ("mixture", 0, "logistic", "c"), ("mixture", 1, "weight"), ("mixture", 2),
    ]  # fmt: skip
