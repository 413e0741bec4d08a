"""`federation report`: write the page about a run, or about several in comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from rich.console import Console
from typer import Argument, Option

from federation.contract.errors import InputError
from scenarios.commands.options import AsJson
from scenarios.commands.output import tell

REPORT = "report.html"


def report_command(
    directories: Annotated[list[Path], Argument(metavar="DIR...", help="Run directories.")],
    out: Annotated[Path | None, Option("--out", metavar="FILE", help="Default: report.html in DIR.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write the report of one run again, or one report that compares several.

    The figures of each run are drawn again too. The report of several runs is written here unless --out says where.
    """
    from scenarios.reports.figures import draw
    from scenarios.reports.report import finished_rows, write_report
    from scenarios.reports.summary import summarise
    from scenarios.reports.terminal import tables

    path = out or (directories[0] / REPORT if len(directories) == 1 else Path(REPORT))
    rows = finished_rows(directories)
    for directory, values in rows.items():
        try:
            draw(values, directory / "figures", str(values[0]["scenario"]))
        except OSError as error:
            raise InputError(f"cannot write the figures to {directory}: {error.strerror}; allow it there") from error
    write_report(directories, path, rows)
    summaries = {directory: summarise(values) for directory, values in rows.items()}
    runs = [{"directory": str(d), "variants": [s.to_dict() for s in found]} for d, found in summaries.items()]
    for directory, found in ({} if as_json else summaries).items():
        if len(directories) > 1:
            print(directory)
        console = Console()
        console.print(*tables(found, console.width))
    record = {"report": str(path), "runs": runs}
    tell(as_json, record, text=[f"wrote {path}"], hidden=record)
