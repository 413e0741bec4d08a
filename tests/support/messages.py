"""Keep the wording of messages in one file: a plugin of pytest.

Tests check the type of an exception and the key or value that it concerns. This plugin records the full text of every
message of the project that `pytest.raises` catches, and every line `error: ...` or `hint: ...` that `capsys` reads. It
compares them with `tests/messages.txt`. `python -m pytest --accept-messages` rewrites that file, and a person reviews
the difference.

The file lists messages under the file and the function of their test. A test finds its messages by its function alone,
so a test that moves to another file keeps them. Tests of hypothesis and tests marked `slow` or `reproduction` record
nothing.
"""

import functools
import os
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from federation.contract.errors import FederationError

Entry = tuple[str, str]  # the file of a test below `tests`, and its function

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
FILE = TESTS / "messages.txt"
COMMAND = "python -m pytest --accept-messages"
HEADER = f"""\
# The messages that tests meet, by file and function of the test. `{COMMAND}` writes this file.
# Parts that vary between runs and machines are in angle brackets.
"""

_PACKAGES = tuple(str(ROOT / name) for name in ("federation", "parties", "aggregator", "scenarios", "benchmarks"))
_UNRECORDED = ("slow", "reproduction")
_LINE = re.compile(r"^(?:error|hint): .*", re.MULTILINE)
_VOLATILE = (
    (re.compile(r"0x[0-9a-f]{6,}"), "<address>"),
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?"), "<time>"),
    (re.compile(r"\b(127\.0\.0\.1|localhost):\d+"), r"\1:<port>"),
    (re.compile(r"\bport \d+"), "port <port>"),
    (re.compile(r"(.)\1{40,}"), r"\1<more>"),  # a long name is cut where the path of the folder lets it end
    (re.compile(r"\b(?!127\.0\.0\.1)\d+\.\d+\.\d+\.\d+:\d+"), "<host>:<port>"),
    (re.compile(r"\{'[^{}]*'\}"), "{<set>}"),
    (re.compile(r"\b(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{12,}\b"), "<hash>"),
    (re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?= (?:s|ms|seconds)\b)"), "<number>"),
    (re.compile(r"\b(pid|process) \d+"), r"\1 <pid>"),
    (re.compile(r"(?<![\w.])\d+\.\d+\.\d+(?:\.?(?:dev|post|rc)\d+)?(?![\w.])"), "<version>"),
)

_heard: set[str] | None = None  # lines of the test that runs now, where it records any


def read(path: Path = FILE) -> dict[Entry, set[str]]:
    """Read the lines of every test."""
    kept: dict[Entry, set[str]] = {}
    place = name = ""
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        if line.startswith("["):
            place = line[1:-1]
        elif line.startswith("    "):
            kept[place, name].add(line[4:])
        elif line and not line.startswith("#"):
            name = line
            kept[place, name] = set()
    return kept


def write(kept: dict[Entry, set[str]], path: Path = FILE) -> None:
    """Write the lines of every test, sorted."""
    lines, last = [HEADER], ""
    for (place, name), said in sorted(kept.items()):
        if not said:
            continue
        if place != last:
            lines.append(f"\n[{place}]\n")
            last = place
        lines += [f"{name}\n", *(f"    {line}\n" for line in sorted(said))]
    path.write_text("".join(lines), encoding="utf-8")


def merged(
    kept: dict[Entry, set[str]],
    said: dict[Entry, set[str]],
    whole: set[Entry],
    existing: set[Entry] | None,
) -> dict[Entry, set[str]]:
    """Give the lines after a run: `said` replaces those of functions that ran in `whole` and adds to those of others.

    After a run of all tests `existing` names every function there is, and entries of others go. After any other run
    it is None, and only entries of files that are gone go.
    """
    found = {
        entry: set(lines)
        for entry, lines in kept.items()
        if (entry in existing if existing is not None else (TESTS / entry[0]).exists())
    }
    for entry, lines in said.items():
        found[entry] = set(lines) if entry in whole else found.get(entry, set()) | lines
    return found


def spoken(error: BaseException, folder: Path) -> str:
    """Give the line of an exception: its type and its text, without parts that vary.

    `folder` is the one that pytest makes temporary folders in.
    """
    text = str(error)
    for cause in _foreign(error):
        parts = {repr(cause), str(cause), str(getattr(cause, "strerror", None) or "")}
        for part in sorted(parts, key=len, reverse=True):  # the longest first, in every run
            for cut in (part, part[:200]):
                if len(cut) > 3:
                    text = text.replace(cut, f"<{type(cause).__name__}>")
    return f"{type(error).__name__}: {steady(text, folder)}"


def steady(text: str, folder: Path) -> str:
    """Put a name in angle brackets in place of every part that varies between runs and machines; give one line."""
    text = re.sub(rf"{re.escape(str(folder))}(/[^/\s'\"]+)?", "<folder>", text)
    # The checkout may have its Python inside, and may itself lie in the folder for temporary files.
    for place, name in ((Path(sys.prefix), "<python>"), (ROOT, "<root>"), (Path.home(), "<home>")):
        if len(place.parts) > 1:
            text = text.replace(str(place), name)
    text = re.sub(rf"{re.escape(tempfile.gettempdir())}/[^/\s'\",;:]+", "<temporary>", text)
    for pattern, name in _VOLATILE:
        text = pattern.sub(name, text)
    return text.replace("\n", "\\n").rstrip()


