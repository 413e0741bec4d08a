"""`federation run`: run a scenario, or say what it would do."""

from __future__ import annotations

import shlex
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from rich.console import Console
from typer import Option

from scenarios.commands.lines import remark
from scenarios.commands.logs import LogFile, Quiet, Verbose, logged
from scenarios.commands.options import AsJson, DataDirectory, ScenarioName, Settings
from scenarios.commands.output import tell

if TYPE_CHECKING:
    from scenarios.runs.finished_run import Run

Engine = Literal["inline", "ray", "flower"]


_COLOURS = {"useful": "green", "no better": "red", "cannot be told": "yellow", None: ""}


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
    from scenarios.estimates.estimate import estimate
    from scenarios.estimates.words import spoken
    from scenarios.runs.preview import preview
    from scenarios.runs.progress import LoggedProgress, Progress, TerminalProgress
    from scenarios.runs.runner import IncompleteRunError, run
    from scenarios.settings.schema import resolve
    from scenarios.settings.yaml_rules import dump

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
    from scenarios.reports.series import is_drawable
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
    from scenarios.reports.bag_remarks import bag_remarks
    from scenarios.reports.over_periods import spent_over_periods
    from scenarios.reports.summary import summarise
    from scenarios.reports.terminal import tables
    from scenarios.reports.verdict_words import MARKS
    from scenarios.scores.metrics import BALANCED, primary
    from scenarios.scores.results import REMEDY
    from scenarios.scores.unscored import unscored

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
