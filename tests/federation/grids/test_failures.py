"""Causes of failure with their numbers."""

from hypothesis import given
from hypothesis import strategies as st

from federation.engines.sending import Failures, describe


def test_the_first_cause_of_a_party_counts():
    failures = Failures(verbose=True)
    failures.add([1, 2], "dropped out")
    failures.add([2, 3], "no rows")
    assert failures.causes() == {"dropped out": 2, "no rows": 1}


def test_causes_that_name_parties_are_one_cause():
    failures = Failures(verbose=True)
    failures.add([3], "party 3 holds NaN")
    assert failures.causes() == {"party 3 holds NaN": 1}
    failures.add([17], "party 17 holds NaN")
    assert failures.causes() == {"a party holds NaN": 2}


def test_texts_are_one_short_line():
    failures = Failures(verbose=True)
    failures.add([1], "two\n lines " + "x" * 10**6)
    [cause] = failures.causes()
    assert cause.startswith("two lines x")
    assert len(cause) <= 200


@given(st.dictionaries(st.integers(0, 99), st.text(max_size=30)))
def test_a_deployment_tells_numbers_only(causes):
    failures = Failures(verbose=False)
    for party, text in causes.items():
        failures.add([party], text)
    assert failures.causes() == ({"no usable answer": len(causes)} if causes else {})


@given(st.dictionaries(st.integers(0, 99), st.text(max_size=30)))
def test_every_failed_party_is_counted_once(causes):
    failures = Failures(verbose=True)
    for party, text in causes.items():
        failures.add([party], text)
    counts = list(failures.causes().values())
    assert sum(counts) == len(causes)
    assert counts == sorted(counts, reverse=True)


def test_the_most_frequent_causes_are_told():
    causes = {"a": 1, "b": 30, "c": 7, "d": 4, "e": 1}
    assert describe(causes) == "30 x b; 7 x c; 4 x d; 2 for other reasons"
    assert describe({"a": 1}) == "1 x a"
    assert describe({}) == ""
