"""Keeps libraries from writing on the terminal, and from nothing else: whatever listens to their loggers hears all."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

NOTHING = logging.CRITICAL + 1


def hush(name: str, level: int = NOTHING) -> Callable[[], None]:
    """Handlers of the logger `name` that write to this process's output or errors show nothing below `level`.

    Others, which may be what somebody listens by, are left alone.

    Gives what makes them as they were.

    Examples:
        >>> import sys
        >>> logger, console = logging.getLogger("loud"), logging.StreamHandler(sys.stdout)
        >>> logger.addHandler(console)
        >>> restore = hush("loud")
        >>> logger.error("not shown")
        >>> restore()
        >>> logger.error("shown")
        shown
        >>> logger.removeHandler(console)
    """
    consoles = [each for each in logging.getLogger(name).handlers if _is_console(each)]
    before = [console.level for console in consoles]
    for console in consoles:
        console.setLevel(level)

    def restore() -> None:
        for console, each in zip(consoles, before, strict=True):
            console.setLevel(each)

    return restore


def _is_console(handler: logging.Handler) -> bool:
    # A progress bar stands in for the outputs while it is shown; handlers made before it keep the first ones.
    outputs = (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
    return isinstance(handler, logging.StreamHandler) and handler.stream in outputs
