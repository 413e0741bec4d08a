"""What a table has spent, whoever asked."""

import os
from dataclasses import replace

import pytest

from federation.contract.errors import BudgetExceededError, InputError
from federation.contract.guarantee import Adjacency, Guarantee, Unit
from parties.site.accounts import Account, Accounts, Allowances, Journal

REPLACE, ADD_REMOVE = Adjacency.REPLACE, Adjacency.ADD_REMOVE
LABEL = Account(Unit.LABEL, REPLACE, 2.0, 1e-5)
ROW = Account(Unit.ROW, REPLACE, 4.0, 1e-5)


def promise(epsilon, unit=Unit.LABEL, adjacency=REPLACE, delta=0.0, mu=None):
    return Guarantee(epsilon, delta, unit, adjacency, "some", gaussian_mu=mu)


@pytest.fixture
def opened(tmp_path):
    def accounts(*proved, table="patients", **more):
        return Accounts(table, Allowances(proved, **more), Journal(tmp_path / "journal.jsonl"))

    return accounts


def test_charges_add_up_across_restarts_until_nothing_is_left(opened):
    opened(LABEL).charge("a", promise(1.5), False, {})
    accounts = opened(LABEL)
    with pytest.raises(BudgetExceededError, match=r"would spend epsilon=2.6, .*label/replace in all.*\(1 releases are"):
        accounts.charge("b", promise(1.1), False, {})
    accounts.charge("c", promise(0.5), False, {})
    assert accounts.spent() == {"label/replace": (2.0, 0.0)}
    assert [line["key"] for line in accounts.journal.lines] == ["a", "c"]


def test_the_same_question_is_charged_once(opened):
    for _ in range(3):
        opened(LABEL).charge("a", promise(1.5), False, {"aggregator": "ab12"})
    assert opened(LABEL).spent() == {"label/replace": (1.5, 0.0)}
    assert [line["aggregator"] for line in opened(LABEL).journal.lines] == ["ab12"]


def test_what_protects_more_is_counted_for_less_and_both_accounts_hold(opened):
    accounts = opened(LABEL, ROW)
    accounts.charge("a", promise(0.5, Unit.ROW, ADD_REMOVE), False, {})
    assert accounts.spent() == {"label/replace": (1.0, 0.0), "row/replace": (1.0, 0.0)}
    with pytest.raises(BudgetExceededError, match="label/replace"):
        accounts.charge("b", promise(0.6, Unit.ROW, ADD_REMOVE), False, {})


def test_what_protects_labels_only_is_refused_where_rows_have_an_account(opened):
    with pytest.raises(InputError, match="nothing is proved for row/replace"):
        opened(LABEL, ROW).charge("a", promise(1.0), False, {})
    assert opened(LABEL, ROW).journal.lines == []
    accounts = opened(LABEL, ROW, features_are_public=True)
    accounts.charge("a", promise(1.0), False, {})
    assert accounts.spent() == {"label/replace": (1.0, 0.0), "row/replace": (0.0, 0.0)}


def test_gaussian_releases_compose_on_their_curve(opened):
    accounts = opened(Account(Unit.ROW, REPLACE, 4.0, 1e-5))
    for key in "abcd":
        accounts.charge(key, promise(1.0, Unit.ROW, delta=1e-6, mu=0.2), False, {})
    epsilon, delta = accounts.spent()["row/replace"]
    assert epsilon < 2.0
    assert delta == 1e-5


def test_trusted_answers_have_an_account_and_a_number_of_their_own(opened):
    trusted = Account(Unit.PARTY, REPLACE, 10.0, 0.0)
    accounts = opened(LABEL, trusted=trusted, trusted_answers=1)
    accounts.charge("a", promise(1.0), False, {})
    accounts.charge("b", promise(3.0, Unit.PARTY), True, {})
    assert accounts.spent() == {"label/replace": (1.0, 0.0), "trusted": (3.0, 0.0)}
    with pytest.raises(BudgetExceededError, match="has given 1 of 1 answers without noise"):
        accounts.charge("c", promise(3.0, Unit.PARTY), True, {})
    accounts.charge("b", promise(3.0, Unit.PARTY), True, {})  # the same one again


