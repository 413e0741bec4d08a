"""The command line as a person meets it, in this process."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scenarios.cli import _exit_code


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command that must refuse its input, in one line and with exit code 2; returns the line."""

    def run(*arguments: str) -> str:
        monkeypatch.setattr("sys.argv", ["federation", *arguments])
        assert _exit_code() == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.count("\n") == 1
        return printed.err

    return run


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command that must succeed; returns what it prints on standard output."""

    def run(*arguments: str) -> str:
        monkeypatch.setattr("sys.argv", ["federation", *arguments])
        assert _exit_code() == 0
        return capsys.readouterr().out

    return run
