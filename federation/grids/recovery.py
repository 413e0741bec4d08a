"""The messages to one node until every part of it has replied: one part, unless the node keeps killing its worker.

Its parties are then served in ever smaller parts, to lose the culprit only: one party's data must never decide whether
another party is counted, and a cohort lost as a whole would do just that.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from flwr.app import Context, Error, Message
from flwr.common.constant import ErrorCode

from federation.grids.codec import merge_submissions
from federation.grids.nodes import halves

DIED = "the worker process died while serving this party"


@dataclass
class Recovery:
    """Collects the replies to one node's messages until no part is outstanding."""

    messages: list[Message]
    outstanding: int = 1
    divided: bool = False
    _parts: list[list[Message]] = field(default_factory=list)
    _failures: dict[int, str] = field(default_factory=dict)

    def divide(self, context: Context) -> list[Context]:
        """The halves to serve instead of `context`, none when its only party is lost for good."""
        parts, self.divided = halves(context), True
        self.outstanding += len(parts) - 1
        if not parts:
            self._lose(context, DIED)
        return parts

    def add(self, context: Context, replies: list[Message]) -> None:
        """Keep one part's replies; of a divided node an error loses the parties of the part."""
        self.outstanding -= 1
        error = next((reply.error for reply in replies if reply.has_error()), None)
        if self.divided and error is not None:
            self._lose(context, str(error.reason))
        else:
            self._parts.append(replies)

    def replies(self) -> list[Message]:
        """One reply per message, once nothing is outstanding; those of an undivided node as they are."""
        if not self.divided:
            return self._parts[0]
        if not self._parts:
            error = Error(ErrorCode.CLIENT_APP_CRASHED, next(iter(self._failures.values())))
            return [Message(error, reply_to=message) for message in self.messages]
        return [
            Message(merge_submissions([part[number].content for part in self._parts], self._failures), reply_to=message)
            for number, message in enumerate(self.messages)
        ]

    def _lose(self, context: Context, reason: str) -> None:
        first, count = int(context.node_config["first-party"]), int(context.node_config["parties"])
        self._failures.update(dict.fromkeys(range(first, first + count), reason))
