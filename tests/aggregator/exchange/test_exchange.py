"""What was asked and what came lasts, and belongs to one plan and one version."""

import json

import pytest
from support.letter_sites import deployed

from aggregator.exchange.exchange import Exchange
from federation import __version__
from federation.contract.errors import InputError
from federation.contract.query import ReleaseId
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
    other = Exchange.opened(tmp_path / "002", made[0].agreement, made[0].signing_key)
    assert other.identifier != first.identifier
    assert other.head(0, question(), 0).reply_to != first.head(0, question(), 0).reply_to


def test_nobody_else_may_look(opened):
    folder = opened().folder
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_a_question_is_asked_again_as_it_was_asked_first(opened):
    assert opened().question(0, question("one")) == question("one")
    assert opened().question(0, question("another")) == question("one")
    assert opened().question(1, question("another")) == question("another")


def test_a_question_of_another_kind_in_its_place_is_refused(opened):
    opened().question(0, question())
    with pytest.raises(InputError, match="was one for counts, and is now one for rows; begin a new exchange"):
        opened().question(0, b"rows\n")


def test_letters_are_the_same_bytes_whenever_they_are_made(opened):
    assert opened().letter(0, question(), 1) == opened().letter(0, question(), 1)
    assert opened().letter(0, question(), 1).head != opened().letter(0, question(), 2).head


def test_a_reply_is_kept_as_it_came_and_opened_for_its_own_site_and_question(opened, made):
    exchange, packet = opened(), question()
    assert exchange.reply(0, packet, 1) is None
    answer = SealedAnswer.sealed_for(exchange.head(0, packet, 1), b"what came", made[1]["south"])
    exchange.keep(answer, 0, packet, 1)
    assert opened().reply(0, packet, 1) == b"what came"
    assert opened().reply(0, packet, 0) is None
    for number, text, site in ((1, packet, 1), (0, question("another"), 1), (0, packet, 2)):
        with pytest.raises(InputError, match="not one that this site gave"):
            exchange.opened_reply(answer, number, text, site)


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


def test_who_is_left_out_has_not_answered(opened):
    exchange = opened()
    exchange.mark_left_out(0, 1)
    exchange.mark_left_out(0, 1)
    assert (exchange.folder / "00000-00001.left").exists()
    assert exchange.reply(0, question(), 1) is None


def test_one_of_another_plan_or_version_is_refused(opened):
    record = opened().folder / "exchange.json"
    known = json.loads(record.read_text())
    record.write_text(json.dumps({**known, "plan": "00" * 32}))
    with pytest.raises(InputError, match="is of another plan"):
        opened()
    record.write_text(json.dumps({**known, "version": "0.0.1"}))
    with pytest.raises(InputError, match=rf"was begun by version 0\.0\.1 .* this is {__version__}; go on with that"):
        opened()
