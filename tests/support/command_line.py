"""The command line, called in this process."""

import io
import sys

import pytest

from scenarios import cli


class Terminal(io.StringIO):
    """A person at a keyboard or a screen, as far as a command can tell."""

    def isatty(self) -> bool:
        return True


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["federation", *arguments])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return int(caught.value.code or 0)
