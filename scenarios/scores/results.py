"""results.csv: tidy, one row per measured value; holds no clock time, so equal runs give equal files."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from federation.contract.errors import InputError
from federation.contract.files import is_file

COLUMNS = (
    "scenario", "protocol", "variant", "default", "epsilon", "delta", "unit", "split", "noise", "metric", "value",
)  # fmt: skip
NOBODY = "none"  # the unit of what has no guarantee
AIMED = "aimed_epsilon"  # the metric of what a release aimed at, where it keeps another epsilon
REMEDY = "name a directory that `federation run` has written"
_NUMBERS = {"epsilon": float, "delta": float, "value": float, "split": int, "noise": int, "default": int}

Row = dict[str, Any]


def protection(guarantee: Mapping[str, Any]) -> Row:
    """The columns `epsilon`, `delta` and `unit` of a release with this guarantee (`to_dict` of federation.guarantee).

    Without a guarantee the unit is `NOBODY`, and epsilon and delta are what is claimed, or infinity and 0.

    Examples:
        >>> protection({"non_private": True})
        {'epsilon': inf, 'delta': 0.0, 'unit': 'none'}
    """
    if guarantee.get("non_private"):
        epsilon, delta = guarantee.get("claimed", (math.inf, 0.0))
        return {"epsilon": epsilon, "delta": delta, "unit": NOBODY}
    return {name: guarantee[name] for name in ("epsilon", "delta", "unit")}


def missed(epsilon: float, aim: float) -> dict[str, float]:
    """The metric `AIMED` of a release with another epsilon than it aimed at; nothing for one that meets its aim.

    Infinity stands for no guarantee, or no aim.

    Examples:
        >>> missed(4.6, aim=1.0), missed(1.0, aim=1.0)
        ({'aimed_epsilon': 1.0}, {})
    """
    return {} if epsilon == aim or math.isinf(epsilon) or math.isinf(aim) else {AIMED: aim}


def write_results(path: Path, rows: Iterable[Row], swept: Sequence[str]) -> None:
    """Write rows with the fixed columns and one per swept key; replaces the file as a whole or not at all."""
    partial = path.with_name(path.name + ".partial")
    with partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*COLUMNS, *swept], restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    partial.replace(path)


def read_results(path: Path) -> list[Row]:
    """Rows with epsilon, delta and value as floats, split, noise and default as integers, the rest as text.

    Raises `InputError` when the file is missing or not such a table.
    """
    if not is_file(path):
        raise InputError(f"there is no {path} to read; {REMEDY}")
    try:
        with path.open(newline="", encoding="utf-8") as file:
            table = csv.DictReader(file)
            rows = list(table)
        if missing := set(COLUMNS).difference(table.fieldnames or ()):
            raise ValueError(f"it lacks the columns {', '.join(sorted(missing))}")
        if any(None in row or None in row.values() for row in rows):
            raise ValueError("not every row has a cell for each column")
        return [{name: _NUMBERS.get(name, str)(value) for name, value in row.items()} for row in rows]
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}; {REMEDY}") from error
    except (ValueError, TypeError, csv.Error) as error:
        raise InputError(f"{path} is not a results table: {error}; {REMEDY}") from error
