"""Processes of a site that read and answer one query each, with limits on memory and time.

The process of a query knows no key. It works in this order:

1. The process reads the query, and says what an answer would cost.
2. It waits until the site tells it to read the rows.
3. It waits until the site tells it that the answer has been paid. Only then does it compute anything from the rows.

Whatever becomes of the process, the site goes on.

Rows that are away cost nothing: a data base that cannot be reached says nothing about a row. Rows that are there and
fail are paid for as if they had not failed. Where noise protects such rows, the process answers as for blank rows. What
cannot be read may be a single cell. A missing answer would tell the sender of the query about it, at every query.
"""

import contextlib
import json
import logging
import math
import multiprocessing
import os
import pickle
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from types import ModuleType
from typing import TypeVar

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Guarantee
from federation.contract.plugins import Reference
from federation.contract.query import PrivateQuestion, Question, Submission, TrustedQuestion, check_submission
from federation.signed_messages.aggregation_messages import open_length, part_packet
from federation.signed_messages.agreement import Agreement, require_agreed
from federation.signed_messages.messages import answer_packet, kind_of, read_question, reply_length
from parties.guard.answering import answered, kinds, permitted, question_type
from parties.party_data.cohort import Cohort, Elsewhere, Holdings, Provider, provider_of

T = TypeVar("T")

_READ, _PAID = b"read", b"paid"  # what a process is told
# What readers of tables and mechanisms import where they first use it, which takes half a second.
_USED_LATER = ("scipy.optimize", "pyarrow.csv", "pandas")
_SHARE_TO_READ = 0.5  # of a question's time that it may take to read it
_TRIES = 2  # at rows whose source is there: a connection may be cut
_REACHED = 8  # seconds within which a source says whether it is there
_log = logging.getLogger(__name__)
_context = multiprocessing.get_context("forkserver")  # which is started before any thread, and never holds a key


class Busy(InputError):
    """There is too little time left to answer a question, or the rows are away, and nothing has been paid for it."""


@dataclass(frozen=True)
class Means:
    """What one question may use: bytes of memory, and seconds of computing and of waiting."""

    memory: int = 3 * 2**30
    seconds: int = 90


@dataclass(frozen=True)
class Cost:
    """What an answer costs before it is given: the guarantee of its own noise, or None where it has none.

    `trusted` says that it hides nothing but from whoever sees the release that an honest aggregator makes of it. What
    is public costs nothing. A release is paid for once, with its first `query`. `length` is how long replies to the
    question are; where an answer goes into a secure sum that of what is said openly, and `numbers` is how many integers
    are added up.
    """

    kind: str
    guarantee: Guarantee | None
    trusted: bool
    release: str
    query: int
    length: int
    numbers: int = 0

    def to_json(self) -> bytes:
        """As bytes."""
        guarantee = None if self.guarantee is None else self.guarantee.to_dict()
        return json.dumps({**vars(self), "guarantee": guarantee}).encode()

    @classmethod
    def from_json(cls, text: bytes) -> "Cost":
        """Inverse of `to_json`. Raises `InputError` with what the process says in its place."""
        found = json.loads(text)
        if isinstance(found, str):
            raise InputError(found)
        guarantee = None if found["guarantee"] is None else Guarantee.from_dict(found["guarantee"])
        return cls(**{**found, "guarantee": guarantee})


def prepare(*modules: str) -> None:
    """Start the process from which all others are forked, with all that answers questions, and these modules, in it."""
    _context.set_forkserver_preload(["parties.site.worker", "parties.app", *modules, *_USED_LATER])
    first = _context.Process(target=kinds)
    with _without_main():
        first.start()
    first.join()


