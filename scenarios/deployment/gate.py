"""Starts Flower's SuperLink with a gate before it: from other machines nothing but the interface for sites is reached.

Flower answers all its interfaces at one port. Whoever reaches the one that starts runs has the SuperLink run code of
theirs on its machine; that is for programs of this machine alone. And it takes what sites send in any size, into its
memory and that of whoever learns from it: several times as much, so that a site could end both; and letters that reply
to none, as if they were the coordinator's own, as many as its disk holds.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any

from federation.contract.query import CODE

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Served = Callable[[Message, Receive, Send], Awaitable[None]]

FOR_SITES = "/v1/fleet/"
NAMES = f"{FOR_SITES}push-messages"  # where a site says what it will send: a message, and the names of its objects
LONGEST = 8 * CODE.numbers  # bytes of an answer, whatever was asked
OVERHEAD = 2**16  # bytes of what a site sends at a time, beside a letter
LARGEST_NAMES = 1024  # bytes: for a letter it takes half as many, and ten objects have no room
_MOST_DIGITS = 20  # of a length that is read
_LAST_CALLS = 2  # seconds for which calls that are open hold up the end
_HERE = ("127.0.0.1", "::1", "::ffff:127.0.0.1")
_AT_ONCE, _COMING = 32, 60.0  # calls of one address at a time, and seconds until one has come in full
_QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
_UNWANTED = ("FLWR_INTERNAL_GRPC_CONTROL_API", "FLWR_INTERNAL_GRPC_FLEET_API", "FLWR_DATABASE", "FORWARDED_ALLOW_IPS")


def gated(served: Served, longest: int = LONGEST) -> Served:
    """An ASGI application of which other machines reach the paths below `/v1/fleet/` and nothing else.

    What comes there says beforehand how long it is, and is no longer than what sites have to send, whose longest letter
    has so many bytes. It is handed on once it has come in full, of which an address has a minute, and some calls at a
    time; and of letters those alone that reply to one.
    """
    calls: Counter[str] = Counter()

    async def gate(scope: Message, receive: Receive, send: Send) -> None:
        client = (scope.get("client") or ("",))[0]
        path = str(scope.get("path", ""))
        if scope["type"] == "lifespan" or (client in _HERE and not path.startswith(FOR_SITES)):
            await served(scope, receive, send)
            return
        refused = _refused(path, scope, longest + OVERHEAD)
        if refused is None and calls[client] >= _AT_ONCE:
            refused = HTTPStatus.SERVICE_UNAVAILABLE
        if refused is None:
            calls[client] += 1
            try:
                refused, body = await _come(path, receive)
                if refused is None:
                    await served(scope, _again(body, receive), send)
            finally:
                calls[client] -= 1
                if not calls[client]:
                    del calls[client]
        if refused is not None and scope["type"] == "http":
            empty = [(b"content-length", b"0"), (b"connection", b"close")]
            await send({"type": "http.response.start", "status": int(refused), "headers": empty})
            await send({"type": "http.response.body", "body": b""})

    return gate


async def _come(path: str, receive: Receive) -> tuple[HTTPStatus | None, bytes]:
    """What a site sends, in full; or why it is not taken."""
    body, more = bytearray(), True
    try:
        async with asyncio.timeout(_COMING):
            while more:
                part = await receive()
                if part["type"] != "http.request":  # whoever sent it has gone
                    return HTTPStatus.BAD_REQUEST, b""
                body += part.get("body", b"")
                more = part.get("more_body", False)
    except TimeoutError:
        return HTTPStatus.REQUEST_TIMEOUT, b""
    return HTTPStatus.FORBIDDEN if path == NAMES and not _replies(bytes(body)) else None, bytes(body)


def _replies(names: bytes) -> bool:
    """Whether what a site says it will send is a reply: Flower takes all else for letters of the coordinator."""
    from flwr.proto.fleet_pb2 import PushMessagesRequest
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    try:
        messages = PushMessagesRequest.FromString(names).messages_list
    except DecodeError:
        return False
    return len(messages) > 0 and all(message.metadata.reply_to_message_id for message in messages)


def _again(body: bytes, receive: Receive) -> Receive:
    """What gives all that has come once more, and then what comes after it."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Message:
        return waiting.pop() if waiting else await receive()

    return received


def _refused(path: str, scope: Message, largest: int) -> HTTPStatus | None:
    """Why a call is not taken, before any of it is read; None where it is."""
    if scope["type"] != "http" or not path.startswith(FOR_SITES):
        return HTTPStatus.FORBIDDEN
    headers = dict(scope.get("headers", ()))
    length = headers.get(b"content-length", b"")
    if b"transfer-encoding" in headers or not length.isdigit():  # which would count in place of the length
        return HTTPStatus.LENGTH_REQUIRED
    most = LARGEST_NAMES if path == NAMES else largest
    return HTTPStatus.REQUEST_ENTITY_TOO_LARGE if len(length) > _MOST_DIGITS or int(length) > most else None


def main() -> None:
    """Flower's `flower-superlink`, with its arguments; and `--longest-letter`, in bytes, that a site has to send.

    It tells nobody that it is there, and nothing in the environment opens the gate or another port. It may have as many
    connections as this user's processes may have at most.
    """
    os.environ.update(_QUIET)
    for name in _UNWANTED:
        os.environ.pop(name, None)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    import uvicorn
    from flwr.superlink.cli.flower_superlink import flower_superlink

    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--longest-letter", type=int, default=LONGEST)
    known, others = parser.parse_known_args()
    run = uvicorn.run
    uvicorn.run = lambda app, **settings: run(
        gated(app, known.longest_letter), **settings, timeout_graceful_shutdown=_LAST_CALLS
    )
    sys.argv = ["flower-superlink", *others]
    flower_superlink()


if __name__ == "__main__":
    main()
