"""What a run tells while it goes on, on the terminal and in a file."""

import logging
import re
import sys

import pytest

from federation.contract.errors import FederationError, InputError
from scenarios.commands.run import logged

OURS = ("federation", "parties", "aggregator", "scenarios", "flwr", "ray", "")
NAMES = ("scenarios.runs.runner", "parties.app")
LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]+ [\w.]+: ")


@pytest.fixture(autouse=True)
def _as_before():
    """All loggers are afterwards as they were."""
    before = [(logging.getLogger(name).level, list(logging.getLogger(name).handlers)) for name in OURS]
    yield
    assert before == [(logging.getLogger(name).level, list(logging.getLogger(name).handlers)) for name in OURS]


def speak():
    for name in NAMES:
        for level in ("debug", "info", "warning"):
            getattr(logging.getLogger(name), level)(f"{level} of {name}")


@pytest.mark.parametrize(
    ("how", "heard"), [({"quiet": True}, []), ({}, ["warning"]), ({"verbose": True}, ["info", "warning"])]
)
def test_the_terminal_hears_as_much_as_was_asked_for(how, heard, capsys):
    with logged(**{"quiet": False, "verbose": False, "file": None} | how):
        speak()
    assert capsys.readouterr() == ("", "".join(f"{level} of {name}\n" for name in NAMES for level in heard))


def test_lines_of_the_terminal_may_have_their_times(capsys):
    with logged(quiet=False, verbose=False, file=None, times=True):
        logging.getLogger("parties.site").warning("a letter came")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d a letter came\n", capsys.readouterr().err)


@pytest.mark.parametrize("quiet", [True, False])
def test_a_file_hears_everything_once_with_its_time_even_of_others(tmp_path, quiet):
    others = {name: logging.getLogger(name) for name in ("flwr", "ray.worker", "elsewhere")}
    with logged(quiet=quiet, verbose=False, file=tmp_path / "log"):
        speak()
        others["flwr"].info("Flower starts")
        others["ray.worker"].info("Ray starts")
        others["elsewhere"].info("not of interest")
        others["elsewhere"].warning("of interest")
    lines = (tmp_path / "log").read_text().splitlines()
    assert all(LINE.match(line) for line in lines)
    assert [LINE.sub("", line) for line in lines] == [
        *(f"{level} of {name}" for name in NAMES for level in ("debug", "info", "warning")),
        "Flower starts",
        "Ray starts",
        "of interest",
    ]  # fmt: skip


def test_loggers_that_keep_to_themselves_are_heard_too_in_the_format_of_the_file(tmp_path):
    ray = logging.getLogger("ray")
    before = ray.propagate
    ray.propagate = False
    try:
        with logged(quiet=False, verbose=False, file=tmp_path / "log"):
            for handler in ray.handlers:
                handler.setFormatter(logging.Formatter("theirs: %(message)s"))  # as Ray does
            ray.info("Ray starts")
    finally:
        ray.propagate = before
    assert LINE.sub("", (tmp_path / "log").read_text()) == "Ray starts\n"


def test_errors_are_in_the_file_and_left_to_the_command_line_on_the_terminal(tmp_path, capsys):
    with pytest.raises(FederationError), logged(quiet=False, verbose=True, file=tmp_path / "log"):
        raise FederationError("no party answers")
    with pytest.raises(ZeroDivisionError), logged(quiet=False, verbose=True, file=tmp_path / "log"):
        _ = 1 / 0
    with pytest.raises(KeyboardInterrupt), logged(quiet=True, verbose=False, file=tmp_path / "log"):
        raise KeyboardInterrupt
    text = (tmp_path / "log").read_text()
    assert "ERROR scenarios.commands.run: no party answers\n" in text
    assert text.count("Traceback") == 1
    assert text.endswith("CRITICAL scenarios.commands.run: interrupted\n")
    assert capsys.readouterr() == ("", "")


def test_what_contradicts_itself_or_cannot_be_written_is_refused(tmp_path):
    with (
        pytest.raises(InputError, match="--quiet and --verbose contradict"),
        logged(quiet=True, verbose=True, file=None),
    ):
        pass
    file = tmp_path / "no" / "log"
    with pytest.raises(InputError, match="cannot write to --log-file"), logged(quiet=False, verbose=False, file=file):
        pass


def test_lines_go_to_whatever_standard_error_is_by_then(monkeypatch, capsys):
    import io

    with logged(quiet=False, verbose=False, file=None):
        monkeypatch.setattr(sys, "stderr", changed := io.StringIO())
        logging.getLogger("scenarios").warning("now")
    assert changed.getvalue() == "now\n"
