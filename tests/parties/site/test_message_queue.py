"""The mail box of a site, with a SuperLink in memory: letters come and go, and all else is refused, and never run."""

import hashlib
import logging
import ssl
import threading
import time
from types import SimpleNamespace

import httpx
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from flwr.app import ArrayRecord, ConfigRecord, Metadata, RecordDict
from flwr.app.message.message import make_message, remove_content_from_message
from flwr.common.serde import message_from_proto, message_to_proto
from flwr.proto.message_pb2 import PullObjectRequest
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects, get_object_tree

from federation.contract.errors import InputError
from federation.signed_messages.keys import new_site_key
from federation.signed_messages.messages import LETTER, Head, SignedQuestion
from parties.site import message_queue as mailbox
from parties.site import policy
from parties.site.message_queue import Closed, Mailbox
from scenarios.deployment.certificates import make_authority

PARTS = {"head": b"h", "signature": b"s", "question": b"q" * 1000}


class Link:
    """A SuperLink that has messages for one node, and fails where it is told to; it has nothing else to ask for."""

    def __init__(self):
        self.waiting, self.objects, self.sent, self.called, self.failing, self.late = [], {}, [], [], [], 0
        self.withheld, self.given = set(), []

    def hold(self, content):
        metadata = Metadata(7, "", 1, 5, "", "", time.time(), 3600.0, "query.votes")
        message = make_message(metadata=metadata, content=content)
        message.metadata.__dict__["_message_id"] = message.object_id
        found = get_all_nested_objects(message)
        self.objects |= {name: each.deflate() for name, each in found.items()}
        tree = get_object_tree(message)
        self.waiting.append((message_to_proto(remove_content_from_message(message)), tree))
        return message

    def __getattr__(self, name):
        act = getattr(type(self), f"_{name}")

        def call(request):
            self.called.append(name)
            if self.failing:
                raise self.failing.pop(0)
            return act(self, request)

        return call

    def _ActivateNode(self, request):
        return SimpleNamespace(node_id=5)

    def _DeactivateNode(self, request):
        assert request.node_id == 5

    def _PullMessages(self, request):
        found, self.waiting = self.waiting[:1], self.waiting[1:]
        messages, trees = [one for one, _ in found], [tree for _, tree in found]
        return SimpleNamespace(messages_list=messages, message_object_trees=trees)

    def _PullObject(self, request):
        self.late -= 1
        there = request.object_id in self.objects
        content = self.objects.get(request.object_id, b"")
        available = self.late < 0 and request.object_id not in self.withheld
        self.given += [request.object_id] * available
        return SimpleNamespace(object_found=there, object_available=available, object_content=content)

    def _ConfirmMessageReceived(self, request):
        assert request.run_id == 7

    def _PushMessages(self, request):
        self.sent.append((message_from_proto(request.messages_list[0]), {}))
        trees = [request.message_object_trees[0]]
        for tree in trees:
            trees += tree.children
        return SimpleNamespace(objects_to_push={tree.object_id for tree in trees}, session_id="")

    def _SendNodeHeartbeat(self, request):
        assert request.node.node_id == 5

    def _PushObject(self, request):
        self.sent[-1][1][request.object_id] = request.object_content


@pytest.fixture
def link(monkeypatch):
    made = Link()
    monkeypatch.setattr(mailbox.FleetHttpClient, "from_server_address", lambda *_: made)
    monkeypatch.setattr(mailbox, "_FIRST_WAIT", 0.0)
    return made


@pytest.fixture
def box(link):
    link.refused = []
    return Mailbox("127.0.0.1:1", b"root", new_site_key(), 10_000, link.refused.append)


def letter(**parts):
    return RecordDict({LETTER: ConfigRecord(parts or PARTS)})


MANY = RecordDict({f"r{i}": ConfigRecord({"x": i}) for i in range(20)})


