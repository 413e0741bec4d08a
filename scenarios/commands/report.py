"""`federation report` and `federation figure`: pages about one run or several, and figures for papers."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from typer import Argument, Option

from federation.contract.errors import InputError, nearest_name, writing
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
    from scenarios.reports.evidence import evidence, is_world
    from scenarios.reports.guarantee_page import write_guarantee
    from scenarios.reports.registry_drafts import write_drafts
    from scenarios.reports.report import finished_rows

    runs = [directory for directory in directories if not is_world(directory)]
    rows = finished_rows(runs)
    written = []
    for directory in directories:
        known = rows.get(directory, ())
        written.append(write_guarantee(directory, known))
        if registry:
            written += write_drafts(directory, evidence(directory, known))
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
    from scenarios.reports.tables import tables

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


def figure(
    directories: Annotated[
        list[Path], Argument(metavar="DIR...", help="Run directories; several make one curve of each variant.")
    ],
    x: Annotated[
        str,
        Option(
            "--x",
            metavar="NAME",
            help="epsilon, inverse_epsilon, parties, public_rows, period or a setting that differs.",
        ),
    ] = "epsilon",
    metric: Annotated[str | None, Option(metavar="NAME", help="Default: that of the report.")] = None,
    only: Annotated[
        list[str], Option("--only", metavar="A,B", help="Show these variants, in this order; repeatable.")
    ] = [],  # noqa: B006 - typer copies it
    label: Annotated[
        list[str], Option("--label", metavar="A=TEXT", help="Another name of a variant in the legend; repeatable.")
    ] = [],  # noqa: B006 - typer copies it
    at: Annotated[
        list[str],
        Option("--at", metavar="KEY=VALUE", help="Which of several values, of what is not on the axis; repeatable."),
    ] = [],  # noqa: B006 - typer copies it
    size: Annotated[str, Option(metavar="SIZE", help="column, page, or WIDTHxHEIGHT in inches.")] = "column",
    formats: Annotated[str, Option("--format", metavar="A,B", help="Of pdf, svg and png.")] = "pdf",
    out: Annotated[
        Path | None, Option("--out", metavar="FILE", help="Without its ending; default: METRIC-NAME of --x.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Draw a figure for a paper: no title, fonts embedded, curves that a black-and-white print tells apart.

    Bars are 95 % intervals of the means, with the splits as units. What its caption should say is printed.
    """
    from scenarios.reports.axes import FORMATS
    from scenarios.reports.paper_figure import collect, write
    from scenarios.reports.report import finished_rows

    wanted = list(dict.fromkeys(_names([formats])))
    for one in wanted:
        if one not in FORMATS:
            raise InputError(f"--format '{one}' is none of {', '.join(FORMATS)}{nearest_name(one, FORMATS)}")
    found = collect(finished_rows(directories), x=x, metric=metric, only=_names(only), at=dict(map(_pair, at)))
    stem = out or Path(f"{found.plot.metric}-{x}")
    if stem.suffix.removeprefix(".") in FORMATS:
        stem = stem.with_suffix("")
    paths = write(found.plot, stem, wanted, size, _labels(label, found.names))
    record = {
        "files": list(map(str, paths)),
        "x": x,
        "metric": found.plot.metric,
        "variants": list(found.names),
        "caption": found.caption,
        "remarks": list(found.remarks),
    }
    text = [
        f"caption: {found.caption}",
        *(f"hint: {remark}" for remark in found.remarks),
        f"wrote {', '.join(record['files'])}",
    ]
    tell(as_json, record, text=text, hidden=record)


def _names(texts: Iterable[str]) -> list[str]:
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals and value):
        raise InputError(f"--at expects KEY=VALUE such as epsilon=1, got '{text}'")
    return key, value


def _labels(texts: Sequence[str], names: Mapping[str, str]) -> dict[str, str]:
    """NAME=TEXT by the short name, for the short or the whole one (`names`), which may have equals signs of its own.

    Raises `InputError` naming those that there are.
    """
    found = {}
    short = {**{name: name for name in names.values()}, **names}
    for text in texts:
        known = max((name for name in short if text.startswith(f"{name}=")), key=len, default=None)
        if known is None or text == f"{known}=":
            given = text.rpartition("=")[0] or text
            raise InputError(
                f"--label expects VARIANT=TEXT with one of the variants {', '.join(names.values())}; got '{text}'"
                f"{nearest_name(given, short)}"
            )
        found[short[known]] = text[len(known) + 1 :]
    return found
