"""Shares out inputs to worker processes, and counts what comes of them."""

from __future__ import annotations

import multiprocessing
import signal
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from queue import SimpleQueue

from benchmarks.fuzz.inputs import Input, Target
from benchmarks.fuzz.worker import HANG, KINDS, MEMORY, STACK, TRACEBACK, Limits, Outcome, work

CHUNK = 500  # inputs that one worker makes in a row, each of which may start from those before it
_FAILED, _TIMEOUT = (
    1,
    "Timeout (",
)  # exit code of a worker that raised or was late on the clock; in the stack of the latter
_TOLD = 5000  # inputs after which the tally is told again
_NAMES = ("tracebacks", "hangs", "memory")  # of `KINDS`, in the summary

Found = Callable[[int, Input, Outcome], None]


@dataclass
class Tally:
    """How often each outcome came, and how often an input was refused or taken at each place."""

    outcomes: Counter[str] = field(default_factory=Counter)
    places: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        """Count one."""
        self.outcomes[outcome.kind] += 1
        self.places[outcome.place] += 1

    @property
    def findings(self) -> int:
        """Number of inputs that are findings."""
        return sum(self.outcomes[kind] for kind in KINDS)

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {self.outcomes[kind]}" for kind, name in zip(KINDS, _NAMES, strict=True))
        return f"{self.outcomes.total()} inputs, {self.findings} findings: {parts}"


@dataclass
class _Worker:
    process: BaseProcess
    pipe: Connection
    folder: Path

    def died(self) -> Outcome:
        """What it was that ended the process. Raises `RuntimeError` where it was no input, but the fuzzing itself."""
        self.process.join()
        code = self.process.exitcode or 0
        file = self.folder / STACK
        stack = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
        late = code == _FAILED and _TIMEOUT in stack
        if code == _FAILED and not late:
            raise RuntimeError("a worker failed by itself; what it says stands above")
        hung = late or code == -signal.SIGPROF
        place = next((line.strip() for line in stack.splitlines() if "File " in line), "")
        kind = HANG if hung else MEMORY if code == -signal.SIGKILL else TRACEBACK
        return Outcome(kind, place, f"the process ended with {code}\n{stack}")


class Campaign:
    """Tries inputs of one target in up to `jobs` processes. What is tried follows from `seed` and the count alone.

    `found` is called with every finding, its number and its input.
    """

    def __init__(self, target: type[Target], seed: int, limits: Limits, jobs: int, found: Found) -> None:
        self.name = target.name
        self._target, self._seed, self._limits, self._jobs, self._found = target, seed, limits, jobs, found
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        self._started = 0
        self._lock = threading.Lock()
        self.tally = Tally()

    def run(self, count: int, first: int = 0) -> Tally:
        """Try the target's inputs of the numbers first..count-1, and those that inputs among them may start from."""
        starts = range(first // CHUNK * CHUNK, count, CHUNK)
        return self._all([range(start, min(start + CHUNK, count)) for start in starts])

    def again(self, given: Input) -> Tally:
        """Try one input that was kept."""
        return self._all([given])

    def _all(self, jobs: list[range] | list[Input]) -> Tally:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, ThreadPoolExecutor(self._jobs) as lanes:
            try:
                list(lanes.map(lambda job: self._lane(Path(folder), job), jobs))
            finally:
                while not self._idle.empty():
                    worker = self._idle.get()
                    worker.pipe.send(None)
                    worker.process.join()
        return self.tally

    def _lane(self, folder: Path, job: range | Input) -> None:
        left: range | Input | None = job
        while left is not None:
            worker = self._start(folder) if self._idle.empty() else self._idle.get()
            worker.pipe.send(left)
            number, given = -1, Input("", b"")
            try:
                while (told := worker.pipe.recv()) is not None:
                    number, given = told
                    self._count(number, given, worker.pipe.recv())
                left = None
                self._idle.put(worker)
            except EOFError:
                self._count(number, given, worker.died())
                left = range(number + 1, job.stop) if isinstance(job, range) and number + 1 < job.stop else None

    def _start(self, folder: Path) -> _Worker:
        with self._lock:
            self._started += 1
            own = folder / str(self._started)
        own.mkdir()
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("spawn").Process(
            target=work, args=(self._target, own, self._seed, self._limits, theirs), daemon=True
        )
        process.start()
        theirs.close()
        worker = _Worker(process, ours, own)
        try:
            ours.recv()
        except EOFError:
            raise RuntimeError(f"a worker could not start: {worker.died().text}") from None
        return worker

    def _count(self, number: int, given: Input, outcome: Outcome) -> None:
        with self._lock:
            self.tally.add(outcome)
            if self.tally.outcomes.total() % _TOLD == 0:
                print(f"  {self.tally}", flush=True)
            if outcome.kind in KINDS:
                self._found(number, given, outcome)
