"""The message queue of a site, on a SuperLink: signed messages are fetched and answered, and none is ever run.

Flower's own node unpacks and imports the app that comes with a submitted run. A site never asks for an app. It fetches
messages, which are bytes, and sends messages back. The installed code of the site reads and answers them.
"""

import hashlib
import logging
import random
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import islice
from typing import Any, TypeVar

import httpx
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.app import ConfigRecord, Error, Message, RecordDict
from flwr.app.message.message import remove_content_from_message
from flwr.common.constant import HEARTBEAT_DEFAULT_INTERVAL, ErrorCode
from flwr.common.serde import message_from_proto, message_to_proto
from flwr.proto.fleet_pb2 import ActivateNodeRequest, DeactivateNodeRequest, PullMessagesRequest, PushMessagesRequest
from flwr.proto.heartbeat_pb2 import SendNodeHeartbeatRequest
from flwr.proto.message_pb2 import ConfirmMessageReceivedRequest, PullObjectRequest, PushObjectRequest
from flwr.proto.node_pb2 import Node
from flwr.supercore.inflatable.inflatable_object import (
    get_all_nested_objects,
    get_object_tree,
    iterate_object_tree,
    no_object_id_recompute,
)
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents
from flwr.supercore.interceptors.http.runtime_version import RuntimeVersionHttpInterceptor
from flwr.supercore.primitives.asymmetric import public_key_to_bytes
from flwr.supernode.fleet_http_client import FleetHttpClient
from flwr.supernode.node_auth_http_interceptor import NodeAuthHttpInterceptor

from federation.contract.errors import InputError
from federation.signed_messages.messages import LETTER
from parties.site.accounts import printable

T = TypeVar("T")

REFUSED = "refused"  # all that is told of a message that is no letter

