"""Keeps libraries from writing on the terminal, and from nothing else: whatever listens to their loggers hears all."""

from __future__ import annotations

import logging
from collections.abc import Callable

NOTHING = logging.CRITICAL + 1


def hush(name: str, level: int = NOTHING) -> Callable[[], None]:
    """Handlers of the logger `name` that write on a terminal show nothing below `level`; files are left alone.

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
    consoles = [each for each in logging.getLogger(name).handlers if _writes_on_a_terminal(each)]
    before = [console.level for console in consoles]
    for console in consoles:
        console.setLevel(level)

    def restore() -> None:
        for console, each in zip(consoles, before, strict=True):
            console.setLevel(each)

    return restore


def _writes_on_a_terminal(handler: logging.Handler) -> bool:
    return isinstance(handler, logging.StreamHandler) and not isinstance(handler, logging.FileHandler)
