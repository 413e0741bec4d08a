"""Noise on shares of votes, with a trusted aggregator and without one."""

from __future__ import annotations

import pytest

from federation.contract.errors import InputError
from scenarios.commands.privacy_tables import vote_noises

KNOWN = {
    "majority": False,
    "parties": 1000,
    "classes": 6,
    "regularisation": 1e-4,
    "epsilon": 1.0,
    "delta": 1e-6,
    "dimension": 5,
}


def test_shares_of_noise_are_louder_by_those_that_are_not_counted_on():
    record, text = vote_noises(**KNOWN, contributors=800)
    trusted, secure = record["rows"][-2:]
    assert (trusted["what"], secure["what"]) == (
        "shares of norm 1, trust: aggregator",
        "shares of norm 1, trust: secure",
    )
    assert secure["dimension"] == trusted["dimension"] == 25
    assert secure["sensitivity"] == pytest.approx(trusted["sensitivity"])
    for noise in ("pure_noise_norm", "gaussian_noise_norm"):
        assert secure[noise] == pytest.approx(trusted[noise] * (1000 / 800) ** 0.5, rel=1e-3)
    assert text[-1] == "Of the shares of noise 800 are whole, and all 1000 parties add theirs."


def test_without_contributors_nothing_is_said_of_shares():
    record, text = vote_noises(**KNOWN)
    assert [row["what"] for row in record["rows"]][-1] == "soft vote statistic"
    assert len(text) == 1


def test_the_majority_has_sensitivities_of_its_own():
    soft, majority = (vote_noises(**{**KNOWN, "majority": one})[0]["rows"][0] for one in (False, True))
    assert majority["sensitivity"] == pytest.approx(1000 * soft["sensitivity"])


def test_what_no_noise_fits_is_refused():
    with pytest.raises(InputError, match="epsilon"):
        vote_noises(**{**KNOWN, "epsilon": 0.0}, contributors=800)