_MOST_OBJECTS = 8  # of one message: itself, its content, the letter
_OVERHEAD = 2**20  # bytes of what the SuperLink sends at a time, beside a letter
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 30.0  # seconds before the next try at a SuperLink that does not answer
_UNKNOWN_WAIT = 10.0  # seconds before the next try where it does not know this key
_COMING = 60.0  # seconds that what has begun to come may take
_AWAY = 5.0  # seconds within which a coordinator notices that a site is away
_UNKNOWN = (
    "the SuperLink does not know this site's key, or this machine's clock is more than 5 seconds ahead of its or 5 "
    "minutes behind it"
)
_UNREACHED = "the SuperLink cannot be reached ({})"
_UNTRUSTED = (
    "the SuperLink shows a certificate that this site does not accept ({}); ask the coordinator whether it has expired "
    "and whether the clocks of both machines agree"
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Letter:
    """What came: named bytes of which nothing has been believed, and the message to reply to."""

    parts: Mapping[str, bytes]
    message: Message


_FAILS = (httpx.HTTPError, ValueError)  # what a call raises that is not answered, or not as a SuperLink does
_NO_LETTER = (ValueError, LookupError, TypeError, AttributeError, RecursionError)  # what reading a message raises


class Closed(Exception):
    """The mail box was closed while it waited."""


class _Lost(ValueError):
    """The SuperLink takes or gives no more of a message, as where the run that it is of was stopped."""


class _Client(FleetHttpClient):  # type: ignore[misc, unused-ignore]  # flwr is not typed
    """Flower's, which reads no answer of more than `most` bytes: whoever submits runs may send one of any size.

    Nor one that is compressed, of which some bytes may become any number. And it goes nowhere else: whoever runs the
    SuperLink could send it to other machines of the site's own network.
    """

    most = _OVERHEAD

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._client.headers["accept-encoding"] = "identity"
        self._client.event_hooks = {"response": [self._require_bounded]}
        self._client.follow_redirects = False

    def _require_bounded(self, response: httpx.Response) -> None:
        """Refuse an answer before it is read. Raises `_Lost`."""
        if coding := response.headers.get("content-encoding"):
            raise _Lost(f"the SuperLink sends what is compressed ({coding!r:.40}), and was asked not to")
        size = response.headers.get("content-length", "")
        if not size.isdecimal() or int(size) > self.most:
            raise _Lost(f"the SuperLink sends {size or 'an unknown number of'} bytes, more than {self.most}")


@dataclass
class _Coming:
    """A message of which some objects may be on their way, until a time of the clock that never goes back."""

    message: Message
    identifiers: list[str]
    until: float
    contents: dict[str, bytes] = field(default_factory=dict)

    @property
    def held(self) -> int:
        """Bytes that have come."""
        return sum(map(len, self.contents.values()))


class Mailbox:
    """The connection of one key to a SuperLink, at `address` (HOST:PORT) behind the certificate authority `root` (PEM).

    `most` is the largest letter in bytes, and `refused` is told why a message is none. A call that cannot reach the
    SuperLink tries again until `closing` is set, and raises `Closed` then. Raises `InputError` for an address or a
    certificate that is none.
    """

    def __init__(
        self, address: str, root: bytes, key: ec.EllipticCurvePrivateKey, most: int, refused: Callable[[str], None]
    ) -> None:
        self._most, self._refused = most, refused
        self.closing = threading.Event()
        self._public = public_key_to_bytes(key.public_key())
        interceptors = [RuntimeVersionHttpInterceptor("SuperNode"), NodeAuthHttpInterceptor(key, key.public_key())]
        try:
            if not 0 < (httpx.URL(f"https://{address}").port or 443) < 1 << 16:
                raise ValueError("its port is none")
            self._client = _Client.from_server_address(address, False, root, interceptors)
        except (httpx.InvalidURL, OSError, ValueError) as error:
            raise InputError(
                f"the SuperLink's address {address:.80} or its certificate is none ({error!s:.100}); correct "
                "connection.superlink or connection.root, or ask the plan's coordinator"
            ) from error
        self._client.most = most + _OVERHEAD
        self._node = Node()
        self._coming: list[_Coming] = []
        self._lost = ""  # why a reply could not be delivered, last
        self._held = False  # whether the SuperLink still had a connection of a process that is gone

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Be there for the SuperLink as long as this lasts; it then knows at once that the site has gone."""
        self._activate()
        if self._held:  # letters that the last process took are sent again to a site only that was seen to be away
            self._tried(self._client.DeactivateNode, DeactivateNodeRequest(node_id=self._node.node_id))
            self._pause(_AWAY)
            self._activate()
        beating = threading.Thread(target=self._beat, daemon=True)
        beating.start()
        try:
            yield
        finally:
            self.closing.set()
            with suppress(*_FAILS):
                self._client.DeactivateNode(DeactivateNodeRequest(node_id=self._node.node_id))
            beating.join()

    def _activate(self) -> None:
        request = ActivateNodeRequest(public_key=self._public, heartbeat_interval=HEARTBEAT_DEFAULT_INTERVAL)
        self._node = Node(node_id=self._tried(self._client.ActivateNode, request).node_id)

    def fetch(self) -> Letter | None:
        """The next letter, or None where none has come in full; what is no letter is refused and not handed on.

        Nobody waits for what has not come in full: whoever sends half a message would hold up all others.
        """
        try:
            pulled = self._tried(self._client.PullMessages, PullMessagesRequest(node=self._node))
            for message, tree in zip(pulled.messages_list, pulled.message_object_trees, strict=True):
                identifiers = [each.object_id for each in islice(iterate_object_tree(tree), _MOST_OBJECTS + 1)]
                self._coming.append(_Coming(message_from_proto(message), identifiers, time.monotonic() + _COMING))
        except _NO_LETTER as error:
            self._refused(f"a message that is no letter ({error})")
        for one in [*self._coming]:
            if (letter := self._completed(one)) is not None:
                return letter
        return None

    def reply(self, letter: Letter, parts: Mapping[str, bytes]) -> None:
        """Send a letter back."""
        self._push(Message(RecordDict({LETTER: ConfigRecord(dict(parts))}), reply_to=letter.message))

    def _completed(self, one: _Coming) -> Letter | None:
        """The letter in a message; None where that has not all come, or is none, which whoever sent it is told."""
        try:
            if not self._come(one):
                return None
            parts = _letter(one.message.metadata.message_id, one.contents)
        except _NO_LETTER as error:
            self._coming.remove(one)
            self._refused(f"a message that is no letter ({error})")
            self._push(Message(Error(ErrorCode.CLIENT_APP_RAISED_EXCEPTION, REFUSED), reply_to=one.message))
            return None
        self._coming.remove(one)
        metadata = one.message.metadata
        received = ConfirmMessageReceivedRequest(
            node=self._node, run_id=metadata.run_id, message_object_id=metadata.message_id
        )
        with suppress(_Lost):
            self._tried(self._client.ConfirmMessageReceived, received, of_a_message=True)
        return Letter(parts, one.message)

    def _come(self, one: _Coming) -> bool:
        """Fetch what is there of a message; whether that is all. Raises `ValueError` beyond the bounds."""
        if len(one.identifiers) > _MOST_OBJECTS:
            raise ValueError(f"more than {_MOST_OBJECTS} objects")
        for identifier in one.identifiers:
            if identifier in one.contents:
                continue
            request = PullObjectRequest(node=self._node, run_id=one.message.metadata.run_id, object_id=identifier)
            pulled = self._tried(self._client.PullObject, request, of_a_message=True)
            if not pulled.object_found or time.monotonic() > one.until:
                raise ValueError("an object that never came")
            if not pulled.object_available:
                if sum(each.held for each in self._coming) > self._most:
                    raise ValueError(f"with others that have come in part more than {self._most} bytes")
                return False
            content: bytes = pulled.object_content
            one.contents[identifier] = content
            if one.held > self._most:
                raise ValueError(f"more than {self._most} bytes, which no letter of the plan has")
            if hashlib.sha256(content).hexdigest() != identifier:
                raise ValueError("an object is not what it is called")
        return True

    def _push(self, message: Message) -> None:
        """Send a message; what cannot be delivered is given up, and sent again when it is asked for again."""
        try:
            self._pushed(message)
        except _Lost as error:
            if str(error) != self._lost:  # once: whoever may submit runs could fill the log
                _log.warning(
                    "a reply could not be delivered (%s); it is sent when it is asked for again", printable(str(error))
                )
            self._lost = str(error)

    def _pushed(self, message: Message) -> None:
        with no_object_id_recompute():
            message.metadata.__dict__["_message_id"] = message.object_id
            objects, tree = get_all_nested_objects(message), get_object_tree(message)
        pushed = self._tried(
            self._client.PushMessages,
            PushMessagesRequest(
                node=self._node,
                messages_list=[message_to_proto(remove_content_from_message(message))],
                message_object_trees=[tree],
                clientapp_runtime_list=[0.0],
            ),
            of_a_message=True,
        )
        for identifier in pushed.objects_to_push:
            request = PushObjectRequest(
                node=self._node,
                run_id=message.metadata.run_id,
                object_id=identifier,
                object_content=objects[identifier].deflate(),
                session_id=pushed.session_id,
            )
            self._tried(self._client.PushObject, request, of_a_message=True)

    def _beat(self) -> None:
        request = SendNodeHeartbeatRequest(node=self._node, heartbeat_interval=HEARTBEAT_DEFAULT_INTERVAL)
        while not self.closing.wait(HEARTBEAT_DEFAULT_INTERVAL * random.uniform(0.7, 0.9)):
            with suppress(*_FAILS):
                self._client.SendNodeHeartbeat(request)

    def _pause(self, seconds: float) -> None:
        if self.closing.wait(seconds):
            raise Closed

    def _tried(self, call: Callable[[object], T], request: object, of_a_message: bool = False) -> T:
        """Call, again and again while that fails for reasons that pass. Raises `_Lost` where a message is refused."""
        wait, known = _FIRST_WAIT, ""
        while True:
            try:
                found = call(request)
                if known:
                    _log.info("the SuperLink answers again")
                return found
            except httpx.TransportError as error:
                cause = (_UNTRUSTED if _of_a_certificate(error) else _UNREACHED).format(error)
            except _Lost:
                raise
            except ValueError as error:  # as Flower's client does for what is no answer
                cause = f"what listens there is no SuperLink, or one of another version ({error})"
            except httpx.HTTPStatusError as error:
                code = error.response.status_code
                if of_a_message and HTTPStatus.BAD_REQUEST <= code < HTTPStatus.INTERNAL_SERVER_ERROR:
                    raise _Lost(f"the SuperLink answers {code}: {error.response.text[:200]}") from error
                if code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
                    cause, wait = _UNKNOWN, _UNKNOWN_WAIT
                elif code == HTTPStatus.PRECONDITION_FAILED:
                    cause, wait = "the SuperLink still holds this site's last connection, up to a minute", 5.0
                    self._held = True
                else:
                    cause = f"the SuperLink answers {code}: {error.response.text[:200]}"
            if cause != known:  # once: it may last for days
                _log.warning("%s; trying again until it changes", printable(cause))
            known = cause
            self._pause(random.uniform(0, wait))
            wait = min(2 * wait, _LONGEST_WAIT)


def _of_a_certificate(error: BaseException | None) -> bool:
    """Whether it goes back to a certificate that is not accepted."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error is not None


def _letter(identifier: str, contents: dict[str, bytes]) -> dict[str, bytes]:
    """The letter in a message. Raises `ValueError` for any other message, and as Flower does for what is none."""
    message = inflate_object_from_contents(identifier, contents)
    if not isinstance(message, Message) or not message.has_content():
        raise ValueError("no content")
    records = message.content
    if list(records) != [LETTER] or not isinstance(records[LETTER], ConfigRecord):
        raise ValueError("other records")
    parts = dict(records[LETTER])
    if not all(isinstance(part, bytes) for part in parts.values()):
        raise ValueError("a part that is not bytes")
    return parts