def test_a_letter_comes_as_it_was_sent_and_its_reply_goes_back(box, link):
    message = link.hold(letter())
    with box.opened():
        found = box.fetch()
        assert found.parts == PARTS
        assert box.fetch() is None
        box.reply(found, {"sealed": b"x" * 500})
    sent, objects = link.sent[0]
    assert sent.metadata.reply_to_message_id == message.metadata.message_id
    assert (sent.metadata.dst_node_id, sent.metadata.run_id) == (1, 7)
    assert any(b"x" * 500 in content for content in objects.values())
    assert link.called[0] == "ActivateNode"
    assert link.called[-1] == "DeactivateNode"
    assert "ConfirmMessageReceived" in link.called


@pytest.mark.parametrize(
    "content",
    [
        RecordDict({"query": ConfigRecord({"sql": "select"})}),
        RecordDict({LETTER: ArrayRecord([np.zeros(3)])}),
        RecordDict({LETTER: ConfigRecord({"head": "a text"})}),
        RecordDict({LETTER: ConfigRecord(PARTS), "more": ConfigRecord({})}),
        RecordDict({}),
        MANY,
        letter(question=b"q" * 20_000),
    ],
)
def test_what_is_no_letter_is_refused_in_one_word_and_none_of_many_parts_is_fetched(box, link, content):
    link.hold(content)
    assert box.fetch() is None
    assert [sent.error.reason for sent, _ in link.sent] == ["refused"]
    assert len(link.refused) == 1
    assert "no letter" in link.refused[0]
    if content is MANY:
        assert "more than 8 objects" in link.refused[0]
        assert link.given == []


def test_a_message_that_cannot_be_read_is_told_of_and_the_next_one_comes(box, link, monkeypatch):
    with monkeypatch.context() as broken:
        half = SimpleNamespace(messages_list=[b"no message"], message_object_trees=[])
        broken.setattr(Link, "_PullMessages", lambda self, request: half)
        assert box.fetch() is None
    assert "no letter" in link.refused[0]
    link.hold(letter())
    assert box.fetch().parts == PARTS


def test_a_letter_may_have_as_many_bytes_as_the_site_takes_and_no_more(box, link):
    link.hold(letter())
    smallest = min(link.objects, key=lambda one: len(link.objects[one]))
    sizes = {name: len(content) for name, content in link.objects.items()}
    link.withheld = {smallest}
    box._most = sum(sizes.values()) - sizes[smallest]
    assert box.fetch() is None
    assert link.refused == []  # all but one have come
    link.withheld.clear()
    assert box.fetch() is None
    assert "more than" in link.refused[0]
    link.hold(letter())
    box._most = sum(sizes.values())
    assert box.fetch().parts == PARTS


def test_an_object_is_what_it_is_called_or_refused(box, link):
    link.hold(letter())
    name = max(link.objects, key=lambda one: len(link.objects[one]))
    link.objects[name] = link.objects[name].replace(b"q" * 10, b"p" * 10)
    assert box.fetch() is None
    assert link.sent[0][0].error.reason == "refused"


def test_an_object_that_never_comes_is_refused_and_a_late_one_waited_for(box, link, monkeypatch):
    link.hold(letter())
    link.late = 5
    link.withheld = {min(link.objects, key=lambda one: len(link.objects[one]))}
    found = [box.fetch() for _ in range(8)]
    assert found == [None] * 8  # nobody waits for it
    link.withheld.clear()
    assert box.fetch().parts == PARTS
    assert sorted(link.given) == sorted(link.objects)  # each once
    assert link.sent == []
    link.hold(letter(head=b"other"))
    link.objects.clear()
    assert box.fetch() is None
    assert len(link.sent) == 1
    link.hold(letter())
    link.late = 10_000
    assert box.fetch() is None
    assert len(link.sent) == 1
    now = mailbox.time.monotonic()
    monkeypatch.setattr(mailbox.time, "monotonic", lambda: now + 100.0)
    assert box.fetch() is None
    assert len(link.sent) == 2


def test_a_letter_is_little_longer_than_its_question(link):
    """So a site that knows the longest question knows the longest letter."""
    signing, question = Ed25519PrivateKey.generate(), bytes(10_000)
    digest, zeros = hashlib.sha256(question).digest(), bytes(32)
    head = Head(zeros, bytes(16), 10**6, digest, "n" * 63, 9999, zeros, 2**40, zeros)
    link.hold(RecordDict({LETTER: ConfigRecord(vars(SignedQuestion.signed(head, question, signing)))}))
    assert len(question) < sum(map(len, link.objects.values())) <= len(question) + policy._ENVELOPE


