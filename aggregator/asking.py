"""Puts questions to all nodes of a grid and hands every answer to its collector as it arrives."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from flwr.serverapp import Grid

from federation.errors import FederationError, QuorumError
from federation.grids.codec import decode_submission, encode_question
from federation.messages import Question, Submission

_PAUSE = 0.005  # seconds between pulls that brought nothing


class Collector(Protocol):
    """Where the answers to one question go."""

    @property
    def answered(self) -> int:
        """Number of parties whose answer was accepted."""
        ...

    def add(self, submission: Submission) -> dict[int, str]:
        """Take a submission in; returns the refused parties and why."""
        ...


def ask(grid: Grid, asked: Sequence[tuple[Question, Collector]], timeout: float | None) -> dict[str, int]:
    """Ask every question at every node; returns how many parties or nodes failed, by cause.

    A node that errs, answers out of form or stays silent for `timeout` seconds costs its own parties only; whether
    enough parties answered is for `require_quorum` to say.
    """
    causes: Counter[str] = Counter()
    contents = [encode_question(question) for question, _ in asked]
    pending: dict[str, int] = {}
    for node in sorted(grid.get_node_ids()):
        for number, (question, _) in enumerate(asked):
            message = grid.create_message(contents[number], f"query.{question.kind}", node, group_id="")
            [identifier] = grid.push_messages([message])
            pending[identifier] = number
    deadline = None if timeout is None else time.monotonic() + timeout
    while pending:
        replies = list(grid.pull_messages(list(pending)))
        for reply in replies:
            question, collector = asked[pending.pop(reply.metadata.reply_to_message_id)]
            if reply.has_error():
                causes[f"node failed: {reply.error.reason}"] += 1
                continue
            try:
                submission = decode_submission(reply.content, question.fields())
                refused = collector.add(submission)
            except FederationError as error:
                causes[f"answer refused: {error}"] += 1
                continue
            causes.update([*submission.failures.values(), *refused.values()])
        if deadline is not None and pending and time.monotonic() > deadline:
            causes[f"node silent for {timeout:g} seconds"] += len(pending)
            break
        if not replies:
            time.sleep(_PAUSE)
    return dict(causes)


def require_quorum(answered: int, parties: int, quorum: float, causes: dict[str, int]) -> None:
    """Raise `QuorumError` when fewer than the fraction `quorum` of the declared parties answered."""
    if answered >= quorum * parties and answered > 0:
        return
    worst = "; ".join(f"{count} x {cause}" for cause, count in Counter(causes).most_common(3))
    raise QuorumError(
        f"{answered} of {parties} parties answered, parties.quorum needs {quorum:g} of them"
        + (f" ({worst})" if worst else "")
    )
