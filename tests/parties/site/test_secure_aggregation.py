"""What a coordinator that does what it likes gets from sites in a secure sum by letters: nothing, and it is told.

What it can try with the messages of a sum themselves: `tests/guarantees/test_masked_sum_attacks.py`.
"""

from dataclasses import replace

import numpy as np
import pytest
from support.questions import QUESTIONS
from support.summing_sites import LetterWorld, town

from federation.secure_aggregation.messages import (
    AGREE,
    KEYS,
    MASKED,
    PAIR,
    SHARES,
    UNMASK,
    Table,
    as_cells,
    keys_width,
)
from federation.signed_messages.aggregation_messages import LEAVE, SumAnswer, SumQuery
from federation.signed_messages.messages import question_packet
from parties.secure_aggregation.party import Record
from parties.site.settings import Belief
from parties.site.worker import Busy

SITES = ("north", "south", "west", "east", "centre")
VICTIM = 1
NAME = SITES[VICTIM]


@pytest.fixture
def post(tmp_path, monkeypatch, flower_process):
    return town(tmp_path, monkeypatch, SITES, parties={"quorum": 0.8})


@pytest.fixture
def world(post):
    return LetterWorld(post)


def spent(post):
    return {name: len(post.lines(name, "charged")) for name in SITES}


