"""How many parties are honest at least: by a quorum and a share of colluders, both of all that are enrolled."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.contract.errors import InputError
from federation.contract.trust import COLLUDING, TrustTerms


@pytest.mark.parametrize(
    ("parties", "quorum", "colluding", "expected"),
    [(100, 1.0, 0.0, 100), (100, 0.95, 0.05, 90), (100, 0.8, 0.1, 70), (10, 0.5, 0.1, 4), (3, 1.0, 0.1, 2)],
)
def test_whoever_is_missing_or_colludes_is_not_counted(parties, quorum, colluding, expected):
    assert TrustTerms(parties, quorum, colluding).honest == expected
    assert COLLUDING == 0.1  # unless somebody says otherwise


@pytest.mark.parametrize(("parties", "quorum", "colluding"), [(1, 1.0, 0.1), (2, 0.5, 0.1), (10, 0.3, 0.3)])
def test_where_nobody_is_left_there_are_no_shares(parties, quorum, colluding):
    with pytest.raises(InputError, match=r"parties\.quorum.*parties\.colluding"):
        _ = TrustTerms(parties, quorum, colluding).honest


@pytest.mark.parametrize("share", [math.nan, -0.1, 1.1, math.inf, "1", None])
def test_what_is_no_share_is_refused(share):
    with pytest.raises(InputError, match=r"colluding.*0.*1"):
        _ = TrustTerms(10, colluding=share).colluders
    with pytest.raises(InputError, match=r"quorum.*0.*1"):
        _ = TrustTerms(10, share).honest


@given(st.integers(1, 10**6), st.floats(0.01, 1.0), st.floats(0.0, 0.99))
def test_shares_are_never_counted_on_that_may_be_missing(parties, quorum, colluding):
    terms = TrustTerms(parties, quorum, colluding)
    try:
        found = terms.honest
    except InputError:
        assert quorum * parties <= terms.colluders + 1e-6
        return
    assert 1 <= found <= parties
    assert found + terms.colluders >= quorum * parties  # below the quorum nothing is released
    assert terms.colluders >= colluding * parties
