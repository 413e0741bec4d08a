"""What was asked and what came lasts, and belongs to one plan and one version.

What exchanges spend lasts, is held against one budget, and is not known twice.
"""

import json
import math
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.letter_sites import deployed

from aggregator.contract.ledger import Budget
from aggregator.exchange.exchange import Exchange, Spent, affordable
from federation import __version__
from federation.contract.errors import BudgetExceededError, InputError
from federation.contract.guarantee import Adjacency, Guarantee, Unit
from federation.contract.query import ReleaseId
from federation.mechanisms.noise.additive import calibrate
from federation.queries.bags import Bags, CountsNoise, CountsQuestion
from federation.signed_messages.messages import NOTHING_KNOWN, SealedAnswer, question_packet


def question(name="one"):
    return question_packet(CountsQuestion(CountsNoise("pure", 1.0), Bags(1, 2), release=ReleaseId(name)))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return deployed(tmp_path_factory.mktemp("sites"))


@pytest.fixture
def opened(made, tmp_path):
    folder = made[0]
    return lambda: Exchange.opened(tmp_path / "001", folder.agreement, folder.signing_key)


def test_it_is_the_same_whenever_it_is_opened_and_another_in_another_folder(opened, made, tmp_path):
    first, again = opened(), opened()
    assert (first.identifier, len(first.identifier)) == (again.identifier, 16)
    assert first.head(0, question(), 0) == again.head(0, question(), 0)
    assert first.letter(0, question(), 1) == again.letter(0, question(), 1)
    assert first.letter(0, question(), 1).head != first.letter(0, question(), 2).head
    other = Exchange.opened(tmp_path / "002", made[0].agreement, made[0].signing_key)
    assert other.identifier != first.identifier
    assert other.head(0, question(), 0).reply_to != first.head(0, question(), 0).reply_to
    # Nobody else may look.
    assert first.folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in first.folder.iterdir()} == {0o600}


def test_a_question_is_asked_again_as_it_was_asked_first_and_one_of_another_kind_is_refused(opened):
    assert opened().question(0, question("one")) == question("one")
    assert opened().question(0, question("another")) == question("one")
    assert opened().question(1, question("another")) == question("another")
    with pytest.raises(InputError):
        opened().question(0, b"rows\n")


def test_a_reply_is_kept_as_it_came_and_who_is_left_out_has_not_answered(opened, made):
    exchange, packet = opened(), question()
    assert exchange.reply(0, packet, 1) is None
    answer = SealedAnswer.sealed_for(exchange.head(0, packet, 1), b"what came", made[1]["south"])
    exchange.keep(answer, 0, packet, 1)
    assert opened().reply(0, packet, 1) == b"what came"
    assert opened().reply(0, packet, 0) is None
    for number, text, site in ((1, packet, 1), (0, question("another"), 1), (0, packet, 2)):
        with pytest.raises(InputError):
            exchange.opened_reply(answer, number, text, site)
    exchange = opened()
    exchange.mark_left_out(0, 2)
    exchange.mark_left_out(0, 2)
    assert (exchange.folder / "00000-00002.left").exists()
    assert exchange.reply(0, question(), 2) is None


def test_what_a_site_has_told_of_its_journal_is_told_to_it_with_later_questions(opened, made):
    exchange, packet = opened(), question()
    assert exchange.letter(0, packet, 1).known == NOTHING_KNOWN
    answer = SealedAnswer.sealed_for(exchange.head(0, packet, 1), b"what came" + bytes(range(32)), made[1]["south"])
    exchange.keep(answer, 0, packet, 1)
    assert opened().letter(1, packet, 1).known == bytes(range(32))
    assert opened().letter(1, packet, 2).known == NOTHING_KNOWN
    assert opened().letter(1, packet, 1).opened(made[0].signing_key.public_key()).number == 1
    other = Exchange.opened(exchange.folder.with_name("002"), made[0].agreement, made[0].signing_key)
    assert other.letter(0, packet, 1).known == bytes(range(32))


def test_one_of_another_plan_or_version_is_refused(opened):
    record = opened().folder / "exchange.json"
    known = json.loads(record.read_text())
    record.write_text(json.dumps({**known, "plan": "00" * 32}))
    with pytest.raises(InputError):
        opened()
    record.write_text(json.dumps({**known, "version": "0.0.1"}))
    with pytest.raises(InputError, match=rf"0\.0\.1.*{__version__}"):
        opened()


