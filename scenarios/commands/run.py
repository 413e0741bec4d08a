"""`federation run`: run a scenario, or say what it would do."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from rich.console import Console


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
    """Run with live progress on standard error and the table of results at the end. Raises `FederationError`s."""
    from scenarios.schema import resolve

    resolved = resolve(scenario, overrides)
    if dry_run:
        from scenarios.preview import preview
        from scenarios.yaml_rules import dump

        planned = preview(resolved, data_dir)
        print(json.dumps(planned, indent=2) if as_json else dump(planned), end="\n" if as_json else "")
        return
    from federation.grids.failures import describe
    from scenarios.hints import hints
    from scenarios.progress import TerminalProgress
    from scenarios.runner import run
    from scenarios.summary import summarise
    from scenarios.terminal import tables

    progress = TerminalProgress()
    with progress:
        finished = run(resolved, out=out, data_dir=data_dir, resume=resume, keep_models=keep_models, progress=progress)
    if as_json:
        print(json.dumps({"directory": str(finished.directory), "status": "done", "failures": finished.failures}))
        return
    Console().print(*tables(summarise(finished.rows)))
    for line in hints(finished.rows):
        print(f"hint: {line}", file=sys.stderr)
    if finished.failures:
        failed = sum(finished.failures.values())
        print(f"{failed} parties failed, over all worlds: {describe(finished.failures)}", file=sys.stderr)
    print(f"wrote {finished.directory}/: results.csv, ledger.json, models/, figures/, report.html")