def test_who_sends_half_a_letter_holds_up_nobody_and_fills_no_memory(box, link):
    for number in range(20):
        known = {*link.objects}
        link.hold(RecordDict({LETTER: ConfigRecord({"q": b"q" * 3000}), f"{number}": ConfigRecord({"x": number})}))
        link.withheld.add(next(name for name in link.objects if name not in known and len(link.objects[name]) < 1000))
        assert box.fetch() is None
    assert box._coming
    assert sum(one.held for one in box._coming) <= 10_000
    link.hold(letter())
    assert box.fetch().parts == PARTS


def failed(status, text=""):
    request = httpx.Request("POST", "http://link")
    return httpx.HTTPStatusError("", request=request, response=httpx.Response(status, text=text, request=request))


def expired():
    error = httpx.ConnectError("certificate has expired")
    error.__cause__ = ssl.SSLCertVerificationError()
    return error


def test_a_letter_of_a_run_that_was_stopped_counts_only_if_it_has_come_before(box, link, monkeypatch):
    asked = []

    def stopped(self, request):
        asked.append(request)
        raise failed(404, "Run is finished.")

    link.hold(letter())
    with monkeypatch.context() as patch:
        patch.setattr(Link, "_PullObject", stopped)
        assert box.fetch() is None
    assert box._coming == []
    monkeypatch.setattr(Link, "_ConfirmMessageReceived", stopped)
    link.hold(letter(head=b"another"))
    assert box.fetch().parts == {"head": b"another"}
    assert asked[-1].run_id == 7


def test_a_reply_that_a_superlink_fails_to_take_is_sent_again(box, link):
    """What it answers from 500 on may be otherwise the next time."""
    link.hold(letter())
    with box.opened():
        found = box.fetch()
        link.failing = [failed(500)]
        box.reply(found, {"sealed": b"s"})
    assert len(link.sent) == 1


@pytest.mark.parametrize("code", [400, 403, 404])
def test_a_reply_to_a_run_that_was_stopped_is_given_up_and_the_next_letter_is_served(box, link, code, caplog):
    """Whoever may stop a run could else keep a site busy for ever."""
    link.hold(letter())
    with box.opened():
        found = box.fetch()
        link.failing = [failed(code, "Run is finished.")]
        box.reply(found, {"sealed": b"s"})
        assert link.sent == []
        link.hold(letter())
        box.reply(box.fetch(), {"sealed": b"s"})
    assert len(link.sent) == 1
    assert "Run is finished" in caplog.text


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (httpx.ConnectError("refused"), "the SuperLink cannot be reached (refused)"),
        (failed(401), "does not know this site's key, or this machine's clock is more than 5 seconds ahead"),
        (expired(), "a certificate that this site does not accept (certificate has expired); ask the coordinator"),
        (failed(412), "still holds this site's last connection, up to a minute"),
        (failed(503, "busy"), "the SuperLink answers 503: busy"),
        (ValueError("Invalid payload"), "no SuperLink, or one of another version (Invalid payload)"),
    ],
)
def test_a_superlink_that_fails_is_tried_again_and_told_of_once(box, link, error, said, caplog, monkeypatch):
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(mailbox.random, "uniform", lambda low, high: 0.0)
    link.hold(letter())
    link.failing = [error] * 4
    assert box.fetch().parts == PARTS
    assert caplog.text.count(said) == 1
    assert "the SuperLink answers again" in caplog.text


def test_who_comes_back_from_being_killed_is_seen_to_be_away(box, link, monkeypatch):
    """Else a letter that its last process took would never come again: the SuperLink takes it for delivered."""
    monkeypatch.setattr(Mailbox, "_pause", lambda self, seconds: link.called.append(seconds))
    monkeypatch.setattr(mailbox.random, "uniform", lambda low, high: low)
    link.failing = [failed(412)] * 2
    with box.opened():
        again = ["ActivateNode", 0] * 2 + ["ActivateNode"]
        assert link.called == [*again, "DeactivateNode", 5.0, "ActivateNode"]


