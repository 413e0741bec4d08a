"""The share of rows that is told wrongly, by the size of the noise."""

from __future__ import annotations

import pytest

from aggregator.contract.expected_accuracy import expected_accuracy
from aggregator.world.public_numbers import PublicNumbers


def test_an_expectation_names_what_it_assumes_and_the_most_frequent_class():
    found = expected_accuracy(
        0.42, PublicNumbers(1e-6, classes=4, attainable=0.85, majority=0.6), "guess", "parties agree"
    )
    assert found.error == pytest.approx(1 - (0.25 + 0.6 / 2))
    assert found.constant == pytest.approx(0.4)
    assert found.assuming == "0.85 can be had without noise and parties agree"
    assert expected_accuracy(1.0, PublicNumbers(1e-6), "measured").constant is None
