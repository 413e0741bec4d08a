"""The process that makes and tries inputs: each within a limit of time and of memory, or the process ends with it."""

from __future__ import annotations

import contextlib
import faulthandler
import io
import os
import random
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TextIO

from threadpoolctl import threadpool_limits

from benchmarks.fuzz.inputs import Input, Target
from federation.contract.errors import DEBUG, FederationError

TRACEBACK, HANG, MEMORY = KINDS = ("traceback", "hang", "memory")
REFUSED, TAKEN = "refused", "taken"
STACK = "stack.txt"
_PATIENCE = 12  # times the limit of processor time that an input may take on the clock
_ROOT = str(Path(__file__).parents[2])
_OWN = str(Path(__file__).parent)
_PLACES = 3  # frames of a refusal that tell one from another


@dataclass(frozen=True)
class Limits:
    """What one input may take: `seconds` of processor time, `mebibytes` beside what the process had before it."""

    seconds: float = 5.0
    mebibytes: int = 2048


@dataclass(frozen=True)
class Outcome:
    """What came of an input: refused in a sentence, taken, or one of `KINDS`; `text` says more.

    `place` is where it was refused, or how it was taken: an input that comes to a new place is worth changing further.
    """

    kind: str
    place: str
    text: str


def work(kind: type[Target], folder: Path, seed: int, limits: Limits, parent: Connection) -> None:
    """Try what the parent sends until it sends None: a range of numbers of inputs to be made, or one `Input`.

    Sent back are the number and input before each attempt, its outcome after it, and None when there is nothing left.
    An attempt beyond its limits ends the process, whose stack is then in the file `STACK` of the folder.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends us
    warnings.simplefilter("ignore")
    os.environ[DEBUG] = "1"  # errors that nobody foresaw come as they are
    with (folder / STACK).open("w", encoding="utf-8") as stack, threadpool_limits(1):
        faulthandler.enable(stack)
        faulthandler.register(signal.SIGPROF, stack, chain=True)  # writes the stack, and then the signal ends us
        target = kind(folder)
        seeds = list(target.seeds())
        for one in seeds:
            tried(target, one)  # what is loaded once must not count for an input
        _limit_memory(limits)
        parent.send(None)
        while (job := parent.recv()) is not None:
            known = list(seeds)
            places: set[str] = set()
            for number in job if isinstance(job, range) else [0]:
                given = job if isinstance(job, Input) else made(target, known, len(seeds), seed, number)
                parent.send((number, given))
                with _limited(limits, stack):
                    outcome = tried(target, given)
                parent.send(outcome)
                if outcome.kind in (REFUSED, TAKEN) and outcome.place not in places:
                    places.add(outcome.place)
                    known.append(given)
            parent.send(None)


def made(target: Target, known: Sequence[Input], seeds: int, seed: int, number: int) -> Input:
    """The input of a number: of one of the first `seeds` that are known, or, every other time, of those found since."""
    source = random.Random(f"{seed}/{target.name}/{number}")
    found = known[seeds:] if source.random() < 0.5 else ()
    return target.mutated(source, found or known[:seeds])


def tried(target: Target, given: Input) -> Outcome:
    """What comes of an input."""
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            return Outcome(TAKEN, f"{given.route} {target.attempt(given)}", "")
    except FederationError as error:
        kind = MEMORY if any(isinstance(cause, MemoryError) for cause in _causes(error)) else REFUSED
        return Outcome(kind, _place(error), str(error) if kind == REFUSED else _told(error))
    except MemoryError as error:
        return Outcome(MEMORY, _place(error), _told(error))
    except Exception as error:
        return Outcome(TRACEBACK, _place(error), _told(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    known: BaseException | None = error
    while known is not None:
        yield known
        known = known.__cause__ or known.__context__


def _place(error: BaseException) -> str:
    """The kind of an error, and its last frames in this project."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(_ROOT)]
    own = [frame for frame in frames if not frame.filename.startswith(_OWN)][-_PLACES:]
    return " ".join([type(error).__name__, *(f"{frame.filename[len(_ROOT) + 1 :]}:{frame.lineno}" for frame in own)])


def _told(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


@contextlib.contextmanager
def _limited(limits: Limits, stack: TextIO) -> Iterator[None]:
    """Ends this process, its stack written, where what is inside takes longer than the limit."""
    signal.setitimer(signal.ITIMER_PROF, limits.seconds)
    faulthandler.dump_traceback_later(limits.seconds * _PATIENCE, exit=True, file=stack)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_PROF, 0)


def _limit_memory(limits: Limits) -> None:
    """Let no allocation go beyond what the process has now, and the limit; where the system keeps such limits."""
    if sys.platform != "linux":
        return
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + (limits.mebibytes << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
