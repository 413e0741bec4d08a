"""What a coordinator that does what it likes gets from the second server by letters: one sum of masks, and no other.

The service of a second server, which has no table: it answers at once, and asks people as a site does.
"""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from support.second_folders import second_folder
from support.summing_sites import LetterWorld, town

from aggregator.exchange.exchange import Exchange
from aggregator.secure_aggregation.server import AddingServer
from federation.contract.errors import InputError
from federation.secure_aggregation.messages import KEYS, RECEIPT, SHARES, Table, packed_bits
from federation.secure_aggregation.plan import SumPlan
from federation.signed_messages.aggregation_messages import LEAVE, MASKS, SumAnswer, SumQuery
from federation.signed_messages.agreement import Agreement
from federation.signed_messages.messages import SealedAnswer, Status, read_reply
from parties import helper_server as service
from parties.helper_server import SecondService
from parties.site import service as serving
from parties.site.accounts import Journal
from parties.site.settings import SecondSettings
from parties.site.state import State

SITES = ("north", "south", "west", "east", "centre")
SECOND = "ombud"
TOLD = "told the sum of masks"


@pytest.fixture
def post(tmp_path, monkeypatch, flower_process):
    return town(tmp_path, monkeypatch, SITES, parties={"quorum": 0.8}, servers="two")


@pytest.fixture
def world(post):
    return LetterWorld(post)


def added(world, names=SITES, plan=None):
    """What these sites have sent for a plan."""
    server = AddingServer(plan or world.plan, world.roster)
    for name in names:
        number = SITES.index(name)
        sent = world.told.get(KEYS, {}).get(number) or world.ask(KEYS, number, b"")  # which a site sends once
        server.take(number, sent)
    assert not server.refused
    return server


def bits(names):
    return packed_bits(np.isin(SITES, names))


def query(world, server, names=SITES, receipts=None, plan=None):
    plan = plan or world.plan
    shown = b"".join(server.receipts()) if receipts is None else receipts
    return SumQuery(MASKS, plan.digest, bits(names) + shown, plan.packed())


def masks(world, *asked, **changed):
    """The second server's answer; None where it refuses."""
    records = world.send(SECOND, query(world, *asked, **changed))
    return None if records is None else np.frombuffer(SumAnswer.read(records).body, dtype="<u8")


def test_with_the_masks_of_a_list_the_first_server_has_the_sum_over_it_and_no_other(post, world):
    server = added(world, SITES[:4])
    total = server.total(masks(world, server, SITES[:4]))
    np.testing.assert_array_equal(total.values, sum(world.post.parts[name][-1] for name in SITES[:4]))
    assert total.counted.tolist() == [True] * 4 + [False]


@pytest.mark.parametrize("lost", ["nothing", "its process", "the file of the sum"])
def test_two_lists_of_one_sum_are_not_answered(post, world, lost):
    """With the masks of both, the first server would read the part of the one site by which they differ."""
    added(world)
    assert masks(world, added(world, SITES[:4]), SITES[:4]) is not None
    if lost != "nothing":
        post.again(SECOND)
    if lost == "the file of the sum":
        [path] = post.memory(SECOND)
        path.unlink()
    assert masks(world, added(world)) is None
    assert "the masks of another list of" in world.why(SECOND)
    assert len(post.lines(SECOND, TOLD)) == 1


def test_the_same_list_has_the_same_answer_also_in_another_letter_and_after_a_restart(post, world):
    server = added(world)
    first = masks(world, server)
    letter = world.letter(SECOND, query(world, server).packet(), 99)
    sealed = post.sites[SECOND].reply(letter[1])
    assert post.again(SECOND).reply(letter[1]) == sealed
    np.testing.assert_array_equal(masks(world, server), first)


def test_a_sum_of_one_deployment_is_none_of_another_that_has_the_same_keys(post, world):
    """Else a second server that serves both, each with a memory of its own, tells the masks of two lists of one sum."""
    assert masks(world, added(world, SITES[:4]), SITES[:4]) is not None
    asked = query(world, added(world)).packet()
    first = post.sites[SECOND]
    own = first.answers.parent.with_name("again") / "answers"
    own.mkdir(parents=True)
    agreement = post.agreement.model_copy(update={"name": "again"})
    journal = Journal(own.parent / "journal.jsonl")
    post.sites[SECOND] = replace(first, agreement=agreement, answers=own, journal=journal)
    world.exchange = Exchange.opened(own.parent / "hostile", agreement, world.exchange.signing)
    assert world.send(SECOND, None, packet=asked) is None
    assert "'roster' of the secure sum is not what follows" in world.why(SECOND)


