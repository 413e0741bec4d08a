"""`federation report`: write the page about a run, or about several in comparison."""

from __future__ import annotations

import json
from pathlib import Path

REPORT = "report.html"


def report_command(directories: list[Path], out: Path | None, as_json: bool) -> None:
    """Write the report to DIR, here for several directories, or to `out`; print the accuracies and its path.

    With `as_json`, prints {"report", "runs": [{"directory", "variants"}]}. Raises `InputError`s.
    """
    from scenarios.figures import draw
    from scenarios.report import write_report
    from scenarios.results import read_results
    from scenarios.summary import summarise, tables

    path = out or (directories[0] / REPORT if len(directories) == 1 else Path(REPORT))
    rows = {directory: read_results(directory / "results.csv") for directory in directories}
    for directory, values in rows.items():
        if values:
            draw(values, directory / "figures", str(values[0]["scenario"]))
    write_report(directories, path)
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
