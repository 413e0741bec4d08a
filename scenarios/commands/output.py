"""How all commands tell what they found: one record, as JSON or as tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeGuard

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from federation.contract.errors import writing
from scenarios.commands.lines import fitted

_ENDLESS = 10_000  # columns of a terminal in which everything fits
_WIDE = 6  # columns from which on they stand closer, to fit a terminal of 80 characters


def tell(as_json: bool, record: object, *, text: Iterable[str] = (), hidden: Collection[str] = ()) -> None:
    """Print what was found on standard output: `record` as JSON, or for people the same in tables, and `text`.

    Every list of records in it is a table with a column per key, and what else it holds one of quantities and values.
    Of `hidden` keys people see nothing but what `text` says; a row's `note` stands below its table. Where a terminal is
    too narrow for a table every row of it is one of its own. `text` is `fitted`, but for parts of several lines.

    Examples:
        >>> tell(False, {"epsilon": 0.5, "to_be_read": True}, text=["That is little."])
         quantity   ┃ value
        ━━━━━━━━━━━━╇━━━━━━━
         epsilon    │ 0.5
         to be read │ yes
        That is little.
    """
    if as_json:
        print(json.dumps(record, indent=2))
        return
    found = record if isinstance(record, Mapping) else {"": record}
    lists = {key: value for key, value in found.items() if key not in hidden and _records(value)}
    names = [key for key in found if key not in {*hidden, *lists}]
    alone = [{"quantity": name.replace("_", " "), "value": _shown(found[name], digits=10)} for name in names]
    for title, rows in {"": alone, **lists}.items():
        cells = [{key: _shown(row[key]) for key in row if key not in {*hidden, "note"}} for row in rows]
        console = Console()
        for table in _tables(title, cells, console) if cells else ():
            console.print(table)
        for row in rows:
            if row.get("note"):
                print(fitted(f"{next(iter(row.values()))}: {row['note']}.", sys.stdout))
    for line in text:
        print(line if "\n" in line else fitted(line, sys.stdout))


def _tables(title: str, rows: Sequence[Mapping[str, str]], console: Console) -> list[Table]:
    """The rows in one table, or where words of it would be broken each in one of its own."""
    whole, endless = _table(title, rows), console.options.update(width=_ENDLESS)
    if Measurement.get(console, endless, whole).minimum <= console.width:
        return [whole]
    each = ([{"quantity": key.replace("_", " "), "value": value} for key, value in row.items()] for row in rows)
    return [_table(title, cells) for cells in each]


def _table(title: str, rows: Sequence[Mapping[str, str]]) -> Table:
    """A column per key; one without spaces is never broken."""
    table = Table(title=title.replace("_", " "), show_edge=False, padding=(0, 0 if len(rows[0]) >= _WIDE else 1))
    for key in rows[0]:
        head = key.replace("_", " ")
        whole = not any(" " in cell for cell in (head, *(row[key] for row in rows)))
        table.add_column(head, overflow="fold", no_wrap=whole)
    for row in rows:
        table.add_row(*row.values())
    return table


def _records(value: object) -> TypeGuard[Sequence[Mapping[str, object]]]:
    return isinstance(value, Sequence) and bool(value) and isinstance(value[0], Mapping)


def _shown(value: object, digits: int = 4) -> str:
    """A cell: floats with so many digits, those among several named numbers with seven."""
    match value:
        case None | bool():
            return {None: "-", True: "yes", False: "no"}[value]
        case float():
            return f"{value:.{digits}g}"
        case Mapping():
            return ", ".join(f"{name.replace('_', ' ')} {_shown(each, digits=7)}" for name, each in value.items())
        case list() | tuple():
            return ",".join(_shown(each, digits) for each in value)
    return str(value)


def save(option: str, path: Path, text: str) -> None:
    """Write a file that `option` names. Raises `InputError` where that is not possible."""
    with writing(f"to {option} {path}", "name another file"):
        path.write_text(text, encoding="utf-8", newline="")
