"""Starts Flower's SuperLink with a gate before it: from other machines nothing but the interface for sites is reached.

Flower answers all its interfaces at one port. Whoever reaches the one that starts runs has the SuperLink run code of
theirs on its machine; that is for programs of this machine alone. And it takes what sites send in any size, into its
memory and that of whoever learns from it.
"""

from __future__ import annotations

import sys
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
LARGEST = 8 * CODE.numbers + 2**20  # bytes that a site sends at a time: those of the longest answer
LARGEST_NAMES = 1024  # bytes: for a letter it takes half as many, and ten objects have no room
_MOST_DIGITS = 20  # of a length that is read
_LAST_CALLS = 2  # seconds for which calls that are open hold up the end
_HERE = ("127.0.0.1", "::1", "::ffff:127.0.0.1")


def gated(served: Served) -> Served:
    """An ASGI application of which other machines reach the paths below `/v1/fleet/` and nothing else.

    What comes there says beforehand how long it is, and is no longer than what sites have to send.
    """

    async def gate(scope: Message, receive: Receive, send: Send) -> None:
        client = (scope.get("client") or ("",))[0]
        path = str(scope.get("path", ""))
        refused = None
        if scope["type"] != "lifespan" and path.startswith(FOR_SITES):
            refused = _refused(path, scope)
        elif scope["type"] != "lifespan" and client not in _HERE:
            refused = HTTPStatus.FORBIDDEN
        if refused is None:
            await served(scope, receive, send)
        elif scope["type"] == "http":
            await send({"type": "http.response.start", "status": int(refused), "headers": []})
            await send({"type": "http.response.body", "body": b""})

    return gate


def _refused(path: str, scope: Message) -> HTTPStatus | None:
    """Why a call of a site is not taken; None where it is."""
    headers = dict(scope.get("headers", ()))
    length = headers.get(b"content-length", b"")
    if b"transfer-encoding" in headers or not length.isdigit():  # which would count in place of the length
        return HTTPStatus.LENGTH_REQUIRED
    most = LARGEST_NAMES if path == NAMES else LARGEST
    return HTTPStatus.REQUEST_ENTITY_TOO_LARGE if len(length) > _MOST_DIGITS or int(length) > most else None


def main() -> None:
    """Flower's `flower-superlink`, with its arguments."""
    import uvicorn
    from flwr.superlink.cli.flower_superlink import flower_superlink

    run = uvicorn.run
    uvicorn.run = lambda app, **settings: run(gated(app), **settings, timeout_graceful_shutdown=_LAST_CALLS)
    sys.argv[0] = "flower-superlink"
    flower_superlink()


if __name__ == "__main__":
    main()
