"""`federation init`: a first scenario from the user's own file, by a few questions or by flags.

The questions about own data are shared with other commands; each has a default where no terminal is available.
"""

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


Protect = Literal["party", "person", "row", "label"]
Trusted = Literal["aggregator", "secure", "none"]


def init(
    file: Annotated[Path, Argument(metavar="FILE", help="Your rows: csv, npz, Parquet or svmlight.")],
    out: Annotated[Path, Option("--out", metavar="YAML", help="The scenario to write.")] = Path("my-scenario.yaml"),
    label: Annotated[str | None, Option(metavar="COLUMN", help="What is to be learned.")] = None,
    protect: Annotated[
        Protect | None,
        Option(help="What the guarantee hides: all of a party (default), a person, a row or a label."),
    ] = None,
    trust: Annotated[
        Trusted | None,
        Option(help="aggregator (default): all trust it; secure: a sum only; none: every party adds its own noise."),
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

    Looks at the columns, and asks `federation advise` which protocols to compare. On a terminal it asks what flags
    leave open; otherwise the defaults hold.
    """
    from scenarios.advice.proposed_scenario import advised, checked
    from scenarios.advice.target import of_file, wished
    from scenarios.data.profile import profile
    from scenarios.settings.draft import Wish

    if out.exists():
        raise InputError(f"--out: {out} exists; name another file, or remove it")
    found, asking = profile(file, label), sys.stdin.isatty() and not as_json
    if asking:
        show_columns(found)
    label = label or column_of_labels(found, asking)
    protect = protect or choice(PROTECT, ("party", "person", "row", "label"), asking)
    assert protect is not None, "it is one of the answers"
    if protect == "person" and person is None and asking:
        person = column_of_persons(found)
    trust = trust or choice(TRUST, ("aggregator", "secure", "none"), asking)
    assert trust is not None, "it is one of the answers"
    if public is None and asking:
        named = typer.prompt(PUBLIC, default="", show_default=False, err=True)
        public = Path(named).expanduser() if named else None
    if label_range is None and asking and found.is_real(found.column(label, "--label")):
        label_range = typer.prompt(RANGE_ASKED, err=True)
    wish = Wish(
        label,
        protect,
        trust,
        source=as_seen(out, file),
        public=None if public is None else as_seen(out, public),
        group=group,
        person=person,
        parties=parties,
        epsilon=tuple(dict.fromkeys(epsilon)),
        label_range=None if label_range is None else parsed_range(label_range),
        positive=tuple(positive),
    )
    others = None if public is None else profile(public)
    subject = of_file(found, wish, wished(wish, protect == "label"), others, here=(file, public))
    written = advised(subject)
    checked(written, subject)
    save("--out", out, written.to_yaml(out.name, "init"))
    if not (asking or as_json):
        show_columns(found)
    columns = [described(column) for column in found.columns]
    record = {"scenario": str(out), "settings": written.plain, "remarks": list(written.remarks), "columns": columns}
    told = [*written.remarks, f"wrote {out}; run it with: federation run {out}"]
    tell(as_json, record, text=told, hidden=record)


Features = Literal["public", "private"]
_COLUMNS_SHOWN, _CANDIDATES_SHOWN = 40, 6

PROTECT = """What shall nobody be able to tell from what is released?
  party   what a whole party holds, such as a hospital or a phone
  person  the rows of one person, who may have several
  row     one row
  label   one label; the features may be known to all
Protect"""
TRUST = """Is there somebody whom all parties trust?
  aggregator  yes, whoever adds up what parties send may see it, and adds the noise
  secure      only to add up: parties mask what they send, and nothing but sums is seen
  none        no, every party adds noise of its own, which needs more of it
Trust"""
FEATURES = """May everybody see the rows without what is to be learned?
  private  no
  public   yes, only what is to be learned is private
Features"""
TASK = """What is to be learned?
  regression  a number of every row
  binary      which of two classes a row is of
  multiclass  which of several classes a row is of
  ratio       how frequent the classes are in a set of rows, from sets of which it is known
Task"""
_NUMBERS = {
    "rows": "How many private rows do all parties have together?\nRows",
    "columns": "How many features does a row have?\nFeatures",
    "classes": "How many classes are there?\nClasses",
    "bags": "How many sets of rows does a party have?\nSets",
    "bag_rows": "How many rows does such a set have?\nRows of a set",
    "parties": "How many parties are the rows spread over?\nParties",
}
PUBLIC = """Are there rows of the same kind that are really public? They need no labels. Name their file, or leave this
empty: then some of your rows play them, which is for trying out only.
Public rows"""
RANGE_ASKED = """What is the smallest and the largest label that can be, from what is known without the file? Taken from
the file they would betray two of its rows. Write both with a comma between, such as 0,100.
Range"""


def choice(question: str, answers: tuple[str, ...], asking: bool) -> Any:
    """Return the user's choice among the answers; the first where no terminal is available."""
    if not asking:
        return answers[0]
    return typer.prompt(question, type=click.Choice(answers), default=answers[0], show_choices=False, err=True)


def number(name: str, default: int | None = None) -> int:
    """A whole number, asked for."""
    least = 2 if name in ("rows", "classes") else 1
    answer: int = typer.prompt(_NUMBERS[name], type=click.IntRange(least), default=default, err=True)
    return answer


def column_of_labels(found: Profile, asking: bool) -> str:
    """The column of the labels: the only one of such a name, or asked for. Raises `InputError` where it is neither."""
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


def column_of_persons(found: Profile) -> str:
    """The column that says whose row each is, asked for."""
    named_so = [column.name for column in found.columns if column.names_somebody]
    default = named_so[0] if named_so else None
    answer: str = typer.prompt("Column that says whose row each is", default=default, err=True)
    return answer


def as_seen(scenario: Path, file: Path) -> str:
    """The path of a file from the folder of the scenario."""
    return os.path.relpath(file.expanduser().resolve(), scenario.expanduser().resolve().parent)


def show_columns(found: Profile) -> None:
    """The columns of a file as a table."""
    shown = found.columns[:_COLUMNS_SHOWN]
    left = len(found.columns) - len(shown)
    rows = f"{found.path}: {found.rows} rows, {len(found.columns)} columns"
    tell(False, [described(column) for column in shown], text=[f"{rows}{f', {left} more than shown' if left else ''}"])


def described(column: Column) -> dict[str, Any]:
    """A column as a row of a table."""
    from scenarios.data.tables import cut

    values = ", ".join(cut(value) for value in list(column.counts)[:3])
    return {
        "column": cut(column.name),
        "holds": column.kind,
        "values": column.distinct,
        "missing": column.missing,
        "such as": values or "-",
    }
