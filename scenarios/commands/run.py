"""`federation run`: run a scenario, or say what it would do."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from scenarios.runs.runner import Run


def run_command(
    scenario: str,
    *,
    out: Path | None,
    overrides: list[str],
    data_dir: Path | None,
    resume: bool,
    dry_run: bool,
    keep_models: bool,
    as_json: bool,
) -> None:
    """Run with live progress on standard error and the table of results at the end, also where variants failed.

    Raises `FederationError`s.
    """
    from scenarios.settings.schema import resolve

    resolved = resolve(scenario, overrides)
    if dry_run:
        from scenarios.runs.preview import preview
        from scenarios.settings.yaml_rules import dump

        planned = preview(resolved, data_dir)
        print(json.dumps(planned, indent=2) if as_json else dump(planned), end="\n" if as_json else "")
        return
    from scenarios.runs.progress import TerminalProgress
    from scenarios.runs.runner import IncompleteRunError, run

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
    from federation.grids.failures import describe
    from scenarios.reports.readings import hints
    from scenarios.reports.summary import summarise
    from scenarios.reports.terminal import tables

    if as_json:
        told = {
            "directory": str(finished.directory),
            "status": "failed" if finished.failed_variants else "done",
            "failures": finished.failures,
            "failed_variants": finished.failed_variants,
        }
        print(json.dumps(told))
        return
    Console().print(*tables(summarise(finished.rows)))
    for line in hints(finished.rows):
        print(f"hint: {line}", file=sys.stderr)
    if finished.failures:
        failed = sum(finished.failures.values())
        print(f"{failed} parties failed, over all worlds: {describe(finished.failures)}", file=sys.stderr)
    print(f"wrote {finished.directory}/: results.csv, ledger.json, models/, figures/, report.html")
