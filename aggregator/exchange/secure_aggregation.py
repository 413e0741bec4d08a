"""Secure aggregation between real sites: each message of the masked sum is one round of signed messages.

`LetterSums` carries out all sums of an exchange. An interrupted sum continues where it stopped. Its plan, its messages,
the replies and the list of present sites are on disk before the next message is sent. No site therefore ever receives
two different messages in one place.

With a helper server, the coordinator asks it once for the sum of the masks of one list of sites (`unmasked`).
"""

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn, Protocol, cast

import numpy as np
from flwr.app import Message
from flwr.serverapp import Grid

from aggregator.exchange.exchange import LEFT_OUT, QUESTION, REPLY, Exchange, first_asked
from aggregator.exchange.message_engine import LetterGrid
from aggregator.secure_aggregation.server import AddingServer, MaskedSum, Total
from federation.contract.errors import InputError, QuorumError
from federation.contract.files import read_object, write_lasting
from federation.contract.query import Collector, PrivateQuestion, Question, Submission
from federation.engines.sending import Failures
from federation.numerics.rows import Integers
from federation.secure_aggregation.masks import Words
from federation.secure_aggregation.messages import KEYS, MASKED, queries
from federation.secure_aggregation.plan import SumPlan
from federation.signed_messages.aggregation_messages import (
    LEAVE,
    MASKS,
    SUM,
    SumAnswer,
    SumQuery,
    read_opened,
    roster_of,
    sum_plan,
)
from federation.signed_messages.agreement import Agreement
from federation.signed_messages.messages import kind_of, question_packet

SUMS = "sums"  # folder of an exchange, in which each sum has one
OVER, CLOSED = "over.json", ".closed"  # files of a sum; the second after the number of a query

_QUESTION, _PLAN, _LEAVING = "asked.packet", "sum.plan", "leaving"
_GOODBYE = 20.0  # seconds that sites have to hear that a sum is over


class SumCollector(Collector, Protocol):
    """Takes the total of a sum, and what the sites in it say openly."""

    def refused(self, opened: Submission) -> Mapping[int, str]:
        """Whose open answers cannot be taken, and why."""

    def take_total(self, opened: Submission, whole: Integers) -> None:
        """The sum of all integers."""


class LetterSums:
    """All sums of an exchange, in the order in which they are asked for; the parameters are those of `LetterGrid`.

    A second server's is the last of the nodes.
    """

    def __init__(self, grid: Grid, exchange: Exchange, nodes: Sequence[int], patience: float, wait: float) -> None:
        self._grid, self._exchange, self._nodes, self.patience = grid, exchange, nodes, patience
        self._end = time.monotonic() + wait
        self.roster = roster_of(exchange.agreement)
        self._sums = 0

    def ask(self, question: Question, collectors: Sequence[Collector], failures: Failures) -> None:
        """One sum over all sites, for all collectors of a question; notes in `failures` who is not in it, and why.

        Raises `QuorumError` where too few are there. Once more than keys was asked for the sum is then over for good,
        and sites are told to destroy what they know of it.
        """
        folder = self._exchange.folder / SUMS / f"{self._sums:05d}"
        self._sums += 1
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if (folder / OVER).exists():
            raise QuorumError(read_object(folder / OVER, _AGAIN)["why"])
        taking, own = [cast(SumCollector, one) for one in collectors], replace(self._exchange, folder=folder)
        _Sum(self, own, cast(PrivateQuestion, question), taking, failures).carry_out()

    def letters(self, exchange: Exchange, patience: float) -> LetterGrid:
        """A grid for the letters of one sum, which have a folder of their own."""
        return LetterGrid(self._grid, exchange, self._nodes, patience, self._end - time.monotonic())


