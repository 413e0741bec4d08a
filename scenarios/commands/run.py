"""`federation run`: run a scenario, or say what it would do."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from rich.console import Console
from typer import Option

from scenarios.commands.options import AsJson, DataDirectory, ScenarioName, Settings
from scenarios.commands.output import tell

if TYPE_CHECKING:
    from scenarios.runs.finished_run import Run

Engine = Literal["inline", "ray", "flower"]


_COLOURS = {"useful": "green", "no better": "red", "cannot be told": "yellow"}


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
    dry_run: Annotated[bool, Option("--dry-run", help="Say what would be done; train nothing.")] = False,
    keep_models: Annotated[
        bool, Option("--keep-models", help="Keep the models of all variants, not of the default only.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run a scenario: train, release, score; write results, ledger, figures and a report.

    SCENARIO is a file, or the name of a library scenario.
    """
    from scenarios.runs.preview import preview
    from scenarios.runs.progress import TerminalProgress
    from scenarios.runs.runner import IncompleteRunError, run
    from scenarios.settings.schema import resolve
    from scenarios.settings.yaml_rules import dump

    resolved = resolve(scenario, settings if engine is None else [*settings, f"engine.kind={engine}"])
    if dry_run:
        planned = preview(resolved, data_dir)
        tell(as_json, planned, text=[dump(planned).rstrip("\n")], hidden=planned)
        return
    try:
        with TerminalProgress() as progress:
            finished = run(
                resolved, out=out, data_dir=data_dir, resume=resume, keep_models=keep_models, progress=progress
            )
    except IncompleteRunError as error:
        _tell(error.run, as_json)
        raise
    _tell(finished, as_json)


def _tell(finished: Run, as_json: bool) -> None:
    """What was measured, what may be read from it, and where all is."""
    from rich.text import Text

    from federation.grids.failures import describe
    from scenarios.reports.bag_remarks import bag_remarks
    from scenarios.reports.summary import summarise
    from scenarios.reports.terminal import tables
    from scenarios.scores.metrics import BALANCED, primary
    from scenarios.scores.unscored import unscored

    record = {
        "directory": str(finished.directory),
        "status": "failed" if finished.failed_variants else "done",
        "failures": finished.failures,
        "failed_variants": finished.failed_variants,
        "verdict": [one.to_dict() for one in finished.verdicts],
    }
    if not as_json:
        console = Console(highlight=False)
        for finding, sentence in finished.sayings:
            console.print(Text(sentence, style=_COLOURS[finding]))
        console.print(*tables(summarise(finished.rows)))
        if primary(finished.rows).name == BALANCED and (ranking := summarise(finished.rows, "auc")):
            console.print(*tables(ranking))
        for line in (*bag_remarks(finished.rows), *unscored(finished.rows)):
            print(f"hint: {line}", file=sys.stderr)
        if finished.failures:
            failed = sum(finished.failures.values())
            print(f"{failed} parties failed, over all worlds: {describe(finished.failures)}", file=sys.stderr)
    written = f"wrote {finished.directory}/: results.csv, ledger.json, models/, figures/, report.html, guarantee.html"
    tell(as_json, record, text=[written], hidden=record)
