"""What is expected of a release, in a word and beside the constant answer."""

from __future__ import annotations

import math

import pytest

from aggregator.contract.expectations import Expected
from federation.contract.errors import InputError


@pytest.mark.parametrize(
    ("noise", "word"), [(None, ""), (0.0, "little"), (0.06, "visible"), (0.3, "large"), (1.0, "very large")]
)
def test_the_noise_has_a_word(noise, word):
    assert Expected(0.1, noise, "guess", "it holds").loss == word


def test_it_is_hopeless_where_the_same_answer_for_all_is_as_good():
    assert Expected(0.2, 0.1, "exact", "it holds", constant=0.2).hopeless
    assert not Expected(0.19, 0.1, "exact", "it holds", constant=0.2).hopeless
    assert not Expected(5.0, 0.1, "exact", "it holds").hopeless


@pytest.mark.parametrize("numbers", [(-1, None, None), (0.1, math.nan, None), (0.1, 0.1, -0.5)])
def test_numbers_that_are_none_are_refused(numbers):
    error, noise, constant = numbers
    with pytest.raises(InputError, match="must be a finite number of at least 0"):
        Expected(error, noise, "guess", "it holds", constant)