def test_fewer_than_a_quorum_or_more_colluders_than_the_plan_has_are_refused(post, world):
    assert masks(world, added(world, SITES[:3]), SITES[:3]) is None
    assert "3 parties are in the sum, and 4 must be" in world.why(SECOND)
    assert not post.memory(SECOND)
    post.sites[SECOND] = replace(post.sites[SECOND], colluding=0.3)
    assert masks(world, added(world)) is None
    assert "2 of them may collude" in world.why(SECOND)


@pytest.mark.parametrize(
    ("names", "changed"),
    [
        (SITES, lambda table: replace(table, cells=table.cells ^ np.uint8(1))),
        (SITES, lambda table: replace(table, cells=table.cells[[0, 0, 2, 3, 4]])),
        (SITES, lambda table: replace(table, cells=table.cells[[1, 0, 2, 3, 4]])),
        (SITES, lambda table: replace(table, numbers=table.numbers[:4], cells=table.cells[:4])),
        (SITES[:4], lambda table: table),
    ],
    ids=["signatures", "one site twice", "exchanged", "one receipt too few", "one too many"],
)
def test_a_list_without_the_receipt_of_each_site_is_none(post, world, names, changed):
    server = added(world)
    table = Table.read(b"".join(server.receipts()), RECEIPT, server.plan, most=5)
    assert masks(world, server, names, receipts=changed(table).packed()) is None
    assert not post.lines(SECOND, TOLD)
    other = SumPlan.read(world.plan.packed().replace(world.plan.nonce.encode(), b"0" * 32))
    assert masks(world, server, plan=other) is None
    assert "not signed by the party's key" in world.why(SECOND)
    assert masks(world, server) is not None  # what was false has spoilt nothing


@pytest.mark.parametrize(
    "changed",
    [
        {"contributors": 4},
        {"numbers": 2**26},
        {"roster": "11" * 32},
        {"second": "11" * 32},
        {"second": "", "neighbours": 4, "threshold": 3},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_plan_that_does_not_follow_from_the_agreement_is_refused(post, changed):
    world = LetterWorld(post, **changed)
    asked = SumQuery(MASKS, world.plan.digest, bits(SITES), world.plan.packed())
    assert world.send(SECOND, asked) is None
    assert "secure sum" in world.why(SECOND)


@pytest.mark.parametrize("asked", [KEYS, SHARES, LEAVE])
def test_nothing_but_masks_is_told(post, world, asked):
    assert world.send(SECOND, SumQuery(asked, world.plan.digest, world.plan.packed(), world.packet)) is None
    assert world.send(SECOND, None, packet=world.packet) is None
    assert "answers nothing else" in world.why(SECOND)
    assert world.send(SECOND, SumQuery(MASKS, bytes(32), bits(SITES), world.plan.packed())) is None
    assert "another digest" in world.why(SECOND)


def test_before_somebody_there_has_agreed_it_is_busy(post, world):
    post.sites[SECOND] = replace(post.sites[SECOND], approved=lambda head: False)
    head, letter = world.letter(SECOND, query(world, added(world)).packet(), 7)
    sealed = SealedAnswer(**post.sites[SECOND].reply(letter))
    packet = sealed.opened(head, post.keys[SECOND].public_key(), world.exchange.reply_to)
    assert read_reply(packet)[0] is Status.BUSY
    assert not post.memory(SECOND)
    assert [line["event"] for line in post.sites[SECOND].journal.lines] == ["waits for approval"]


def test_it_starts_without_a_table_and_waits_for_somebody_to_agree(tmp_path, monkeypatch):
    settings = SecondSettings.load(second_folder(tmp_path))
    served = []
    monkeypatch.setattr(serving, "Mailbox", lambda *known: None)
    monkeypatch.setattr(serving, "_stopping", lambda box: nullcontext())
    monkeypatch.setattr(SecondService, "serve", lambda made, box: served.append(made))
    service.run(settings, Agreement.load(settings.plan))
    [made] = served
    assert (made.correspondent.name, made.correspondent.position) == ("ombud", 3)
    head = type("Head", (), {"plan": made.agreement.digest, "exchange": bytes(16)})
    assert not made.correspondent.approved(head)
    events = [line["event"] for line in State.found(settings.state).journal(reading=True).lines]
    assert events == ["start", "stop"]
    closed = made.agreement.model_copy(update={"closing": 0})
    with pytest.raises(InputError):
        SecondService(settings, closed, State.found(settings.state), made.key)
