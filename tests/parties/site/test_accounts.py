"""What a table has spent, whoever asked."""

import pytest

from federation.contract.errors import BudgetExceededError, InputError
from federation.contract.guarantee import Adjacency, Guarantee, Unit
from parties.site.accounts import Account, Accounts, Allowances
from parties.site.journal import Journal

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
    with pytest.raises(BudgetExceededError, match=r"would spend epsilon=2.6, delta=0 for label/replace in all"):
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


def test_another_table_has_spent_nothing(opened):
    opened(LABEL).charge("a", promise(1.5), False, {})
    assert opened(LABEL, table="others").spent() == {"label/replace": (0.0, 0.0)}