@pytest.mark.parametrize(("trusted", "named"), [(True, r"\[allowance.trusted\]"), (False, r"\[allowance.label\]")])
def test_without_an_account_nothing_is_answered(opened, trusted, named):
    with pytest.raises(InputError, match=named):
        opened().charge("a", promise(1.0), trusted, {})
    assert opened().journal.lines == []


@pytest.mark.parametrize(
    "other",
    [
        promise(1.0, delta=1e-6),
        promise(2.0),
        promise(1.0, adjacency=ADD_REMOVE),
        replace(promise(1.0), parameters={"queries": 3}),
    ],
)
def test_what_was_charged_for_less_is_not_free(opened, other):
    """A release goes on for nothing only with the noise that it began with."""
    begun = replace(promise(1.0), parameters={"queries": 2, "grid": (1, 2)})
    for _ in range(2):
        accounts = opened(LABEL)
        for _ in range(2):
            accounts.charge("a", begun, False, {})
        for guarantee, trusted in ((other, False), (begun, True)):
            with pytest.raises(InputError, match="this release began with another guarantee"):
                accounts.charge("a", guarantee, trusted, {})
    assert len(opened(LABEL).journal.lines) == 1


@pytest.mark.parametrize("deltas", [(1.01e-6,), (2e-6,), (1e-5,), (0.6e-6, 0.6e-6), (1e-6, 1e-8), (0.4e-6,) * 3])
def test_delta_is_part_of_an_allowance(opened, deltas):
    """Whatever epsilon would be left, and however little delta is above."""
    accounts = opened(Account(Unit.LABEL, REPLACE, 9.0, 1e-6))
    *before, last = (promise(0.1, delta=delta) for delta in deltas)
    for number, release in enumerate(before):
        accounts.charge(str(number), release, False, {})
    with pytest.raises(BudgetExceededError, match="its allowance is epsilon=9, delta=1e-06"):
        accounts.charge("last", last, False, {})


def test_all_of_an_allowance_may_be_spent(opened):
    accounts = opened(Account(Unit.LABEL, REPLACE, 0.3, 3e-6))
    for key in "abc":  # whose sums are above, by rounding
        accounts.charge(key, promise(0.1, delta=1e-6), False, {})
    with pytest.raises(BudgetExceededError):
        accounts.charge("d", promise(1e-6), False, {})


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (float("nan"), 0.5), (9.0, float("nan"))])
def test_an_allowance_of_nothing_or_of_no_number_pays_for_nothing(opened, epsilon, delta):
    with pytest.raises((BudgetExceededError, InputError)):
        opened(Account(Unit.LABEL, REPLACE, epsilon, delta)).charge("a", promise(1e-9, delta=1e-9), False, {})
    assert opened(LABEL).journal.lines == []


def test_without_a_number_of_trusted_answers_none_leaves(opened):
    with pytest.raises(BudgetExceededError, match="has given 0 of 0 answers without noise"):
        opened(trusted=Account(Unit.PARTY, REPLACE, 10.0, 0.0)).charge("a", promise(1.0, Unit.PARTY), True, {})


def test_what_cannot_be_written_down_was_not_charged(opened, monkeypatch):
    accounts = opened(LABEL)
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "no space left")))
        with pytest.raises(OSError, match="no space"):
            accounts.charge("a", promise(1.5), False, {})
    assert accounts.spent() == {"label/replace": (0.0, 0.0)}
    accounts.charge("a", promise(1.5), False, {})
    assert opened(LABEL).spent() == {"label/replace": (1.5, 0.0)}


def test_of_processes_that_charge_at_once_one_does(opened):
    """Each would else think that nothing was spent."""
    first, second = opened(LABEL), opened(LABEL)
    first.charge("a", promise(1.5), False, {})
    with pytest.raises(InputError, match="another process writes to it"):
        second.charge("b", promise(1.5), False, {})
    assert opened(LABEL).spent() == {"label/replace": (1.5, 0.0)}


def test_another_table_has_spent_nothing(opened):
    opened(LABEL).charge("a", promise(1.5), False, {})
    assert opened(LABEL, table="others").spent() == {"label/replace": (0.0, 0.0)}
