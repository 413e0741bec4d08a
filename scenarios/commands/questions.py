"""What several commands ask on a terminal about one's own data, and what holds where nobody can be asked."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
import typer

from federation.contract.errors import InputError
from scenarios.commands.output import tell

if TYPE_CHECKING:
    from scenarios.data.profile import Column, Profile

Protect = Literal["party", "person", "row", "label"]
Trusted = Literal["aggregator", "secure", "none"]
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
    """One of the answers; the first where nobody can be asked."""
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
