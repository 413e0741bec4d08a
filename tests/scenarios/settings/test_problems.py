"""Errors of validation in plain words, as a protocol's own options meet them."""

from typing import Any, Literal

import pytest
from pydantic import TypeAdapter, ValidationError

from federation.contract.errors import InputError
from scenarios.settings.problems import problems
from scenarios.settings.schema import resolve


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("four_deviation", "got the text \"four_deviation\"; did you mean 'four_deviations'?"),
        (2.5, "got 2.5"),
        (True, "got true"),
    ],
)
def test_what_fits_no_alternative_of_an_option_is_told_once(value, text):
    given = {"data": {"source": "breast_cancer"}, "parties": {"count": 2}, "privacy": {"epsilon": 1}}
    with pytest.raises(InputError) as refused:
        resolve({**given, "protocols": [{"kind": "error_marginals", "bins": value}]})
    [line] = str(refused.value).splitlines()
    assert line.endswith(f"protocols.0.bins: must be a whole number or four_deviations, {text}")


@pytest.mark.parametrize(
    ("hint", "value", "text"),
    [
        (float | Literal["a", "b"], "x", 'must be a number or one of a, b, got the text "x"'),
        (int | Literal["apples"], "aples",
         "must be a whole number or apples, got the text \"aples\"; did you mean 'apples'?"),
        (int | bool, 2.5, "must be a whole number or true or false, got 2.5"),
    ],
)  # fmt: skip
def test_sentences_become_one(hint: Any, value: Any, text: str) -> None:
    with pytest.raises(ValidationError) as refused:
        TypeAdapter(hint).validate_python(value, strict=True)
    [(_, told)] = problems(refused.value, key_path=lambda location: ())
    assert told == text