@pytest.mark.parametrize(
    "changed",
    [
        {"parties": 4, "neighbours": 3},
        {"contributors": 4},
        {"colluding": 0, "contributors": 4},
        {"least": 3, "contributors": 2},
        {"threshold": 2},
        {"numbers": 3},
        {"roster": "11" * 32},
        {"question": "11" * 32},
        {"adversary": "semi_honest"},
        {"second": "11" * 32, "neighbours": 0, "threshold": 0},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_plan_that_does_not_follow_from_the_agreement_is_refused_before_anything_is_computed(post, changed):
    require_refused(post, "secure sum", **changed)


def require_refused(post, why, **changed):
    """A victim refuses the first query of a sum, and nothing is computed."""
    world = LetterWorld(post, **changed)
    assert world.ask(KEYS, VICTIM, b"") is None
    assert why in world.why(NAME)
    assert not post.parts
    assert not post.lines(NAME, "begun")


def test_a_site_that_takes_more_to_collude_than_the_plan_or_cannot_pay_refuses_it(post):
    post.sites[NAME] = replace(post.sites[NAME], belief=Belief(colluding=0.3))
    require_refused(post, "2 of them may collude by this party's configuration")
    post.epsilon = 0.5
    post.again(NAME)
    require_refused(post, "")


@pytest.mark.parametrize("servers", ["one_semi_honest", "two"])
def test_servers_that_a_site_does_not_believe_get_nothing_and_cost_nothing(
    tmp_path, monkeypatch, flower_process, servers
):
    post = town(tmp_path, monkeypatch, SITES, parties={"quorum": 0.8}, servers=servers)
    post.servers = ("one",)
    post.again(NAME)
    require_refused(post, f'write "{servers}" there, too')
    assert [line["event"] for line in post.sites[NAME].journal.lines] == ["refused"]


@pytest.mark.parametrize("kind", ["votes", "counts"])
def test_a_question_without_shares_is_none_for_a_sum(post, monkeypatch, kind):
    monkeypatch.setattr("support.summing_sites.require_agreed", lambda question, agreement: None)
    world = LetterWorld(post)
    world.packet = question_packet(QUESTIONS[kind])
    assert world.ask(KEYS, VICTIM, b"") is None
    assert "a secure sum is for answers with a share of a noise" in world.why(NAME)


def test_a_part_is_paid_for_before_it_leaves_masked_and_not_earlier(post, world):
    world.honestly(SHARES)
    assert set(spent(post).values()) == {0}
    assert world.ask(MASKED, VICTIM, world.letters_to(VICTIM, [0, 2, 3, 4])) is not None
    assert spent(post) == dict.fromkeys(SITES, 0) | {NAME: 1}
    kinds = [line["event"] for line in post.sites[NAME].journal.lines]
    assert kinds.index("charged") < [i for i, kind in enumerate(kinds) if kind == "answered in a secure sum"][2]


def test_a_sum_has_not_begun_at_a_site_whose_rows_are_away(post, world):
    def away(name):
        raise Busy("the data base says: connection refused")

    post.reading = away
    assert world.ask(KEYS, VICTIM, b"") is None
    assert not post.lines(NAME, "begun")
    post.reading = lambda name: None
    assert world.ask(KEYS, VICTIM, b"") is not None
    assert len(post.lines(NAME, "begun")) == 1


def test_the_same_letter_has_the_same_answer_byte_for_byte_also_after_a_restart(post, world):
    world.honestly(KEYS)
    packet = SumQuery(SHARES, world.plan.digest, world_table(world)).packet()
    letter = world.letter(NAME, packet, 99)
    first = post.sites[NAME].reply(letter[1])
    assert post.again(NAME).reply(letter[1]) == first
    again = world.send(NAME, SumQuery(SHARES, world.plan.digest, world_table(world)))  # the same in another letter
    assert SumAnswer.read(again).body == SumAnswer.read(world.opened(NAME, letter)).body


def world_table(world):
    near = [number for number in range(5) if number != VICTIM]
    cells = [world.told[KEYS][number] for number in near]
    return Table(np.array(near), as_cells(cells, keys_width(world.plan))).packed()


def test_another_query_in_place_of_an_answered_one_is_refused_and_ends_the_sum(post, world):
    world.honestly(MASKED)
    assert world.ask(MASKED, VICTIM, world.letters_to(VICTIM, [0, 2, 3])) is None
    assert "each query once and in order" in world.why(NAME)
    assert world.ask(AGREE, VICTIM, world.living(VICTIM, world.live())) is None
    assert spent(post)[NAME] == 1
    assert len(post.parts[NAME]) == 1


def test_what_is_denied_in_the_meantime_does_not_leave_and_costs_nothing(post, world):
    world.honestly(SHARES)
    post.sites[NAME].denied = lambda head: True
    assert world.ask(MASKED, VICTIM, world.letters_to(VICTIM, [0, 2, 3, 4])) is None
    assert "somebody here has denied it" in world.why(NAME)
    assert spent(post)[NAME] == 0
    assert Record.read(post.memory(NAME)[0].read_bytes()).root == b""


@pytest.mark.parametrize("query", [MASKED, UNMASK, LEAVE + 1])
def test_a_query_out_of_order_is_refused(post, world, query):
    world.honestly(KEYS)
    assert world.ask(query, VICTIM, world.letters_to(VICTIM, [])) is None
    assert post.lines(NAME, "refused")


@pytest.mark.parametrize("servers", ["one", "two"])
def test_a_second_sum_of_one_release_is_refused(tmp_path, monkeypatch, flower_process, servers):
    post = town(tmp_path, monkeypatch, SITES, parties={"quorum": 0.8}, servers=servers)
    first, other = LetterWorld(post), LetterWorld(post)
    assert first.ask(KEYS, VICTIM, b"") is not None
    assert other.plan.digest != first.plan.digest
    assert other.ask(KEYS, VICTIM, b"") is None
    assert "another question was answered in this place" in other.why(NAME)
    assert len(post.parts[NAME]) == 1
    assert spent(post)[NAME] == (servers == "two")


def test_a_sum_belongs_to_its_exchange_and_so_does_its_digest(post, world):
    world.honestly(KEYS)
    query = SumQuery(SHARES, world.plan.digest, world_table(world))
    assert world.send(NAME, query, exchange=bytes(16)) is None
    assert "knows nothing of this secure sum" in world.why(NAME)
    query = SumQuery(KEYS, world.plan.digest, world.plan.packed(), world.packet)
    assert world.send(NAME, query, exchange=bytes(16)) is None
    assert "one of another exchange" in world.why(NAME)
    assert len(post.parts[NAME]) == 1


def test_a_share_is_not_given_but_in_a_sum_and_its_plan_is_the_one_of_its_digest(post, world):
    assert world.send(NAME, SumQuery(KEYS, bytes(32), b""), packet=world.packet) is None
    assert "no secure summation" in world.why(NAME)
    assert world.send(NAME, SumQuery(KEYS, bytes(32), world.plan.packed(), world.packet)) is None
    assert "another digest" in world.why(NAME)
    assert not post.parts


def test_a_site_whose_files_are_lost_is_absent_and_does_not_begin_anew(post, world):
    letter = world.letter(NAME, SumQuery(KEYS, world.plan.digest, world.plan.packed(), world.packet).packet(), 7)
    assert world.opened(NAME, letter) is not None
    for path in (*post.memory(NAME), *post.sites[NAME].answers.iterdir()):
        path.unlink()
    post.again(NAME)
    assert world.opened(NAME, letter) is None
    assert "lacks the answer" in world.why(NAME)
    assert len(post.parts[NAME]) == 1
    assert world.ask(SHARES, VICTIM, b"") is None
    assert "knows nothing of this sum" in world.why(NAME)


def test_a_sum_that_is_over_leaves_no_secret(post, world):
    world.honestly(MASKED)
    assert world.send(NAME, SumQuery(LEAVE, world.plan.digest, b"")) is not None
    assert Record.read(post.memory(NAME)[0].read_bytes()).root == b""
    assert world.ask(AGREE, VICTIM, world.living(VICTIM, world.live())) is None


@pytest.mark.parametrize("restarted", [True, False])
def test_a_sum_that_is_a_day_old_leaves_no_secret(post, world, restarted):
    world.honestly(KEYS)
    later = post.sites[NAME].now() + 90_000
    site = post.again(NAME) if restarted else post.sites[NAME]
    site.now = lambda: later
    assert world.ask(SHARES, VICTIM, world_table(world)) is None
    assert Record.read(post.memory(NAME)[0].read_bytes()).root == b""


def test_two_lists_of_the_living_are_not_signed_also_after_a_restart(post, world):
    world.honestly(MASKED)
    everybody = [0, 2, 3, 4]
    assert len(world.agree(everybody, world.live())) == 4
    for name in SITES:
        post.again(name)
    assert world.agree(everybody, world.live(but=[VICTIM])) == {}
    assert world.secret(VICTIM, PAIR) is None


@pytest.fixture
def two(tmp_path, monkeypatch, flower_process):
    return town(tmp_path, monkeypatch, SITES, parties={"quorum": 0.8}, servers="two")


def test_a_second_server_that_a_site_does_not_know_gets_nothing(two):
    """The coordinator has put a key of its own in the place of the second server's."""
    two.seconds = ("11" * 32,)
    two.again(NAME)
    require_refused(two, "compare it by telephone with 'ombud', not with the coordinator")
    assert [line["event"] for line in two.sites[NAME].journal.lines] == ["refused"]


def test_an_upload_is_paid_for_before_it_leaves_and_sent_again_byte_for_byte(two):
    world = LetterWorld(two)
    query = SumQuery(KEYS, world.plan.digest, world.plan.packed(), world.packet)
    letter = world.letter(NAME, query.packet(), 7)
    first = two.sites[NAME].reply(letter[1])
    assert two.again(NAME).reply(letter[1]) == first
    answer = SumAnswer.read(world.opened(NAME, letter)).body
    assert two.sites[NAME]._sums._uploading.answer(world.plan.packed()) == answer  # also where the letter is lost
    events = [line["event"] for line in two.sites[NAME].journal.lines]
    assert events[:3] == ["begun", "charged", "answered in a secure sum"]
    assert len(two.parts[NAME]) == 1
    assert Record.read(two.memory(NAME)[0].read_bytes()).root == b""


def test_a_site_that_is_killed_before_its_upload_is_kept_pays_once(two, monkeypatch):
    world = LetterWorld(two)
    letter = world.letter(NAME, SumQuery(KEYS, world.plan.digest, world.plan.packed(), world.packet).packet(), 7)
    with monkeypatch.context() as dying:
        dying.setattr("parties.secure_aggregation.party.write_lasting", _killed)
        with pytest.raises(KeyboardInterrupt):
            two.sites[NAME].reply(letter[1])
    assert spent(two)[NAME] == 1
    two.again(NAME)
    assert world.opened(NAME, letter) is not None
    assert spent(two)[NAME] == 1


def _killed(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize("query", [SHARES, MASKED, UNMASK])
def test_a_sum_with_a_second_server_has_no_other_queries(two, query):
    world = LetterWorld(two)
    assert world.ask(KEYS, VICTIM, b"") is not None
    assert world.send(NAME, SumQuery(query, world.plan.digest, b"")) is None
    assert two.lines(NAME, "refused")
