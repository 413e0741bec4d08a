"""Replies of a ClientApp: what goes wrong at a node becomes an error reply with a one-line reason, on every grid."""

from __future__ import annotations

from flwr.app import Context, Error, Message
from flwr.clientapp import ClientApp
from flwr.common.constant import ErrorCode

from federation.contract.errors import FederationError

PREPARE = "prepare"  # the query with which a grid asks a process to load what a node serves, ahead of any question


def failed(message: Message, error: Exception) -> Message:
    """The reply of a node that could not answer, with the error's text: no more than a simulation's user may read."""
    reason = str(error) if isinstance(error, FederationError) else f"{type(error).__name__}: {error}".splitlines()[0]
    return Message(Error(ErrorCode.CLIENT_APP_RAISED_EXCEPTION, reason), reply_to=message)


def handle(app: ClientApp, message: Message, context: Context) -> Message:
    """The app's reply; an exception becomes an error reply, as in a deployment."""
    try:
        return app(message, context)
    except Exception as error:  # a party's app may fail in any way; the aggregator must hear of it
        return failed(message, error)
