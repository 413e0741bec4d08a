"""What is told of masked sums before there is one."""

from __future__ import annotations

import pytest

from federation.contract.errors import InputError
from scenarios.commands.privacy_tables import masked_sums


def test_every_mode_has_its_neighbours_failures_and_costs() -> None:
    record, text = masked_sums(parties=200, corrupt=0.1, dropout=0.1, numbers=50, quorum=None)
    assert (record["least_counted"], record["contributors"]) == (180, 160)
    active, obeyed, two = record["modes"]
    assert (active["neighbours"], active["threshold"]) == (104, 84)
    assert active["corrupt"] is None  # there are not more corrupt ones
    assert active["cut"] is None
    assert (obeyed["neighbours"], obeyed["threshold"]) == (36, 19)
    assert obeyed["corrupt"] < -40
    assert obeyed["few"] < -30
    assert two["neighbours"] is None
    assert active["party_seconds"] > obeyed["party_seconds"] > two["party_seconds"] > 0
    assert active["server_receives"] == 200 * active["party_sends"]
    assert [row["servers"] for row in record["modes"]] == ["one", "one_semi_honest", "two"]
    assert "servers: two is two servers that do not collude" in text[0]
    assert text[1].startswith("160 honest shares are the whole noise")


def test_a_mode_that_cannot_be_says_why() -> None:
    record, _ = masked_sums(parties=3, corrupt=0.1, dropout=0.1, numbers=5, quorum=None)
    assert record["contributors"] == 1
    assert "no masked sum of 3 parties" in record["modes"][0]["note"]
    assert record["modes"][0]["neighbours"] is None
    assert record["modes"][2]["note"] == ""


def test_shares_that_leave_nobody_are_refused() -> None:
    with pytest.raises(InputError, match="18 of them may collude"):
        masked_sums(parties=20, corrupt=0.9, dropout=0.1, numbers=5, quorum=0.5)
