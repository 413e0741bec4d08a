from __future__ import annotations

import json

import pytest
from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from scenarios.settings.partition_entry import (
    Bags,
    Partition,
    bags_label,
    label,
    parse,
    parse_bags,
    partition_kind,
    swept_skew,
    to_plain,
)
from scenarios.settings.problems import problems


@pytest.mark.parametrize(
    ("entry", "parsed", "text"),
    [
        ("iid", "iid", "iid"),
        ({"by": "site"}, {"by": "site"}, "by=site"),
        ({"dirichlet": 1}, {"dirichlet": 1.0}, "dirichlet=1.0"),
        ({"quantity": 1.3}, {"quantity": 1.3}, "quantity=1.3"),
        ({"majority": 0}, {"majority": 0.0}, "majority=0.0"),
        ({"proportions": [[1, 0], [0.2, 0.8]]}, {"proportions": [[1, 0], [0.2, 0.8]]}, "proportions=1_0-0.2_0.8"),
    ],
)
def test_entries(entry, parsed, text):
    assert parse(entry) == parsed
    assert parse(to_plain(parsed)) == parsed
    assert label(parsed) == text
    assert partition_kind(parsed) == text.partition("=")[0]
    assert swept_skew(parsed) == ()


@pytest.mark.parametrize(("entry", "text"), [(1, 1), (40, 40), ({"by": "ward"}, "by=ward")])
def test_bags(entry, text):
    assert parse_bags(entry) == entry
    assert bags_label(entry) == text


@pytest.mark.parametrize("entry", [0, -1, 1.0, True, "1", None, {"by": ""}, {"by": 3}, {"by": "x", "of": "y"}, 10**10])
def test_what_are_no_bags(entry):
    with pytest.raises(PydanticCustomError, match=r"must be a whole number from 1, or \{by: COLUMN\}"):
        parse_bags(entry)


def test_a_list_of_numbers_is_swept():
    parsed = parse({"dirichlet": [0.1, 1]})
    assert parsed == {"dirichlet": (0.1, 1.0)}
    assert swept_skew(parsed) == (0.1, 1.0)
    assert parse(to_plain(parsed)) == parsed
    assert json.loads(TypeAdapter(Partition).dump_json(parsed)) == {"dirichlet": [0.1, 1.0]}
    assert swept_skew(parse({"majority": [0, 0.1]})) == (0.0, 0.1)


@pytest.mark.parametrize(
    ("entry", "path", "text"),
    [
        (
            "idd",
            (),
            "must be iid, {dirichlet: ALPHA}, {quantity: SIGMA}, {majority: SHARE}, {proportions: ",
        ),
        ({"by": ""}, (), "must be iid, "),
        ({"dirichlet": 1, "quantity": 1}, (), "must be iid, "),
        ({"dirichlets": 1}, (), "must be iid, "),
        ({"dirichlet": 0}, ("dirichlet",), "must be a number from 1e-06 to 1e+06, got 0"),
        ({"dirichlet": True}, ("dirichlet",), "must be a number from 1e-06 to 1e+06, got true"),
        ({"quantity": "1"}, ("quantity",), 'must be a number from 1e-06 to 1e+06, got the text "1"'),
        ({"quantity": [1, -1]}, ("quantity", 1), "must be a number from 1e-06 to 1e+06, got -1"),
        ({"quantity": []}, ("quantity",), "must be a number or a list of distinct numbers, got []"),
        ({"quantity": [1, 1]}, ("quantity",), "must be a number or a list of distinct numbers, got [1, 1]"),
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
def test_mistakes(entry, path, text):
    with pytest.raises((ValidationError, PydanticCustomError)) as caught:
        parse(entry)
    error = caught.value
    found = problems(error) if isinstance(error, ValidationError) else [((), str(error))]
    assert [at for at, _ in found] == [path]
    assert found[0][1].startswith(text)


def test_the_json_schema_says_the_same():
    validate = pytest.importorskip("jsonschema").validate
    refused = pytest.importorskip("jsonschema").ValidationError
    schema = TypeAdapter(Partition).json_schema()
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
        validate(entry, TypeAdapter(Bags).json_schema())
    for entry in (0, {"of": "ward"}, "3"):
        with pytest.raises(refused):
            validate(entry, TypeAdapter(Bags).json_schema())
