from __future__ import annotations

import json

import pytest
from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from scenarios.partition_entry import Partition, label, parse, partition_kind, swept_skew, to_plain
from scenarios.problems import problems


@pytest.mark.parametrize(
    ("entry", "parsed", "text"),
    [
        ("iid", "iid", "iid"),
        ({"by": "site"}, {"by": "site"}, "by=site"),
        ({"dirichlet": 1}, {"dirichlet": 1.0}, "dirichlet=1.0"),
        ({"quantity": 1.3}, {"quantity": 1.3}, "quantity=1.3"),
    ],
)
def test_entries(entry, parsed, text):
    assert parse(entry) == parsed
    assert parse(to_plain(parsed)) == parsed
    assert label(parsed) == text
    assert partition_kind(parsed) == text.partition("=")[0]
    assert swept_skew(parsed) == ()


def test_a_list_of_numbers_is_swept():
    parsed = parse({"dirichlet": [0.1, 1]})
    assert parsed == {"dirichlet": (0.1, 1.0)}
    assert swept_skew(parsed) == (0.1, 1.0)
    assert parse(to_plain(parsed)) == parsed
    assert json.loads(TypeAdapter(Partition).dump_json(parsed)) == {"dirichlet": [0.1, 1.0]}


@pytest.mark.parametrize(
    ("entry", "path", "text"),
    [
        ("idd", (), "must be iid, {dirichlet: ALPHA}, {quantity: SIGMA} or {by: COLUMN}"),
        ({"by": ""}, (), "must be iid, "),
        ({"dirichlet": 1, "quantity": 1}, (), "must be iid, "),
        ({"dirichlets": 1}, (), "must be iid, "),
        ({"dirichlet": 0}, ("dirichlet",), "must be a number from 1e-06 to 1e+06, got 0"),
        ({"dirichlet": True}, ("dirichlet",), "must be a number from 1e-06 to 1e+06, got true"),
        ({"quantity": "1"}, ("quantity",), 'must be a number from 1e-06 to 1e+06, got the text "1"'),
        ({"quantity": [1, -1]}, ("quantity", 1), "must be a number from 1e-06 to 1e+06, got -1"),
        ({"quantity": []}, ("quantity",), "must be a number or a list of distinct numbers, got []"),
        ({"quantity": [1, 1]}, ("quantity",), "must be a number or a list of distinct numbers, got [1, 1]"),
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
    for entry in ("iid", {"by": "x"}, {"dirichlet": 0.5}, {"quantity": [1, 2]}):
        validate(entry, schema)
    for entry in ("idd", {"by": 1}, {"dirichlet": 0}, {"quantity": [1, 1]}, {"dirichlet": 1, "quantity": 1}):
        with pytest.raises(refused):
            validate(entry, schema)
