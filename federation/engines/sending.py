"""Sending a query to all nodes of a grid: each response goes to its collector as it arrives, and failures are counted.

`Failures` records which parties could not be counted: one line per cause, with its number of occurrences.
"""

import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from flwr.app import Message
from flwr.serverapp import Grid

from federation.contract.errors import InputError, QuorumError
from federation.contract.query import Collector, Question
from federation.engines.codec import decode_submission, encode_question

_PAUSE = 0.005  # seconds between pulls that brought nothing
_LISTED = 3  # causes of failures on one line


@dataclass(frozen=True)
class Asking:
    """How a world asks: node n serves the parties (n-1)*per_node to n*per_node - 1 and may name no others.

    `timeout` in seconds ends the run when it passes before all nodes have replied: dropping the silent ones would
    let one slow party decide who is counted.
    """

    parties: int
    parties_per_node: int
    timeout: float | None

    def ask(self, grid: Grid, asked: Sequence[tuple[Question, Sequence[Collector]]], failures: "Failures") -> None:
        """Ask every question at every node, for all its collectors, and note in `failures` which parties failed.

        A node that errs or answers out of form costs its own parties only; whether enough parties answered is for
        `require_quorum` to say. Raises `QuorumError` at the time limit.
        """
        contents = [encode_question(question) for question, _ in asked]
        pending: dict[str, tuple[int, int]] = {}
        for node in sorted(grid.get_node_ids()):
            for number, (question, _) in enumerate(asked):
                message = grid.create_message(contents[number], f"query.{question.kind}", node, group_id="")
                [identifier] = grid.push_messages([message])
                pending[identifier] = (node, number)
        deadline = None if self.timeout is None else time.monotonic() + self.timeout
        while pending:
            replies = list(grid.pull_messages(pending.keys()))
            for reply in replies:
                node, number = pending.pop(reply.metadata.reply_to_message_id)
                self._take(reply, node, *asked[number], failures)
            if deadline is not None and pending and time.monotonic() > deadline:
                silent = len({node for node, _ in pending.values()})
                raise QuorumError(
                    f"engine.timeout of {self.timeout:g} seconds has passed before all nodes replied ({silent} had "
                    "not); nothing is released, as leaving out slow parties would not be private; raise it or set it "
                    "to null"
                )
            if not replies:
                time.sleep(_PAUSE)

    def _served(self, node: int) -> range:
        first = (node - 1) * self.parties_per_node
        return range(first, min(first + self.parties_per_node, self.parties))

    def _take(
        self, reply: Message, node: int, question: Question, collectors: Sequence[Collector], failures: "Failures"
    ) -> None:
        """Hand a reply to the question's collectors, and note what failed.

        Here answers cross to the aggregator, which believes nothing of them: a node may answer for its own parties
        only, in the declared form, and what its parties sent is for each collector to accept or refuse.
        """
        served = self._served(node)
        if reply.has_error():
            failures.add(served, str(reply.error.reason))
            return
        try:
            submission = decode_submission(reply.content, question.fields())
            if ((submission.parties < served.start) | (submission.parties >= served.stop)).any():
                raise InputError("a node answered for parties that it does not serve")
            refused: dict[int, str] = {}
            for collector in collectors:
                refused.update(collector.add(submission))
        except Exception as error:  # whatever a hostile node sends, it must not end the run
            failures.add(served, f"answer refused: {error if isinstance(error, InputError) else type(error).__name__}")
            return
        for party, cause in {**refused, **submission.failures}.items():
            if party in served:
                failures.add([party], cause)


def require_quorum(answered: int, parties: int, quorum: float, causes: Mapping[str, int]) -> None:
    """Raise `QuorumError` when fewer than the fraction `quorum` of the declared parties answered.

    Examples:
        >>> require_quorum(9, 10, 0.8, {})
        >>> require_quorum(7, 10, 0.8, {"dropped out": 3})
        Traceback (most recent call last):
        federation.contract.errors.QuorumError: 7 of 10 parties answered, parties.quorum needs 0.8 of them
        (3 x dropped out)
    """
    if answered >= quorum * parties and answered > 0:
        return
    worst = describe(causes)
    raise QuorumError(
        f"{answered} of {parties} parties answered, parties.quorum needs {quorum:g} of them"
        + (f" ({worst})" if worst else "")
    )


_LONGEST_CAUSE = 200
_NAMED = re.compile(r"\bparty \d+\b")


class Failures:
    """The first cause of each failed party.

    `verbose` keeps the texts of causes, which in a simulation help and in a deployment could quote what a party holds.

    Examples:
        >>> failures = Failures(verbose=True)
        >>> failures.add([1, 2], "dropped out")
        >>> failures.add([2], "too late")
        >>> failures.causes()
        {'dropped out': 2}
    """

    def __init__(self, verbose: bool) -> None:
        self._verbose = verbose
        self._causes: dict[int, str] = {}

    def add(self, parties: Iterable[int], cause: str) -> None:
        """These parties failed for this cause, unless they failed before."""
        text = " ".join(cause.split())[:_LONGEST_CAUSE] if self._verbose else "no usable answer"
        for party in parties:
            self._causes.setdefault(party, text)

    def causes(self) -> dict[str, int]:
        """Number of parties by cause, the most frequent first; what names single parties counts as one cause."""
        texts: defaultdict[str, list[str]] = defaultdict(list)
        for text in self._causes.values():
            texts[_NAMED.sub("a party", text)].append(text)
        counts = {(same[0] if len(same) == 1 else common): len(same) for common, same in texts.items()}
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def describe(causes: Mapping[str, int]) -> str:
    """The most frequent causes on one line: `30 x dropped out; 7 x no rows; 3 x disk full; 2 for other reasons`.

    Examples:
        >>> describe({"dropped out": 30, "no rows": 7, "disk full": 3, "no memory": 2})
        '30 x dropped out; 7 x no rows; 3 x disk full; 2 for other reasons'
    """
    listed = Counter(causes).most_common(_LISTED)
    texts = [f"{count} x {cause}" for cause, count in listed]
    if rest := sum(causes.values()) - sum(count for _, count in listed):
        texts.append(f"{rest} for other reasons")
    return "; ".join(texts)