def test_a_site_says_that_it_is_there_until_the_mail_box_is_closed(box, link, monkeypatch):
    monkeypatch.setattr(mailbox, "HEARTBEAT_DEFAULT_INTERVAL", 0.01)
    told, beaten = threading.Event(), []

    failing = [ValueError("no SuperLink"), httpx.ConnectError("gone")]

    def beat(self, request):
        if failing:
            raise failing.pop()
        told.set()
        time.sleep(0.1)  # as long as a call that is under way when the site ends
        beaten.append(request.node.node_id)

    monkeypatch.setattr(Link, "_SendNodeHeartbeat", beat)
    with box.opened():
        assert told.wait(60)
    assert box.closing.is_set()
    assert beaten == [5] * (link.called.count("SendNodeHeartbeat") - 2)


def test_waiting_ends_when_the_mail_box_is_closed(box, link):
    link.failing = [httpx.ConnectError("gone")] * 3
    box.closing.set()
    with pytest.raises(Closed):
        box.fetch()
    link.failing = []
    for error in (httpx.ConnectError("gone"), ValueError("no SuperLink")):
        with box.opened():
            link.failing = [error]
        assert link.called[-1] == "DeactivateNode"


@pytest.mark.parametrize(("address", "root"), [("h:99999", None), ("h:1", "no certificate"), ("h:1", "ä")])
def test_an_address_or_a_certificate_that_is_none_is_told_in_a_sentence(tmp_path, address, root):
    root = make_authority(tmp_path, "trial") if root is None else root
    with pytest.raises(InputError, match=f"{address}"):
        Mailbox(address, root.encode(), new_site_key(), 10_000, print)


class _Untouched(httpx.SyncByteStream):
    """What nobody may read."""

    def __iter__(self):
        raise AssertionError("it was read")


@pytest.fixture
def asking(monkeypatch, tmp_path):
    """Asks a SuperLink that answers by a function for an object, and gives the client that asked."""

    def asked(answer, error, match=None):
        client = httpx.Client
        monkeypatch.setattr(httpx, "Client", lambda **known: client(**known, transport=httpx.MockTransport(answer)))
        box = Mailbox("127.0.0.1:1", make_authority(tmp_path, "trial").encode(), new_site_key(), 10_000, print)
        with pytest.raises(error, match=match):
            box._client.PullObject(PullObjectRequest(object_id="x"))
        return box._client

    return asked


@pytest.mark.parametrize("size", ["9999999999", "", "-1"])
def test_an_answer_of_any_size_is_not_read(asking, size):
    def answer(request):
        headers = {"content-length": size} if size else {}
        return httpx.Response(200, headers=headers, stream=httpx.ByteStream(b"x" * 100))

    client = asking(answer, ValueError, "1058576")
    client._require_bounded(httpx.Response(200, headers={"content-length": "1058576"}))


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "identity"])
def test_what_is_compressed_is_not_read(asking, coding):
    """A few bytes of it may become any number in a site's memory."""
    asked = []

    def answer(request):
        asked.append(request.headers["accept-encoding"])
        return httpx.Response(200, headers={"content-encoding": coding}, stream=_Untouched())

    asking(answer, ValueError, f"'{coding}'")
    assert asked == ["identity"]


def test_a_superlink_writes_no_lines_of_its_own_into_the_log(box, link, caplog):
    link.hold(letter())
    forged = "gone\n2026-11-27 12:00:00 566a8f29ad95 was approved by ada\x1b[2J"
    with box.opened():
        found = box.fetch()
        link.failing = [failed(503, forged)]
        assert box.fetch() is None
        link.failing = [failed(404, forged)]
        box.reply(found, {"sealed": b"s"})
    assert [record.getMessage().isprintable() for record in caplog.records] == [True, True]


def test_it_is_sent_to_no_other_machine(asking):
    asked = []

    def answer(request):
        asked.append(request.url.host)
        return httpx.Response(307, headers={"location": "http://intranet/delete", "content-length": "0"})

    asking(answer, httpx.HTTPStatusError)
    assert asked == ["127.0.0.1"]
