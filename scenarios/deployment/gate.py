"""Starts Flower's SuperLink with a gate before it: from other machines nothing but the interface for sites is reached.

Flower answers all its interfaces at one port. Whoever reaches the one that starts runs has the SuperLink run code of
theirs on its machine; that is for programs of this machine alone. And it takes what sites send in any size, into its
memory and that of whoever learns from it: several times as much, so that a site could end both.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any

from federation.contract.limits import CODE

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


def gated(served: Served, longest: int = LONGEST) -> Served:
    """An ASGI application of which other machines reach the paths below `/v1/fleet/` and nothing else.

    What comes there says beforehand how long it is, and is no longer than what sites have to send, whose longest letter
    has so many bytes.
    """

    async def gate(scope: Message, receive: Receive, send: Send) -> None:
        client = (scope.get("client") or ("",))[0]
        path = str(scope.get("path", ""))
        refused = None
        if scope["type"] != "lifespan" and path.startswith(FOR_SITES):
            refused = _refused(path, scope, longest + OVERHEAD)
        elif scope["type"] != "lifespan" and client not in _HERE:
            refused = HTTPStatus.FORBIDDEN
        if refused is None:
            await served(scope, receive, send)
        elif scope["type"] == "http":
            empty = [(b"content-length", b"0")]
            await send({"type": "http.response.start", "status": int(refused), "headers": empty})
            await send({"type": "http.response.body", "body": b""})

    return gate


def _refused(path: str, scope: Message, largest: int) -> HTTPStatus | None:
    """Why a call of a site is not taken; None where it is."""
    headers = dict(scope.get("headers", ()))
    length = headers.get(b"content-length", b"")
    if b"transfer-encoding" in headers or not length.isdigit():  # which would count in place of the length
        return HTTPStatus.LENGTH_REQUIRED
    most = LARGEST_NAMES if path == NAMES else largest
    return HTTPStatus.REQUEST_ENTITY_TOO_LARGE if len(length) > _MOST_DIGITS or int(length) > most else None


def main() -> None:
    """Flower's `flower-superlink`, with its arguments; and `--longest-letter`, in bytes, that a site has to send."""
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
