"""Noises of the mean operator side by side: which of them `auto` takes, by sizes and weights."""

from __future__ import annotations

import pytest

from scenarios.commands.privacy_tables import RESPONSE, moment_noises

KNOWN = {"rows": 6000, "dimension": 31, "epsilon": 1.0, "delta": 1e-6, "l1_bound": None}


def taken(parties: int, shares: int = 0, weight: float = 1.0) -> list[str]:
    record, _ = moment_noises(**KNOWN, parties=parties, shares=shares, weight=weight)
    return [row["noise"] for row in record["mechanisms"] if row["auto"]]


@pytest.mark.parametrize(
    ("parties", "shares", "weight", "expected"),
    [
        (1, 0, 1.0, "gaussian"),
        (9, 0, 1.0, "gaussian"),  # 666 rows each
        (10, 0, 1.0, RESPONSE),  # 600, below 602
        (10, 0, 1.2, "gaussian"),
        (1000, 800, 1.0, "gaussian"),
        (1000, 80, 1.0, RESPONSE),
        (1000, 80, 2.0, "gaussian"),
    ],
)
def test_one_noise_is_taken_by_its_errors(parties: int, shares: int, weight: float, expected: str) -> None:
    assert taken(parties, shares, weight) == [expected]


def test_what_is_said_names_the_threshold_and_who_must_be_honest() -> None:
    record, text = moment_noises(**KNOWN, parties=10, shares=0, weight=2.0)
    assert record["response_below"] == 301
    assert "below 301 rows at a party, its errors counting 2 times" in " ".join(text)
    _, text = moment_noises(**KNOWN, parties=10, shares=7, weight=1.0)
    assert "at least 7 parties add their shares and tell nobody: a quorum of 10 parties" in " ".join(text)
