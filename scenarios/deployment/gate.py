"""Starts Flower's SuperLink with a gate before it: from other machines nothing but the interface for sites is reached.

Flower answers all its interfaces at one port. Whoever reaches the one that starts runs has the SuperLink run code of
theirs on its machine; that is for programs of this machine alone.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Served = Callable[[Message, Receive, Send], Awaitable[None]]

FOR_SITES = "/v1/fleet/"
_LAST_CALLS = 2  # seconds for which calls that are open hold up the end
_HERE = ("127.0.0.1", "::1", "::ffff:127.0.0.1")


def gated(served: Served) -> Served:
    """An ASGI application of which other machines reach the paths below `/v1/fleet/` and nothing else."""

    async def gate(scope: Message, receive: Receive, send: Send) -> None:
        client = (scope.get("client") or ("",))[0]
        if scope["type"] == "lifespan" or client in _HERE or str(scope.get("path", "")).startswith(FOR_SITES):
            await served(scope, receive, send)
        elif scope["type"] == "http":
            await send({"type": "http.response.start", "status": 403, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    return gate


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
