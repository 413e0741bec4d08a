"""`federation report`: write the page about a run, or about several in comparison, and what officers ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from typer import Argument, Option

from federation.contract.errors import writing
from scenarios.commands.options import AsJson
from scenarios.commands.output import tell

REPORT = "report.html"


def report_command(
    directories: Annotated[list[Path], Argument(metavar="DIR...", help="Run directories.")],
    out: Annotated[Path | None, Option("--out", metavar="FILE", help="Default: report.html in DIR.")] = None,
    as_json: AsJson = False,
    registry: Annotated[
        bool,
        Option(
            "--registry",
            help="Also draft an entry of OpenDP's Deployments Registry, and answer the questions of NIST SP 800-226: "
            "registry.yaml and sp800-226.yaml in every DIR.",
        ),
    ] = False,
) -> None:
    """Write the report of one run again, or one report that compares several.

    The guarantee page and the figures of each run are made again too. The report of several runs is written here
    unless --out says where. Of a deployed aggregator's directory there is a guarantee page only.
    """
    from scenarios.reports.evaluation import write_evaluation
    from scenarios.reports.evidence import evidence, is_world
    from scenarios.reports.officer import write_guarantee
    from scenarios.reports.registry import write_registry
    from scenarios.reports.report import finished_rows

    runs = [directory for directory in directories if not is_world(directory)]
    rows = finished_rows(runs)
    written = []
    for directory in directories:
        known = rows.get(directory, ())
        written.append(write_guarantee(directory, known))
        if registry:
            found = evidence(directory, known)
            written += [write_registry(directory, found), write_evaluation(directory, found)]
    record: dict[str, Any] = {"written": [str(path) for path in written]}
    if runs:
        path = out or (runs[0] / REPORT if len(runs) == 1 else Path(REPORT))
        record |= {"report": str(path), "runs": _report(rows, path, as_json)}
        written.append(path)
    tell(as_json, record, text=[f"wrote {path}" for path in written], hidden=record)


def _report(rows: dict[Path, list[dict[str, Any]]], path: Path, as_json: bool) -> list[dict[str, Any]]:
    """Write the report of these runs, draw their figures and print their tables; the same as a record."""
    from scenarios.reports.figures import draw
    from scenarios.reports.report import write_report
    from scenarios.reports.summary import summarise
    from scenarios.reports.terminal import tables

    for directory, values in rows.items():
        with writing(f"the figures to {directory}", "allow it there"):
            draw(values, directory / "figures", str(values[0]["scenario"]))
    write_report(list(rows), path, rows)
    summaries = {directory: summarise(values) for directory, values in rows.items()}
    for directory, found in ({} if as_json else summaries).items():
        if len(rows) > 1:
            print(directory)
        console = Console()
        for table in tables(found, console.width):
            console.print(table)
    return [{"directory": str(d), "variants": [s.to_dict() for s in found]} for d, found in summaries.items()]
