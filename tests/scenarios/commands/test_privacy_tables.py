"""What is told of masked sums before there is one.

Noises of the mean operator side by side: which of them `auto` takes, by sizes and weights.
Noise on shares of votes, with a trusted aggregator and without one.
"""

import pytest

from federation.contract.errors import InputError
from scenarios.commands.privacy_tables import RESPONSE, masked_sums, moment_noises, vote_noises


def test_every_mode_has_its_neighbours_failures_and_costs_or_says_why_it_cannot_be():
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
    record, _ = masked_sums(parties=3, corrupt=0.1, dropout=0.1, numbers=5, quorum=None)
    assert record["contributors"] == 1
    assert "no masked sum of 3 parties" in record["modes"][0]["note"]
    assert record["modes"][0]["neighbours"] is None
    assert record["modes"][2]["note"] == ""
    with pytest.raises(InputError, match="18"):
        masked_sums(parties=20, corrupt=0.9, dropout=0.1, numbers=5, quorum=0.5)


KNOWN = {"rows": 6000, "dimension": 31, "epsilon": 1.0, "delta": 1e-6, "l1_bound": None}


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
    record, _ = moment_noises(**KNOWN, parties=parties, shares=shares, weight=weight)
    assert [row["noise"] for row in record["mechanisms"] if row["auto"]] == [expected]


def test_what_is_said_names_the_threshold_and_who_must_be_honest() -> None:
    record, text = moment_noises(**KNOWN, parties=10, shares=0, weight=2.0)
    assert record["response_below"] == 301
    assert "below 301 rows at a party, its errors counting 2 times" in " ".join(text)
    _, text = moment_noises(**KNOWN, parties=10, shares=7, weight=1.0)
    assert "at least 7 parties add their shares and tell nobody: a quorum of 10 parties" in " ".join(text)


VOTES = {"parties": 1000, "classes": 6, "regularisation": 1e-4, "epsilon": 1.0, "delta": 1e-6, "dimension": 5}


def test_shares_of_noise_are_louder_by_those_that_are_not_counted_on_and_told_of_contributors_alone():
    record, text = vote_noises(majority=False, **VOTES, contributors=800)
    trusted, secure = record["rows"][-2:]
    shares = [f"shares of norm 1, trust: {trust}" for trust in ("aggregator", "secure")]
    assert [trusted["what"], secure["what"]] == shares
    assert secure["dimension"] == trusted["dimension"] == 25
    assert secure["sensitivity"] == pytest.approx(trusted["sensitivity"])
    for noise in ("pure_noise_norm", "gaussian_noise_norm"):
        assert secure[noise] == pytest.approx(trusted[noise] * (1000 / 800) ** 0.5, rel=1e-3)
    assert text[-1] == "Of the shares of noise 800 are whole, and all 1000 parties add theirs."
    with pytest.raises(InputError, match="epsilon"):
        vote_noises(majority=False, **{**VOTES, "epsilon": 0.0}, contributors=800)
    record, text = vote_noises(majority=False, **VOTES)
    assert [row["what"] for row in record["rows"]][-1] == "soft vote statistic"
    assert len(text) == 1
    majority, _ = vote_noises(majority=True, **VOTES)
    assert majority["rows"][0]["sensitivity"] == pytest.approx(1000 * record["rows"][0]["sensitivity"])
