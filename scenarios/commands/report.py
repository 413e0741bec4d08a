"""`federation report`: write the page about a run, or about several in comparison."""

from __future__ import annotations

import json
from pathlib import Path

from federation.contract.errors import InputError

REPORT = "report.html"


def report_command(directories: list[Path], out: Path | None, as_json: bool) -> None:
    """Draw the figures again and write the report to DIR, here for several directories, or to `out`.

    Prints the table of results and the report's path; with `as_json`, {"report", "runs": [{"directory", "variants"}]}.
    Raises `InputError`s.
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
    if as_json:
        runs = [{"directory": str(d), "variants": [s.to_dict() for s in found]} for d, found in summaries.items()]
        print(json.dumps({"report": str(path), "runs": runs}, indent=2))
        return
    from rich.console import Console

    for directory, found in summaries.items():
        if len(directories) > 1:
            print(directory)
        Console().print(*tables(found))
    print(f"wrote {path}")