@contextmanager
def _without_main() -> Iterator[None]:
    """Processes that start meanwhile do not run the program of this one again, as Python lets each do.

    What acts in them is in modules; to import a whole command line would take most of their time.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@dataclass(frozen=True)
class Work:
    """One question in its process: what an answer costs; what has the `rows` read; what answers once it is paid.

    `rows` raises `Busy` where they are away; nothing need be paid then.
    """

    cost: Cost
    rows: Callable[[], None]
    answer: Callable[[], bytes | None]


class Once:
    """The rows of another provider, which are read once: what was there when it was paid for is there to answer."""

    def __init__(self, reference: str) -> None:
        self._provider: Provider = Reference.from_json(reference).call()
        self._found: Holdings | None = None

    def holdings(self, party: int) -> Holdings:
        """As they were when they could be read first."""
        if self._found is None:
            self._found = self._provider.holdings(party)
        return self._found

    def require_there(self) -> None:
        """Raises `InputError` where they are away."""
        if isinstance(self._provider, Elsewhere):
            self._provider.require_there()

    def evaluation(self) -> None:
        """None: it is no simulation."""


class Blank:
    """The rows of another provider with nothing in them: as many, in the same bags, of the first class.

    Rows that nothing can be made of must not be told by an answer that is missing; this stands in for it.
    """

    def __init__(self, reference: str) -> None:
        self._provider = provider_of(reference)

    def holdings(self, party: int) -> Holdings:
        """Zeros, as many as there are rows and labels."""
        found = self._provider.holdings(party)
        return replace(found, rows=np.zeros(np.shape(found.rows)), labels=np.zeros_like(found.labels))

    def evaluation(self) -> None:
        """None: it is no simulation."""


@contextmanager
def read(packet: bytes, agreement: Agreement, cohort: Cohort, means: Means) -> Iterator[Work]:
    """A question in its process, where it has been read.

    Raises `Busy` where too little time is left, and `InputError` for one that is not as agreed, or that takes more to
    read than it may; nothing has been touched then. An answer with noise that fails is given for blank rows, that
    nothing is told by its failing; None where that fails, too, or an answer without noise does.
    """
    began = time.monotonic()
    cohort = replace(cohort, reference=Reference(f"{__name__}:Once", {"reference": cohort.reference}).to_json())
    with _limited(means, _serve, packet, agreement, cohort) as (said, tell):
        first = said()
        if first is None:
            raise InputError(f"the question took more than {means.seconds} s or {means.memory} bytes to read")
        cost = Cost.from_json(first)
        if time.monotonic() - began > _SHARE_TO_READ * means.seconds:  # nothing is paid yet
            raise Busy("this machine is too busy to answer in time; it is asked again")

        def rows() -> None:
            tell(_READ)
            away = said()
            if away is None:  # it took too much, which may be for a row; or what it reads from does not answer
                with _limited(replace(means, seconds=min(_REACHED, means.seconds)), _reach, cohort) as (reached, _):
                    away = reached()
            if away is None:
                raise Busy(f"what the rows are read from has not answered within {_REACHED} s")
            if away:
                raise Busy(away.decode())

        def answer() -> bytes | None:
            tell(_PAID)
            found = said()
            if found is None and cost.guarantee is not None:
                _log.warning(
                    "an answer took more than %d s or %d bytes, or failed: what leaves in its place is noise and rows "
                    "of zeros; raise the limits, or mend what the log tells of",
                    means.seconds,
                    means.memory,
                )
                left = math.floor(2 * means.seconds - (time.monotonic() - began))  # until the answer is to leave
                again = replace(means, seconds=max(1, min(means.seconds, left)))
                with _limited(again, _serve, packet, agreement, _blank(cohort)) as (said_again, tell_again):
                    for order in (_READ, _PAID):
                        if said_again() is not None:
                            tell_again(order)
                    found = said_again()
            return found

        yield Work(cost, rows, answer)


def apart(means: Means, act: Callable[[], T]) -> tuple[T, float]:
    """What a process with these means makes of the table, and in how many seconds.

    What acts must be known to other processes, as must be what it makes. Raises `InputError` where nothing comes of it.
    """
    began = time.monotonic()
    with _limited(means, _act, act) as (said, _):
        found = said()
        if found is None:
            raise InputError(
                f"a process that may use {means.memory} bytes could not read the table within {means.seconds} s; raise "
                "limits.memory and limits.seconds"
            )
        made: T = pickle.loads(found)  # of this site's own code and rows; no letter has been near it
    return made, time.monotonic() - began


@contextmanager
def _limited(
    means: Means, act: Callable[..., None], *known: object
) -> Iterator[tuple[Callable[[], bytes | None], Callable[[bytes], None]]]:
    """A process with so many means: what it says next, if it does, and what tells it to go on."""
    own, other = _context.Pipe()
    process = _context.Process(target=_start, args=(means, act, other, *known), daemon=True)
    with _without_main():
        process.start()
    other.close()
    deadline, late = time.monotonic() + means.seconds, False

    def said() -> bytes | None:
        nonlocal late
        with contextlib.suppress(EOFError, OSError):  # it has ended
            if not late and own.poll(max(0.0, deadline - time.monotonic())):
                return own.recv_bytes()
        late = True  # what comes now was the answer to something else
        return None

    def tell(order: bytes) -> None:
        with contextlib.suppress(OSError):
            own.send_bytes(order)

    try:
        yield said, tell
    finally:
        own.close()
        if process.pid and process.is_alive():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.join()


def _start(means: Means, act: Callable[..., None], *known: object) -> None:
    """What a process begins with."""
    os.setsid()
    bounds = {resource.RLIMIT_AS: means.memory, resource.RLIMIT_CPU: means.seconds, resource.RLIMIT_CORE: 0}
    for limit, most in bounds.items():
        resource.setrlimit(limit, (most, most))
    act(*known)


def _act(site: Connection, act: Callable[[], object]) -> None:
    """A process that reads the table, before there is a question."""
    site.send_bytes(pickle.dumps(act()))


def _serve(site: Connection, packet: bytes, agreement: Agreement, cohort: Cohort) -> None:
    """The process of one question."""
    try:
        question = read_question(packet, question_type(kind_of(packet)))
        require_agreed(question, agreement)
        cost, provider = cost_of(question, cohort), cohort.provider
    except Exception as error:  # of whatever a hostile question brings about, which the site's own journal may tell
        site.send_bytes(json.dumps(str(error) if isinstance(error, InputError) else repr(error)[:200]).encode())
        return
    site.send_bytes(cost.to_json())
    with contextlib.suppress(EOFError):  # the site does not answer this time
        if site.recv_bytes() == _READ:
            site.send_bytes(_away(provider, cohort.first).encode())
        if site.recv_bytes() == _PAID:
            found = _submission(question, replace(cohort, paid=True))
            if cohort.masked and isinstance(question, PrivateQuestion):
                site.send_bytes(part_packet(question, found))
            else:
                site.send_bytes(answer_packet(question, found))


def _away(provider: Provider, party: int) -> str:
    """Why rows cannot be read, where their source is away; empty where they were, or are there and fail.

    That is tried out: what a driver says of a failure may be of a cell, and not of its connection.
    """
    for _ in range(_TRIES):
        try:
            provider.holdings(party)
        except Exception:
            if why := _unreached(provider):
                return why
        else:
            return ""
    return ""


def _unreached(provider: Provider) -> str:
    """Why a source is away, of which no row is read; empty where it is there."""
    try:
        if isinstance(provider, Elsewhere):
            provider.require_there()
    except InputError as error:
        return str(error)
    return ""


def _reach(site: Connection, cohort: Cohort) -> None:
    """A process that looks whether a source is there."""
    site.send_bytes(_unreached(cohort.provider).encode())


def _submission(question: Question, cohort: Cohort) -> Submission:
    """The answer, or that of blank rows where one with noise fails."""
    try:
        found = answered(cohort, question)
        check_submission(question, found)
        if not (found.failures and isinstance(question, PrivateQuestion)):
            return found
    except Exception:
        if not isinstance(question, PrivateQuestion):
            raise
    _log.warning("the rows of this site could not be read: what has left it is noise and rows of zeros; mend them")
    found = answered(_blank(cohort), question)
    check_submission(question, found)
    return found


def _blank(cohort: Cohort) -> Cohort:
    return replace(cohort, reference=Reference(f"{__name__}:Blank", {"reference": cohort.reference}).to_json())


def cost_of(question: Question, cohort: Cohort) -> Cost:
    """What an answer of one site costs. Raises `InputError`, before it is paid, for what would not be answered then."""
    permitted(cohort, question)
    length, numbers = reply_length(question), 0
    if not isinstance(question, PrivateQuestion):
        return Cost(question.kind, None, isinstance(question, TrustedQuestion), question.kind, question.turn, length)
    paid = question.payment(cohort.declared)
    if not isinstance(paid, Guarantee):
        raise InputError(f"this site answers under a guarantee only: {paid.reason}")
    if cohort.masked:
        length, numbers = open_length(question), question.hidden_numbers
    # What is shared hides nothing but in a sum.
    bare = question.shared and not cohort.masked
    return Cost(question.kind, paid, bare, question.release.name, question.turn, length, numbers)