def _foreign(error: BaseException) -> Iterator[BaseException]:
    """Give the causes of an exception that other libraries or Python raised."""
    cause, seen = error.__cause__ or error.__context__, {error}
    while cause is not None and cause not in seen:
        seen.add(cause)
        if not isinstance(cause, FederationError) and not _raised_here(cause.__traceback__):
            yield cause
        cause = cause.__cause__ or cause.__context__


def _raised_here(trace: TracebackType | None) -> bool:
    """Tell that code of the project raised."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_filename.startswith(_PACKAGES)


def _entry(item: pytest.Item) -> Entry | None:
    """Give the entry of a test, or None for one that records nothing."""
    if not isinstance(item, pytest.Function) or not item.path.is_relative_to(TESTS):
        return None
    if getattr(item.obj, "is_hypothesis_test", False) or any(item.get_closest_marker(name) for name in _UNRECORDED):
        return None
    name = item.originalname if item.cls is None else f"{item.cls.__name__}::{item.originalname}"
    return item.path.relative_to(TESTS).as_posix(), name


class Messages:
    """Record, compare and, where the command line says so, accept messages."""

    def __init__(self, config: pytest.Config) -> None:
        self.accepting = config.getoption("accept_messages")
        self.allowed: dict[str, set[str]] | None = None
        self.collected: Counter[Entry] = Counter()
        self.passed: Counter[Entry] = Counter()
        self.said: dict[Entry, set[str]] = defaultdict(set)
        if FILE.exists() and os.environ.get("FEDERATION_MESSAGES") != "record":  # without the file nothing is compared
            self.allowed = defaultdict(set)
            for (_, name), lines in read().items():
                self.allowed[name] |= lines

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        if (entry := _entry(item)) is not None:
            self.collected[entry] += 1

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        global _heard
        entry = _entry(item)
        if entry is None:
            return (yield)
        _heard = heard = set()
        try:
            result = yield
        finally:
            _heard = None
        item.stash[_SAID] = (*entry, sorted(heard))
        if self.allowed is not None and not self.accepting and (new := heard - self.allowed.get(entry[1], set())):
            lines = "".join(f"\n    {line}" for line in sorted(new))
            pytest.fail(
                f"{FILE.relative_to(ROOT)} lacks messages of {entry[1]}:{lines}\nIf they are right, run `{COMMAND} "
                f"tests/{entry[0]}` and review the difference.",
                pytrace=False,
            )
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if self.accepting and report.when == "call" and report.passed and _SAID in item.stash:
            report.said = item.stash[_SAID]  # travels from a worker of xdist to the process that writes
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and hasattr(report, "said"):
            place, name, lines = report.said
            self.passed[place, name] += 1
            self.said[place, name].update(lines)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Learn from a worker of xdist what was collected: all workers collect the same."""
        found = getattr(node, "workeroutput", {}).get("messages", [])
        self.collected |= Counter({(place, name): count for place, name, count in found})

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if not self.accepting:
            return
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["messages"] = [[*entry, count] for entry, count in self.collected.items()]
            return
        whole = {entry for entry in self.said if self.passed[entry] == self.collected[entry]}
        ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        existing = set(self.collected) if ended and _all_tests(session.config) else None
        if any("[" in argument for argument in session.config.args):  # named cases of a function, not all of them
            whole = set()
        write(merged(read(), self.said, whole, existing))


_SAID = pytest.StashKey[tuple[str, str, list[str]]]()


def _all_tests(config: pytest.Config) -> bool:
    """Tell that this run collects every file of tests."""
    if any(config.getoption(name, None) for name in ("ignore", "ignore_glob", "deselect")):
        return False
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS or any(
        Path(config.invocation_params.dir, argument).resolve() == TESTS for argument in config.args
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--accept-messages",
        action="store_true",
        help="rewrite tests/messages.txt: the messages of the tests that run replace those that are kept",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Messages(config), "messages of tests")
    _listen(config)


def _listen(config: pytest.Config) -> None:
    """Hear what `pytest.raises` catches and what `capsys` and `capfd` read, until this run of pytest ends."""
    contexts, fixtures = type(pytest.raises(Exception)), pytest.CaptureFixture
    leave, readouterr = contexts.__exit__, fixtures.readouterr

    @functools.wraps(leave)
    def heard_leave(self: Any, kind: Any, error: BaseException | None, trace: Any) -> bool:
        __tracebackhide__ = True
        caught = leave(self, kind, error, trace)
        ours = isinstance(error, FederationError) or (isinstance(error, Exception) and _raised_here(trace))
        if caught and ours and _heard is not None:
            _heard.add(spoken(error, _folder(config)))
        return caught

    @functools.wraps(readouterr)
    def heard_readouterr(self: Any) -> Any:
        found = readouterr(self)
        if _heard is not None:
            _heard.update(steady(line, _folder(config)) for text in found for line in _LINE.findall(str(text)))
        return found

    def stop() -> None:
        contexts.__exit__, fixtures.readouterr = leave, readouterr

    contexts.__exit__, fixtures.readouterr = heard_leave, heard_readouterr
    config.add_cleanup(stop)


def _folder(config: pytest.Config) -> Path:
    """Give the folder that pytest makes temporary folders in."""
    return config._tmp_path_factory.getbasetemp()
