"""`federation reproduce`: tables and figures of papers, measured again, beside what is printed there."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from federation.contract.errors import FederationError, InputError
from scenarios.commands import options as completion
from scenarios.commands.options import AsJson, DataDirectory
from scenarios.commands.output import tell

if TYPE_CHECKING:
    from scenarios.reproductions.measure import IncompleteItemError, PaperRuns
    from scenarios.reproductions.paper import Item, Kept, Paper
    from scenarios.runs.progress import Progress

OUT = Path("runs/reproductions")


def reproduce_command(
    name: Annotated[
        str | None,
        Argument(metavar="PAPER", help="Without it papers and items are listed.", autocompletion=completion.papers),
    ] = None,
    only: Annotated[list[str], Option("--only", metavar="A,B", help="These tables and figures; repeatable.")] = [],  # noqa: B006 - typer copies it
    quick: Annotated[bool, Option("--quick", help="Fewer splits, and less of what takes long: some minutes.")] = False,
    splits: Annotated[
        int | None, Option("--splits", metavar="N", min=1, help="In place of what the scenarios say.")
    ] = None,
    out: Annotated[
        Path | None, Option("--out", metavar="DIR", help="Where all goes; default: runs/reproductions, or -quick.")
    ] = None,
    data_dir: DataDirectory = None,
    as_json: AsJson = False,
) -> None:
    """Measure the tables and figures of a paper again, and show them beside the values that it prints.

    Every cell says what the paper has, ours as published, our default at the same guarantee, and why they differ. What
    was interrupted goes on where it was; what fails costs nothing else.
    """
    from scenarios.reproductions.measure import PaperRuns
    from scenarios.reproductions.pages import write
    from scenarios.reproductions.paper import items, names, paper

    if name is None:
        papers = [paper(each) for each in names()]
        record = [_described(each, item, data_dir) for each in papers for item in each.items]
        cited = [f"{each.name}: {each.citation}" for each in papers]
        tell(as_json, {"items": record}, text=[*cited, "next: federation reproduce PAPER --quick"])
        return
    chosen = paper(name)
    wanted = items(chosen, [each.strip() for text in only for each in text.split(",") if each.strip()])
    folder = out or (OUT.with_name(f"{OUT.name}-quick") if quick else OUT)
    if folder.is_file():
        raise InputError(f"--out {folder} is a file; name a directory")
    runs = PaperRuns(chosen, folder, quick, splits, data_dir)
    with runs.alone():
        records, failures = _measure(runs, wanted, as_json)
        if not records:
            raise _together(failures)
        page = str(write(chosen, folder))
    following = [] if not quick and splits is None else [f"next: federation reproduce {chosen.name}, for all splits"]
    tell(as_json, {"items": records, "page": page}, text=[f"page: {page}", *following], hidden=("items", "page"))
    if failures:
        raise _together(failures)


def _measure(
    runs: PaperRuns, wanted: Sequence[Item], as_json: bool
) -> tuple[dict[str, Any], list[IncompleteItemError]]:
    """Item by item, each told when it is done; what fails of one costs no other, and is returned."""
    from scenarios.reproductions.measure import IncompleteItemError, reproduce

    records, failures = {}, []
    for item in wanted:
        kept: Kept | None
        with ExitStack() as stack:
            if not as_json:
                runs = replace(runs, progress=partial(_shown, stack))
            try:
                kept = reproduce(runs, item)
            except IncompleteItemError as error:
                failures.append(error)
                kept = error.kept
        if kept is not None:
            records[item.name] = _told(runs.paper, item, kept, as_json)
    return records, failures


def _together(failures: Sequence[IncompleteItemError]) -> FederationError:
    """One error that says all."""
    found = FederationError("\n".join(map(str, failures)))
    found.exit_code = failures[0].exit_code
    return found


def _shown(stack: ExitStack, title: str) -> Progress:
    """Bars of the run that begins; those of the run before it end."""
    from scenarios.runs.progress import TerminalProgress

    stack.close()
    bars = stack.enter_context(TerminalProgress())
    bars.note(title)
    return bars


def _told(paper: Paper, item: Item, kept: Kept, as_json: bool) -> dict[str, Any]:
    """What was found of one item, printed for people."""
    from scenarios.reproductions.compare import cells, claim_lines, claims, lines, unexplained, used

    compared, tested = cells(paper, item, kept), claims(item, kept)
    reasons = used(compared, tested)
    said = {
        "reasons": [f"{n}. {one.kind}: {one.text}" for n, one in enumerate(reasons, 1)],
        "data": [f"{setting}: {text}" for setting, text in {**kept.record.data, **kept.record.missing}.items()],
        "unexplained": [f"not explained: {one}" for one in unexplained([*compared, *tested])],
    }
    shown = {item.title: lines(item, compared, reasons), "claims": claim_lines(item, tested, reasons)}
    record = {**{key: rows for key, rows in shown.items() if rows}, **said}
    if not as_json:
        tell(False, record, text=[line for group in said.values() for line in group], hidden=said)
    return record


def _described(paper: Paper, item: Item, data_dir: Path | None) -> dict[str, object]:
    """What an item needs: data, and minutes of one core."""
    from scenarios.reproductions.measure import PaperRuns, sources

    runs = PaperRuns(paper, OUT, data_dir=data_dir)
    named = [(part.setting, runs.scenario(part)) for part in item.parts]
    data = sorted({source for _, scenario in named for source in sources(scenario)})
    lacking = [setting for setting, scenario in named if runs.lacking(scenario)]
    full, quick = item.minutes
    return {
        "paper": paper.name,
        "item": item.name,
        "what": item.title,
        "data": ", ".join(data) or "none",
        "not here": ", ".join(lacking) or "-",
        "minutes": f"{full:g}, quick {quick:g}",
    }
