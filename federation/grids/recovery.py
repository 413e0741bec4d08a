"""After a node has twice killed its worker: its parties are served in ever smaller parts, to lose the culprit only.

One party's data must never decide whether another party is counted; a cohort lost as a whole would do just that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from flwr.app import Context, Error, Message, RecordDict
from flwr.common.constant import ErrorCode

from federation.grids.codec import merge_submissions
from federation.grids.nodes import halves

DIED = "the worker process died while serving this party"


@dataclass
class Recovery:
    """Collects the partial replies to one node's messages until no part is outstanding."""

    messages: list[Message]
    outstanding: int = 1
    _parts: list[list[RecordDict]] = field(default_factory=list)
    _failures: dict[int, str] = field(default_factory=dict)

    def divide(self, context: Context) -> list[Context]:
        """The halves to serve instead of `context`, none when its only party is lost for good."""
        parts = halves(context)
        self.outstanding += len(parts) - 1
        if not parts:
            self._lose(context, DIED)
        return parts

    def add(self, context: Context, replies: Iterable[Message]) -> None:
        """Keep one part's replies; an error loses the parties of the part."""
        self.outstanding -= 1
        known = list(replies)
        reasons = [str(reply.error.reason) for reply in known if reply.has_error()]
        if reasons:
            self._lose(context, reasons[0])
        else:
            self._parts.append([reply.content for reply in known])

    def replies(self) -> list[Message]:
        """One reply per message, once nothing is outstanding."""
        if not self._parts:
            error = Error(ErrorCode.CLIENT_APP_CRASHED, next(iter(self._failures.values())))
            return [Message(error, reply_to=message) for message in self.messages]
        return [
            Message(merge_submissions([part[number] for part in self._parts], self._failures), reply_to=message)
            for number, message in enumerate(self.messages)
        ]

    def _lose(self, context: Context, reason: str) -> None:
        first, count = int(context.node_config["first-party"]), int(context.node_config["parties"])
        self._failures.update(dict.fromkeys(range(first, first + count), reason))