def pure(epsilon, unit=Unit.LABEL):
    return Guarantee(epsilon, 0.0, unit, Adjacency.REPLACE, "laplace")


def test_what_is_charged_is_known_to_the_next_process_and_to_nobody_else(tmp_path):
    path = tmp_path / "ledger.json"
    spent = Spent.load(path)
    assert (spent.guarantees(), spent.totals(1e-6)) == ([], [])
    with pytest.raises(InputError):  # an exchange that would be charged with nothing
        spent.charge("aa", [], None)
    assert not path.exists()
    Spent.load(path).charge("aa", [pure(1.0)], None)
    Spent.load(path).charge("bb", [pure(0.5)], None)
    found = Spent.load(path)
    assert [one.epsilon for one in found.guarantees()] == [1.0, 0.5]
    [total] = found.totals(1e-6)
    assert (total["unit"], total["epsilon"], total["delta"]) == ("label", 1.5, 0.0)
    assert found.totals(1e-6, "bb")[0]["epsilon"] == 0.5
    assert path.stat().st_mode & 0o777 == 0o600
    [entry] = json.loads(path.read_text())["charged"]["aa"]
    assert (entry["epsilon"], entry["unit"], entry["mechanism"]) == (1.0, "label", "laplace")


def test_all_exchanges_together_are_held_against_the_budget_and_a_refused_one_leaves_no_trace(tmp_path):
    spent = Spent.load(tmp_path / "ledger.json")
    spent.charge("aa", [pure(1.0)], Budget(2.0, 0.0))
    before = spent.path.read_bytes()
    with pytest.raises(BudgetExceededError, match=r"epsilon.*2\.5.*epsilon.*2"):
        spent.charge("bb", [pure(1.5)], Budget(2.0, 0.0))
    assert spent.path.read_bytes() == before
    assert Spent.load(spent.path).charged.keys() == {"aa"}
    spent.charge("bb", [pure(1.0)], Budget(2.0, 0.0))


def test_what_an_exchange_turns_out_to_spend_takes_the_place_of_what_was_set_aside(tmp_path):
    spent = Spent.load(tmp_path / "ledger.json")
    spent.charge("one", [pure(2.0)], Budget(2.0, 0.0))
    spent.charge("one", [pure(1.25)], Budget(2.0, 0.0))
    assert [one.epsilon for one in Spent.load(spent.path).guarantees()] == [1.25]
    spent.charge("two", [pure(0.5)], None)
    for set_aside in ("one", "three"):  # for nothing: it is free again
        spent.free(set_aside)
    assert [*Spent.load(spent.path).charged] == ["two"]


def test_gaussian_noise_is_composed_as_such_after_it_was_stored(tmp_path):
    noise = calibrate("gaussian", sensitivity=1.0, dimension=5, epsilon=1.0, delta=1e-6)
    once = noise.guarantee(Unit.PARTY, Adjacency.REPLACE)
    for exchange in "abcd":
        Spent.load(tmp_path / "ledger.json").charge(exchange, [once], None)
    [total] = Spent.load(tmp_path / "ledger.json").totals(1e-6)
    assert total["epsilon"] < 2.2
    assert math.isclose(total["delta"], 1e-6)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"charged": {"aa": [{"epsilon": 1}]}}', '{"charged": 3}'])
def test_a_damaged_ledger_is_not_taken_for_an_empty_one(tmp_path, text):
    (tmp_path / "ledger.json").write_text(text)
    with pytest.raises(InputError, match=r"ledger\.json"):
        Spent.load(tmp_path / "ledger.json")


@given(st.integers(1, 8), st.integers(0, 12))
def test_a_budget_affords_as_many_as_can_be_charged_one_after_another(times, epsilon):
    budget, promised = Budget(float(epsilon), 0.0), [pure(0.25)] * times
    with TemporaryDirectory() as folder:
        spent, count = Spent.load(Path(folder, "ledger.json")), 0
        while count < 5:
            try:
                spent.charge(f"{count}", promised, budget)
            except BudgetExceededError:
                break
            count += 1
    assert affordable(promised, budget, 5) == count
