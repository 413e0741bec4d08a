"""What a run tells while it goes on: nothing, progress or every phase, and all of it in a file."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from typer import Option

from federation.contract.errors import FederationError, InputError, told, writing
from scenarios.commands.lines import remark

Quiet = Annotated[bool, Option("--quiet", "-q", help="Print errors and the path of the report, nothing else.")]
Verbose = Annotated[
    bool, Option("--verbose", "-v", help="Say versions, seed, every phase and every world, in place of bars.")
]
LogFile = Annotated[
    Path | None,
    Option("--log-file", metavar="FILE", help="Add all messages here with their times, also those of Flower and Ray."),
]
_OURS = ("federation", "parties", "aggregator", "scenarios")
_WITH_CONSOLES = ("flwr", "ray")  # libraries whose loggers do not always pass on what they hear
_SAID = {"said": True}  # of errors, which the command line prints itself
_Listener = tuple[str, logging.Handler, int]  # the name of a logger, who listens to it, and from which level on
_log = logging.getLogger(__name__)


@contextmanager
def logged(*, quiet: bool, verbose: bool, file: Path | None, times: bool = False) -> Iterator[None]:
    """Within it standard error hears warnings, nothing where `quiet`, more where `verbose`; a `file` hears everything.

    With `times` lines on standard error begin with theirs.

    What is raised inside goes on, and stands in the file. Raises `InputError` where quiet and verbose are asked for
    together, and for a file that cannot be written.
    """
    if quiet and verbose:
        raise InputError("--quiet and --verbose contradict each other; choose one of them")
    listeners = _to_terminal(logging.ERROR if quiet else logging.INFO if verbose else logging.WARNING, times)
    if file is not None:
        listeners += _to_file(file)
    levels = []
    for name, handler, level in listeners:
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        before = logger.level
        logger.setLevel(min(level, before or level))
        levels.append((logger, before, logger.level))
    try:
        yield
    except KeyboardInterrupt:
        _log.critical("interrupted", extra=_SAID)
        raise
    except Exception as error:
        _log.error("%s", told(error), exc_info=not isinstance(error, FederationError), extra=_SAID)
        raise
    finally:
        for name, handler, _ in listeners:
            logging.getLogger(name).removeHandler(handler)
            handler.close()
        for logger, before, ours in reversed(levels):
            if logger.level == ours:  # unless somebody has set it meanwhile, as Flower does when it is imported
                logger.setLevel(before)


class _Terminal(logging.Handler):
    """Standard error as it is when a line is written: progress bars stand in its way."""

    def __init__(self, level: int, times: bool) -> None:
        super().__init__(level)
        self._begin = "%Y-%m-%d %H:%M:%S " if times else ""

    def emit(self, record: logging.LogRecord) -> None:
        remark(time.strftime(self._begin, time.localtime(record.created)) + record.getMessage())


def _to_terminal(level: int, times: bool) -> list[_Listener]:
    handler = _Terminal(level, times)
    handler.addFilter(lambda record: not hasattr(record, "said"))
    return [(name, handler, level) for name in _OURS]


def _to_file(path: Path) -> list[_Listener]:
    with writing(f"to --log-file {path}", "name another file"):
        handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    handler.addFilter(_Once())
    others = [(name, _Relay(handler), logging.INFO) for name in _WITH_CONSOLES]
    return [("", handler, logging.WARNING), *others, *((name, handler, logging.DEBUG) for name in _OURS)]


class _Relay(logging.Handler):
    """Passes on to another handler, whose format nobody changes, as Ray does that of all that its own logger has."""

    def __init__(self, other: logging.Handler) -> None:
        super().__init__()
        self._other = other

    def emit(self, record: logging.LogRecord) -> None:
        self._other.handle(record)


class _Once(logging.Filter):
    """Lets a record pass the first time only: it comes from its own logger, and from those above it."""

    def filter(self, record: logging.LogRecord) -> bool:
        first = not hasattr(record, "_kept")
        record._kept = True
        return first
