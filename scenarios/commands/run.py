"""`federation run`: run a scenario, or show what the run would do.

A running scenario prints nothing, its progress or every phase, and logs everything to a file.
"""

from __future__ import annotations

import logging
import shlex
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from rich.console import Console
from typer import Option

from federation.contract.errors import FederationError, InputError, told, writing
from scenarios.commands.options import AsJson, DataDirectory, ScenarioName, Settings
from scenarios.commands.output import remark, tell

if TYPE_CHECKING:
    from scenarios.runs.finished_run import Run


Engine = Literal["inline", "ray", "flower"]


_COLOURS = {"useful": "green", "no better": "red", "cannot be told": "yellow", None: ""}
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print errors and the path of the report, nothing else.")]
Verbose = Annotated[
    bool, Option("--verbose", "-v", help="Say versions, seed, every phase and every world, in place of bars.")
]
LogFile = Annotated[
    Path | None,
    Option("--log-file", metavar="FILE", help="Add all messages here with their times, also those of Flower and Ray."),
]


def run_command(
    scenario: ScenarioName,
    out: Annotated[Path | None, Option("--out", metavar="DIR", help="Run directory; default: runs/NAME.")] = None,
    settings: Settings = [],  # noqa: B006 - typer copies it
    engine: Annotated[Engine | None, Option("--engine", help="Short for --set engine.kind=...")] = None,
    data_dir: DataDirectory = None,
    resume: Annotated[
        bool,
        Option("--resume", help="Go on with the run, with what is unfinished or failed; where there is none start it."),
    ] = False,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Say what would be done, and what it would cost; write nothing.")
    ] = False,
    keep_models: Annotated[
        bool, Option("--keep-models", help="Keep the models of all variants, not of the default only.")
    ] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    log_file: LogFile = None,
    as_json: AsJson = False,
) -> None:
    """Run a scenario: train, release, score; write results, ledger, figures and a report.

    SCENARIO is a file, or the name of a library scenario.
    """
    from scenarios.estimates.estimate import estimate, spoken
    from scenarios.runs.progress import LoggedProgress, Progress, TerminalProgress
    from scenarios.runs.runner import IncompleteRunError, preview, run
    from scenarios.settings.loader import dump
    from scenarios.settings.schema import resolve

    with logged(quiet=quiet, verbose=verbose, file=log_file), ExitStack() as stack:
        resolved = resolve(scenario, settings if engine is None else [*settings, f"engine.kind={engine}"])
        if dry_run:
            started = time.perf_counter()
            planned = preview(resolved, data_dir)
            expected = estimate(resolved, data_dir, time.perf_counter() - started)
            plain = {**planned, "estimate": expected.to_dict()}
            text = dump({**planned, "estimate": spoken(expected)}).rstrip("\n")
            tell(as_json, plain, text=[text], hidden=plain)
            return
        shown = Progress() if quiet or verbose else stack.enter_context(TerminalProgress())
        progress = LoggedProgress(shown)
        try:
            finished = run(
                resolved, out=out, data_dir=data_dir, resume=resume, keep_models=keep_models, progress=progress
            )
        except IncompleteRunError as error:
            stack.close()
            again = [scenario, *(part for setting in settings for part in ("--set", setting))]
            again += ["--engine", engine] if engine else []
            again += ["--data-dir", str(data_dir)] if data_dir else []
            resumed = ["federation", "run", *again, "--resume", "--out", str(error.run.directory)]
            _tell(error.run, as_json, quiet, shlex.join(resumed))
            raise
        stack.close()
        _tell(finished, as_json, quiet, _next(finished))


def _next(finished: Run) -> str:
    """What is most useful now: a figure where there are curves, or else to apply the model to other rows."""
    from scenarios.reports.paper_figure import is_drawable
    from scenarios.settings.words import PERIOD

    if any(PERIOD in row for row in finished.rows):
        return shlex.join(["federation", "figure", str(finished.directory), "--x", PERIOD])
    model = min((path.name for path in (finished.directory / "models").glob("*")), default=None)
    if model is None or is_drawable(finished.rows):
        return shlex.join(["federation", "figure", str(finished.directory)])
    return shlex.join(["federation", "predict", str(finished.directory), "--variant", model, "FILE"])


def _tell(finished: Run, as_json: bool, quiet: bool, following: str) -> None:
    """What was measured, what may be read from it, where all is, and the command to go on with."""
    from rich.text import Text

    from federation.contract.files import read_object
    from federation.engines.sending import describe
    from scenarios.reports.assessment_texts import MARKS, bag_remarks
    from scenarios.reports.evidence import spent_over_periods
    from scenarios.reports.summary import summarise
    from scenarios.reports.tables import tables
    from scenarios.scores.results import BALANCED, REMEDY, primary, unscored

    report = str(finished.directory / "report.html")
    record = {
        "directory": str(finished.directory),
        "report": report,
        "next": following,
        "status": "failed" if finished.failed_variants else "done",
        "failures": finished.failures,
        "failed_variants": finished.failed_variants,
        "verdict": [one.to_dict() for one in finished.verdicts],
    }
    if not (as_json or quiet):
        console = Console(highlight=False)
        for finding, sentence in finished.sayings:
            console.print(Text(f"{MARKS[finding]} {sentence}", style=_COLOURS[finding]))
        metrics = [primary(finished.rows).name, *(["auc"] if primary(finished.rows).name == BALANCED else [])]
        for metric in metrics:
            for table in tables(summarise(finished.rows, metric), console.width):
                console.print(table)
        for line in spent_over_periods(read_object(finished.directory / "ledger.json", REMEDY), parts=False):
            print(line)
        for line in (*bag_remarks(finished.rows), *unscored(finished.rows)):
            remark(f"hint: {line}")
        if finished.failures:
            failed = sum(finished.failures.values())
            remark(f"{failed} parties failed, over all worlds: {describe(finished.failures)}")
        print(f"wrote {finished.directory}/: results.csv, ledger.json, models/, figures/, guarantee.html")
    text = [report] if quiet else [f"report: {report}", f"next: {following}"]
    tell(as_json, record, text=text, hidden=record)


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
    handler.addFilter(_comes_first)
    others = [(name, _Relay(handler), logging.INFO) for name in _WITH_CONSOLES]
    return [("", handler, logging.WARNING), *others, *((name, handler, logging.DEBUG) for name in _OURS)]


class _Relay(logging.Handler):
    """Passes on to another handler, whose format nobody changes, as Ray does that of all that its own logger has."""

    def __init__(self, other: logging.Handler) -> None:
        super().__init__()
        self._other = other

    def emit(self, record: logging.LogRecord) -> None:
        self._other.handle(record)


def _comes_first(record: logging.LogRecord) -> bool:
    """Let a record pass the first time only: it comes from its own logger, and from those above it."""
    first = not hasattr(record, "_kept")
    record._kept = True
    return first
