"""The command line as a person meets it, in this process."""

from collections.abc import Callable

import pytest

from scenarios.cli import _exit_code


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Types a command; returns its exit code, what it printed and its errors."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["federation", *map(str, arguments)])
        code = _exit_code()
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


@pytest.fixture
def refused(typed: Callable[..., tuple[int, str, str]]) -> Callable[..., str]:
    """Runs a command that must refuse its input, in one line and with exit code 2; returns the line."""

    def run(*arguments: str) -> str:
        code, out, error = typed(*arguments)
        assert (code, out, error.count("\n")) == (2, "", 1)
        return error

    return run


@pytest.fixture
def done(typed: Callable[..., tuple[int, str, str]]) -> Callable[..., str]:
    """Runs a command that must succeed; returns what it prints on standard output."""

    def run(*arguments: str) -> str:
        code, out, error = typed(*arguments)
        assert code == 0, error
        return out

    return run
