"""What tests say of a mutant: each is tried in a process of its own, forked from one that has loaded all libraries."""

from __future__ import annotations

import importlib
import json
import math
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType
from typing import Any, Literal

from benchmarks.mutants.mutant import Mutant

Outcome = Literal["killed", "survived", "timed out"]

_PASSED = 0  # how pytest ends when all tests passed
_OUTCOMES: dict[int, Outcome] = {_PASSED: "survived", -signal.SIGXCPU: "timed out"}
_ENOUGH = 4  # times the processor's time without an error, before a mutant counts as one that never ends
_LEAST_SECONDS = 20  # of it
_LONGEST = 900.0  # seconds on the clock: then a mutant waits for what never comes


class _Mutated(SourceFileLoader):
    """Loads a module from a text instead of its file, and is the finder that says so."""

    def __init__(self, mutant: Mutant, root: Path) -> None:
        name = mutant.path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        super().__init__(name, str(root / mutant.path))
        self._text = mutant.source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._text, self.path, "exec", dont_inherit=True)

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return spec_from_file_location(fullname, self.path, loader=self) if fullname == self.name else None


@dataclass(eq=False)
class _FastestFirst:
    """A plugin of pytest: tests that took less time come first, and a property that fails is not explained."""

    seconds: dict[str, float] = field(default_factory=dict)

    def pytest_sessionstart(self) -> None:
        from hypothesis import Phase, settings

        usual = settings.get_current_profile_name()
        settings.register_profile(f"{usual}, unshrunk", phases=[Phase.explicit, Phase.generate], parent=settings())
        settings.load_profile(f"{usual}, unshrunk")

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items.sort(key=lambda item: self.seconds.get(item.nodeid, 0.0))

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration


@dataclass
class Trials:
    """Tries mutants of the checkout at `root` with at most `jobs` processes at a time."""

    root: Path
    jobs: int
    _running: dict[int, tuple[Mutant, float]] = field(default_factory=dict)

    def outcomes(self, mutants: Iterator[Mutant], tests: Sequence[str]) -> Iterator[tuple[Mutant, Outcome]]:
        """Of each mutant, as they end. `tests` are arguments of pytest: files, folders, or names of tests.

        Raises `RuntimeError` if they fail without any error.
        """
        seconds, order = self._rehearsed(tests)
        for mutant in mutants:
            while len(self._running) >= self.jobs:
                yield from self._ended()
            child = os.fork()
            if child == 0:
                resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
                os._exit(self._run(tests, order, mutant))
            self._running[child] = mutant, time.monotonic()
        while self._running:
            yield from self._ended()

    def _rehearsed(self, tests: Sequence[str]) -> tuple[int, _FastestFirst]:
        """The seconds that a mutant gets, and the order of its tests; all libraries that they use are loaded then."""
        order = _FastestFirst()
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            code = self._run(tests, order)
            names = [name for name, module in sys.modules.items() if self._foreign(module)]
            with os.fdopen(writing, "w") as told:
                json.dump({"seconds": order.seconds, "modules": names}, told)
            os._exit(code)
        os.close(writing)
        with os.fdopen(reading) as told:
            known = json.load(told)
        _, status, used = os.wait4(child, 0)
        if os.waitstatus_to_exitcode(status) != _PASSED:
            raise RuntimeError(f"tests fail without any error: {' '.join(tests)}")
        for name in known["modules"]:
            with suppress(Exception):  # some can only be imported after others, or on another system
                importlib.import_module(name)
        most = max(_LEAST_SECONDS, math.ceil(_ENOUGH * (used.ru_utime + used.ru_stime)))
        return most, _FastestFirst(known["seconds"])

    def _ended(self) -> Iterator[tuple[Mutant, Outcome]]:
        time.sleep(0.01)
        for child, (mutant, started) in list(self._running.items()):
            if time.monotonic() - started > _LONGEST:
                os.killpg(child, signal.SIGXCPU)
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                del self._running[child]
                code = os.waitstatus_to_exitcode(status)
                yield mutant, _OUTCOMES.get(code, "killed")

    def _run(self, tests: Sequence[str], order: _FastestFirst, mutant: Mutant | None = None) -> int:
        """Run tests in this process, which has loaded nothing of the project, and say nothing."""
        import pytest  # only where tests are run

        os.setpgid(0, 0)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        os.chdir(self.root)
        sys.path.insert(0, str(self.root))
        with suppress(BaseException):
            if mutant is not None:
                # At once: pytest would read the files that it is told to test by itself.
                loader = _Mutated(mutant, self.root)
                sys.meta_path.insert(0, loader)
                importlib.import_module(loader.name)
            return int(pytest.main(["-x", "-q", "-n", "0", *tests], plugins=[order]))
        return 1

    def _foreign(self, module: object) -> bool:
        """Whether a module lies outside the checkout."""
        file = getattr(module, "__file__", None)
        return file is not None and self.root not in Path(file).parents
