"""`federation predict`: apply a released model to new rows."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from federation.contract.errors import InputError

if TYPE_CHECKING:
    from scenarios.scores.prediction import RatioPrediction, Used


def predict_command(
    directory: Path,
    variant: str,
    file: Path,
    epsilon: float | None,
    split: int,
    draw: int,
    by: str | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Print `row,prediction` (rows counted from 0) or write it to `out`; what was used goes to standard error.

    A prediction is a class, or the number that a regression gives. A model of class ratios gives `class,ratio` of all
    rows, or `set,class,ratio` of the rows with equal values in the column `by`, followed by `low,high` where it knows
    how far off it may be. With `as_json`, prints {"predictions", "guarantee"} or {"ratios", "guarantee"}. Raises
    `InputError`s.
    """
    from scenarios.scores.prediction import LEVEL, RatioPrediction, predict

    found = predict(directory, variant, file, epsilon=epsilon, split=split, draw=draw, by=by)
    print(_told(found.used, chosen=epsilon is not None), file=sys.stderr)
    lines: list[Sequence[Any]]
    if not isinstance(found, RatioPrediction):
        header, lines = ["row", "prediction"], list(enumerate(found.values))
        record: dict[str, Any] = {"predictions": found.values}
    else:
        header, lines = _ratio_table(found, with_sets=by is not None)
        record = {"ratios": [dict(zip(header, line, strict=True)) for line in lines]}
        sets = "" if by is None else f", {len(found.ratios)} sets by {by}"
        intervals = f"; low to high: {LEVEL:.0%} interval" if "low" in header else ""
        print(f"class ratios of {found.rows} rows{sets}{intervals}", file=sys.stderr)
    if out is not None:
        try:
            with out.open("w", newline="", encoding="utf-8") as target:
                _write(target, header, lines)
        except OSError as error:
            raise InputError(f"cannot write to --out {out}: {error.strerror}; name another file") from error
    if as_json:
        print(json.dumps({**record, "guarantee": found.used.guarantee}, indent=2))
    elif out is None:
        _write(sys.stdout, header, lines)


def _ratio_table(found: RatioPrediction, with_sets: bool) -> tuple[list[str], list[Sequence[Any]]]:
    """The header and the lines of a table of class ratios."""
    known = any(ratio.interval is not None for ratios in found.ratios.values() for ratio in ratios)
    header = [*(["set"] if with_sets else []), "class", "ratio", *(["low", "high"] if known else [])]
    lines: list[Sequence[Any]] = [
        [*([name] if with_sets else []), ratio.name, ratio.share, *((ratio.interval or (None, None)) if known else ())]
        for name, ratios in found.ratios.items()
        for ratio in ratios
    ]
    return header, lines


def _write(target: TextIO, header: Sequence[str], lines: Sequence[Sequence[Any]]) -> None:
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(lines)


def _told(used: Used, chosen: bool) -> str:
    """Which release was applied, and what it promises."""
    known = used.guarantee
    if known.get("non_private"):
        promise = f"NON-PRIVATE: {used.source} protects nobody ({known.get('reason')})"
        if "claimed" in known:
            promise += f"; epsilon={known['claimed'][0]:g}, delta={known['claimed'][1]:g} is claimed and not kept"
    else:
        promise = (
            f"{used.source}: epsilon={known['epsilon']:g}, delta={known['delta']:g} for one {known['unit']} "
            f"({known['adjacency']}), {known['mechanism']}"
        )
        if known["parameters"].get("entropy") == "seed":
            promise += " (seeded simulation: not to be published)"
    if chosen or len(used.epsilons) == 1:
        return promise
    choices = ", ".join(f"{epsilon:g}" for epsilon in used.epsilons)
    return f"{promise}; the largest epsilon of {choices}, choose with --epsilon"
