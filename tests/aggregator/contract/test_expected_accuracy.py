"""The share of rows that is told wrongly, by the size of the noise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aggregator.contract.expectations import expected_accuracy, expected_of_means
from aggregator.trial.plan import PublicNumbers


def test_an_expectation_names_what_it_assumes_and_the_most_frequent_class():
    found = expected_accuracy(
        0.42, PublicNumbers(1e-6, classes=4, attainable=0.85, majority=0.6), "guess", "parties agree"
    )
    assert found.error == pytest.approx(1 - (0.25 + 0.6 / 2))
    assert found.constant == pytest.approx(0.4)
    assert found.assuming == "0.85 can be had without noise and parties agree"
    assert expected_accuracy(1.0, PublicNumbers(1e-6), "measured").constant is None


def test_an_expectation_of_means_follows_the_rows_and_says_what_nobody_knows():
    known = PublicNumbers(1e-6, features=10, attainable=0.85)
    loud = {"responses": False, "shrunk": True}
    usual = expected_of_means(0.3, known, "measured", **loud)
    even = expected_of_means(0.3, replace(known, spectrum=(0.1,) * 10), "measured", **loud)
    # Where rows go in all directions alike, it does not matter in which ones classes differ.
    assert ", else 0." in usual.assuming
    assert even.assuming == "0.85 can be had without noise and classes differ as on usual tables"
    assert usual.constant is None
    with_share = expected_of_means(0.3, replace(known, majority=0.8), "guess", "so", **loud)
    assert with_share.constant == pytest.approx(0.2)
    assert with_share.error < usual.error
    assert with_share.assuming.startswith("0.85 can be had without noise, so and classes")