class _Sum:
    """One sum over the sites. It begins, or continues after an interruption from the files of its folder."""

    def __init__(
        self,
        sums: LetterSums,
        exchange: Exchange,
        question: PrivateQuestion,
        collectors: Sequence[SumCollector],
        failures: Failures,
    ) -> None:
        self._sums, self._exchange, self._collectors, self._failures = sums, exchange, collectors, failures
        self._question, self._folder = question, exchange.folder
        self._packet = first_asked(
            self._folder / _QUESTION, question_packet(question), "a secure sum of this exchange was one for"
        )
        path, roster = self._folder / _PLAN, sums.roster
        if not path.exists():
            write_lasting(path, sum_plan(exchange.agreement, roster, self._packet, question.hidden_numbers).packed())
        self._plan = SumPlan.read(path.read_bytes())
        self._server = (AddingServer if self._plan.second else MaskedSum)(self._plan, roster)
        self._opened: dict[int, Submission] = {}

    def carry_out(self) -> None:
        """Ask all queries, and hand the total over."""
        with closing(self._sums.letters(self._exchange, self._sums.patience)) as letters:
            total = self._total(letters)
        counted = np.flatnonzero(total.counted)
        said = [self._opened[site] for site in counted.tolist()]
        arrays = {name: np.concatenate([one.arrays[name] for one in said]) for name in said[0].arrays}
        for collector in self._collectors:
            collector.take_total(replace(said[0], parties=counted, arrays=arrays), total.values)

    def _total(self, letters: LetterGrid) -> Total:
        """The sum, and who is in it. Raises `QuorumError`s, after which it is over, or can be gone on with."""
        try:
            while (query := self._server.query) is not None:
                self._ask(letters, query)
            if isinstance(self._server, MaskedSum):
                return self._server.total()
        except QuorumError as error:
            if self._server.query == KEYS:
                raise QuorumError(f"{error}; collect again once more sites are there") from error
            self._give_up(str(error))
        return self._server.total(unmasked(letters, self._server, self._exchange.agreement))

    def _ask(self, letters: LetterGrid, query: int) -> None:
        """One query, of everybody who is still there; where it was closed before, of nobody."""
        record = self._folder / f"{query}{CLOSED}"
        closed = set(read_object(record, _AGAIN)["sites"]) if record.exists() else None
        asked, brought = dict(self._server.questions()), self._packet if query == KEYS else b""
        # All sites have one, so that each has the same place in the exchange whoever is there.
        messages = [
            sum_message(letters, SumQuery(query, self._plan.digest, asked.get(site, b""), brought), site)
            for site in range(self._plan.parties)
        ]
        sites = [site for site in asked if closed is None or site in closed]
        pending = dict(zip(letters.push_messages([messages[site] for site in sites]), sites, strict=True))
        taken = []
        while pending:
            for reply in letters.pull_messages(list(pending)):
                site = pending.pop(reply.metadata.reply_to_message_id)
                why = self._taken(site, query, reply)
                if why is None:
                    taken.append(site)
                else:
                    self._failures.add([site], why)
        self._server.close()
        for site, why in self._server.refused.items():
            self._failures.add([site], why)
        if closed is None:
            write_lasting(record, json.dumps({"sites": sorted(taken)}).encode())

    def _taken(self, site: int, query: int, reply: Message) -> str | None:
        """Take in what a site has answered; why it is left out, where it is.

        Nothing of it is believed: what it says openly is for the collectors to refuse, and the rest for the sum.
        """
        if reply.has_error():
            return str(reply.error.reason)
        try:
            answer = SumAnswer.read(reply.content)
            if query == KEYS:
                self._opened[site] = self._read(site, answer.opened)
        except Exception as error:  # whatever a hostile site sends, it must not end the sum
            return f"answer refused: {error if isinstance(error, InputError) else type(error).__name__}"
        self._server.take(site, answer.body)
        return self._server.refused.get(site)

    def _read(self, site: int, opened: bytes) -> Submission:
        said = read_opened(opened, self._question)
        if said.parties.tolist() != [site]:
            raise InputError("a site answered for another one")
        for collector in self._collectors:
            for why in collector.refused(said).values():
                raise InputError(why)
        return said

    def _give_up(self, why: str) -> NoReturn:
        """The sum is over: sites are told to destroy their secrets. Raises `QuorumError`."""
        masked = (self._folder / f"{MASKED - 1}{CLOSED}").exists()
        told = (
            f"{why}; this sum is over, and nothing of it can be read. "
            + ("Sites have paid for it. " if masked else "Nothing was paid for it. ")
            + _AGAIN
        )
        write_lasting(self._folder / OVER, json.dumps({"why": told, "masked": masked}).encode())
        leaving = replace(self._exchange, folder=self._folder / _LEAVING)
        leaving.folder.mkdir(mode=0o700, exist_ok=True)
        with closing(self._sums.letters(leaving, _GOODBYE)) as letters:
            messages = [
                sum_message(letters, SumQuery(LEAVE, self._plan.digest, b""), site)
                for site in range(self._plan.parties)
            ]
            pending = {name for name in letters.push_messages([messages[site] for site in self._opened])}
            while pending:
                pending -= {one.metadata.reply_to_message_id for one in letters.pull_messages(list(pending))}
        raise QuorumError(told)


