"""Errors of validation in plain words, as a protocol's own options meet them."""

import pytest

from federation.contract.errors import InputError
from scenarios.settings.problems import any_of
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
    with pytest.raises(InputError) as refused:
        resolve(
            {
                "data": {"source": "breast_cancer"},
                "parties": {"count": 2},
                "protocols": [{"kind": "error_marginals", "bins": value}],
                "privacy": {"epsilon": 1},
            }
        )
    [line] = str(refused.value).splitlines()
    assert line.endswith(f"protocols.0.bins: must be a whole number or four_deviations, {text}")


def test_sentences_become_one():
    assert any_of(["must be a number, got x", "must be one of a, b, got x"]) == "must be a number or one of a, b, got x"
