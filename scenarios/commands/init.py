"""`federation init`: a first scenario from one's own file, by a few questions or by flags."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click
import typer
from typer import Argument, Option

from federation.contract.errors import InputError
from scenarios.commands.options import RANGE, AsJson, parsed_range
from scenarios.commands.output import save, tell

if TYPE_CHECKING:
    from scenarios.data.profile import Column, Profile

_Protect = Literal["party", "person", "row", "label"]
_Trust = Literal["aggregator", "none"]
_COLUMNS_SHOWN, _CANDIDATES_SHOWN = 40, 6

_PROTECT = """What shall nobody be able to tell from what is released?
  party   what a whole party holds, such as a hospital or a phone
  person  the rows of one person, who may have several
  row     one row
  label   one label; the features may be known to all
Protect"""
_TRUST = """Is there somebody whom all parties trust to add the noise?
  aggregator  yes, whoever adds up what parties send
  none        no, every party adds noise of its own, which needs more of it
Trust"""
_PUBLIC = """Are there rows of the same kind that are really public? They need no labels. Name their file, or leave this
empty: then some of your rows play them, which is for trying out only.
Public rows"""
_RANGE = """What is the smallest and the largest label that can be, from what is known without the file? Taken from
the file they would betray two of its rows. Write both with a comma between, such as 0,100.
Range"""


def init(
    file: Annotated[Path, Argument(metavar="FILE", help="Your rows: csv, npz, Parquet or svmlight.")],
    out: Annotated[Path, Option("--out", metavar="YAML", help="The scenario to write.")] = Path("my-scenario.yaml"),
    label: Annotated[str | None, Option(metavar="COLUMN", help="What is to be learned.")] = None,
    protect: Annotated[
        _Protect | None, Option(help="What the guarantee hides: all of a party (default), a person, a row or a label.")
    ] = None,
    trust: Annotated[
        _Trust | None, Option(help="aggregator (default): all trust it; none: every party adds its own noise.")
    ] = None,
    public: Annotated[
        Path | None, Option(metavar="FILE", help="Rows that are really public; without it some of FILE play them.")
    ] = None,
    group: Annotated[str | None, Option(metavar="COLUMN", help="Every value of it is a party.")] = None,
    person: Annotated[
        str | None, Option(metavar="COLUMN", help="Says whose row each is; for --protect person.")
    ] = None,
    parties: Annotated[int | None, Option(metavar="K", min=1, help="How many parties.")] = None,
    epsilon: Annotated[list[float], Option(help="Privacy loss of a release; repeatable.")] = [1.0, 3.0, 10.0],  # noqa: B006 - typer copies it
    label_range: Annotated[str | None, RANGE] = None,
    positive: Annotated[
        list[str], Option(metavar="CLASS", help="Counts as the positive one of two classes; repeatable.")
    ] = [],  # noqa: B006 - typer copies it
    as_json: AsJson = False,
) -> None:
    """Write a first scenario for your own file, with comments, that `federation run` takes as it is.

    Looks at the columns. On a terminal it asks what flags leave open; otherwise the defaults hold.
    """
    from scenarios.data.profile import profile
    from scenarios.runs.preview import preview
    from scenarios.settings.draft import Wish, draft
    from scenarios.settings.schema import resolve

    if out.exists():
        raise InputError(f"--out: {out} exists; name another file, or remove it")
    found, asking = profile(file, label), sys.stdin.isatty() and not as_json
    if asking:
        _show(found)
    label = label or _label(found, asking)
    protect = protect or _choice(_PROTECT, ("party", "person", "row", "label"), asking)
    if protect == "person" and person is None and asking:
        named_so = [column.name for column in found.columns if column.names_somebody]
        person = typer.prompt("Column that says whose row each is", default=named_so[0] if named_so else None, err=True)
    trust = trust or _choice(_TRUST, ("aggregator", "none"), asking)
    if public is None and asking:
        named = typer.prompt(_PUBLIC, default="", show_default=False, err=True)
        public = Path(named).expanduser() if named else None
    if label_range is None and asking and found.is_real(found.column(label, "--label")):
        label_range = typer.prompt(_RANGE, err=True)
    wish = Wish(
        label,
        protect,
        trust,
        source=_as_seen(out, file),
        public=None if public is None else _as_seen(out, public),
        group=group,
        person=person,
        parties=parties,
        epsilon=tuple(dict.fromkeys(epsilon)),
        label_range=None if label_range is None else parsed_range(label_range),
        positive=tuple(positive),
    )
    written = draft(found, wish)
    here = {"source": str(file.resolve()), **({} if public is None else {"auxiliary": str(public.resolve())})}
    preview(resolve({**written.plain, "data": written.plain["data"] | here}), None)  # it must run before it is written
    save("--out", out, written.to_yaml(out.name))
    if not (asking or as_json):
        _show(found)
    columns = [_described(column) for column in found.columns]
    record = {"scenario": str(out), "settings": written.plain, "remarks": list(written.remarks), "columns": columns}
    told = [*written.remarks, f"wrote {out}; run it with: federation run {out}"]
    tell(as_json, record, text=told, hidden=record)


def _as_seen(scenario: Path, file: Path) -> str:
    """The path of a file from the folder of the scenario."""
    return os.path.relpath(file.expanduser().resolve(), scenario.expanduser().resolve().parent)


def _label(found: Profile, asking: bool) -> str:
    """The column of the labels: the only one of such a name, or asked for."""
    candidates = [column.name for column in found.label_candidates()][:_CANDIDATES_SHOWN]
    obvious = found.obvious_label()
    if not asking and obvious is None:
        shown = ", ".join(candidates) or "none"
        raise InputError(f"--label: name the column that is to be learned; those that may be: {shown}")
    if not asking and obvious is not None:
        return obvious
    text = f"Which column is to be learned? Those that may be: {', '.join(candidates)}\nLabel"
    answer: str = typer.prompt(text, default=obvious or (candidates[0] if candidates else None), err=True)
    return answer


def _choice(question: str, answers: tuple[str, ...], asking: bool) -> Any:
    """One of the answers; the first where nobody can be asked."""
    if not asking:
        return answers[0]
    return typer.prompt(question, type=click.Choice(answers), default=answers[0], show_choices=False, err=True)


def _show(found: Profile) -> None:
    """The columns of a file as a table."""
    shown = found.columns[:_COLUMNS_SHOWN]
    left = len(found.columns) - len(shown)
    rows = f"{found.path}: {found.rows} rows, {len(found.columns)} columns"
    tell(False, [_described(column) for column in shown], text=[f"{rows}{f', {left} more than shown' if left else ''}"])


def _described(column: Column) -> dict[str, Any]:
    from scenarios.data.tables import cut

    values = ", ".join(cut(value) for value in list(column.counts)[:3])
    return {
        "column": cut(column.name),
        "holds": column.kind,
        "values": column.distinct,
        "missing": column.missing,
        "such as": values or "-",
    }