_AGAIN = "Begin a new exchange: federation collect DIR --new-exchange"


def over(exchange: Path) -> dict[str, object] | None:
    """Of an exchange's folder: why a sum of it is over without a total, and whether sites have paid; else None."""
    for found in sorted((exchange / SUMS).glob(f"*/{OVER}")):
        return read_object(found, _AGAIN)
    return None


@dataclass(frozen=True)
class Stand:
    """How far a sum is, by its folder: over answers to which `kind` of question, and which of its `queries` is being
    asked, from 0. With two servers the last of them is to the `second`.
    """

    folder: Path
    kind: str
    query: int
    queries: int
    second: bool

    @property
    def asks_second(self) -> bool:
        """Whether it is the second server that is being asked."""
        return self.second and self.query > 0

    def lacking(self, sites: int) -> list[tuple[int, bool]]:
        """Which sites of so many have not answered the query, by number, and whether they are not waited for."""
        members = [sites] if self.asks_second else range(sites)
        numbers = {site: sites if site == sites else self.query * sites + site for site in members}
        names = {site: f"{number:05d}-{site:05d}" for site, number in numbers.items()}
        asked = {site: (self.folder / f"{number:05d}{QUESTION}").exists() for site, number in numbers.items()}
        found = [site for site, name in names.items() if not (self.folder / f"{name}{REPLY}").exists()]
        return [(site, not asked[site] or (self.folder / f"{names[site]}{LEFT_OUT}").exists()) for site in found]


def last_sum(exchange: Path) -> Stand | None:
    """Of an exchange's folder; None where no sum has begun."""
    found = sorted((exchange / SUMS).glob(f"*/{_PLAN}"))
    if not found:
        return None
    folder, plan = found[-1].parent, SumPlan.read(found[-1].read_bytes())
    closed, count = len([*folder.glob(f"*{CLOSED}")]), len(queries(plan)) + bool(plan.second)
    kind = kind_of((folder / _QUESTION).read_bytes())
    return Stand(folder, kind, min(closed, count - 1), count, bool(plan.second))


def sum_message(letters: LetterGrid, query: SumQuery, member: int) -> Message:
    """A query of a secure sum to a member of the agreement, by its number."""
    return letters.create_message(query.records(), f"query.{SUM}", member + 1, "")


def unmasked(letters: LetterGrid, server: AddingServer, agreement: Agreement) -> Words:
    """The sum of the masks of all who are counted, from the helper server.

    The sites' messages and the list of counted sites are on disk by now. If the helper server is away, the coordinator
    asks again later, for the same list and in the same message. No site is asked again.

    Raises `QuorumError` where it does not come, and can be asked for again, and `InputError` for one of another size.
    """
    plan = server.plan
    asked = SumQuery(MASKS, plan.digest, server.counted() + b"".join(server.receipts()), plan.packed())
    names = [*letters.push_messages([sum_message(letters, asked, plan.parties)])]
    reply = None
    while reply is None:
        reply = next(iter(letters.pull_messages(names)), None)
    name = agreement.members[plan.parties].name
    if reply.has_error():
        raise QuorumError(
            f"the second server '{name}' has not told the sum of the masks ({_SAID.get(reply.error.reason, _AWAY)}); "
            "what the sites have sent is kept, and they are not asked again: collect again once it is there"
        )
    masks = b""
    with suppress(InputError):  # told below, by name
        masks = SumAnswer.read(reply.content).body
    if len(masks) != 8 * plan.numbers:
        raise InputError(
            f"the second server '{name}' has told no sum of masks of {plan.numbers} numbers, and tells it "
            "once; ask it why, and then begin a new exchange: federation collect DIR --new-exchange"
        )
    return np.frombuffer(masks, dtype="<u8")


_AWAY = "it did not answer in time"
_SAID = {"the site refused": "it refused; its own log says why", "the exchange has closed": "the exchange has closed"}
