"""A variant that fails costs its own releases: what is noted, what is raised, and what it is called."""

from __future__ import annotations

import errno

import pytest

from aggregator.server.variants import FailedVariants, blaming
from federation.contract.errors import DEBUG, BudgetExceededError, FederationError, InputError, QuorumError


@pytest.fixture(autouse=True)
def nobody_debugs(monkeypatch):
    monkeypatch.delenv(DEBUG, raising=False)


def fail(failed, name, error):
    with failed.sparing_others(name):
        raise error


def test_an_error_is_noted_and_the_others_go_on():
    failed = FailedVariants(["a", "b", "c"])
    fail(failed, "a", InputError("too few rows"))
    with failed.sparing_others("b"):
        pass
    assert failed.causes == {"a": "too few rows"}


def test_what_nobody_foresaw_is_noted_in_one_line():
    failed = FailedVariants(["a", "b"])
    fail(failed, "a", ZeroDivisionError("odd\nthing"))
    assert failed.causes["a"] == f"unexpected ZeroDivisionError: odd thing; run with {DEBUG}=1 for the traceback"


def test_the_last_variant_that_is_left_is_raised_and_not_noted():
    failed = FailedVariants(["a", "b"])
    fail(failed, "a", InputError("first"))
    with pytest.raises(InputError, match=r"^variant 'b': second$"):
        fail(failed, "b", InputError("second"))
    assert failed.causes == {"a": "first"}


@pytest.mark.parametrize("error", [BudgetExceededError("too much"), QuorumError("too few")])
def test_budgets_and_quorums_are_for_the_whole_world(error):
    failed = FailedVariants(["a", "b"])
    with pytest.raises(type(error), match=f"^variant 'a': {error}$"):
        fail(failed, "a", error)
    assert failed.causes == {}


def test_with_debugging_every_error_is_raised_as_it_is(monkeypatch):
    monkeypatch.setenv(DEBUG, "1")
    error = InputError("too few rows")
    with pytest.raises(InputError) as raised:
        fail(FailedVariants(["a", "b"]), "a", error)
    assert raised.value is error


def test_one_that_fails_twice_is_left_out_once():
    failed = FailedVariants(["a", "b"])
    for cause in ("first", "second"):
        fail(failed, "a", InputError(cause))
    assert failed.causes == {"a": "second"}


@pytest.mark.parametrize(("error", "kind"), [(InputError("x"), InputError), (KeyError("x"), FederationError)])
def test_blame_keeps_the_kind_of_an_error_and_its_cause(error, kind):
    with pytest.raises(FederationError, match=r"^variant 'a': ") as raised, blaming("a"):
        raise error
    assert type(raised.value) is kind
    assert raised.value.__cause__ is error


def test_who_leaves_the_program_is_not_held_back():
    failed = FailedVariants(["a", "b"])
    with pytest.raises(KeyboardInterrupt):
        fail(failed, "a", KeyboardInterrupt())
    assert failed.causes == {}


def test_a_full_disk_is_no_variants_fault():
    failed, full = FailedVariants(["a", "b"]), OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(OSError, match="No space left") as raised:
        fail(failed, "a", full)
    assert raised.value is full
    assert failed.causes == {}
    fail(failed, "b", InputError("noted, as the other is left still"))
    assert list(failed.causes) == ["b"]
