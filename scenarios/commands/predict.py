"""`federation predict`: apply a released model to new rows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from scenarios.commands.options import AsJson
from scenarios.commands.output import csv_lines, save, tell

if TYPE_CHECKING:
    from scenarios.scores.prediction import RatioPrediction, Used


def predict_command(
    directory: Annotated[Path, Argument(metavar="DIR", help="Run directory, or the file of a released model.")],
    file: Annotated[Path, Argument(metavar="FILE", help="New rows: csv, npz, Parquet or svmlight.")],
    variant: Annotated[
        str,
        Option("--variant", metavar="NAME", help="Whose model of a run: by default the only one, or the default's."),
    ] = "default",
    epsilon: Annotated[float | None, Option("--epsilon", help="Which release; default: the largest.")] = None,
    split: Annotated[int, Option("--split", min=0, help="Which split.")] = 0,
    draw: Annotated[int, Option("--draw", min=0, help="Which noise draw.")] = 0,
    by: Annotated[str | None, Option("--by", metavar="COLUMN", help="Class ratios for each value of a column.")] = None,
    out: Annotated[Path | None, Option("--out", metavar="CSV", help="Write here instead of standard output.")] = None,
    as_json: AsJson = False,
) -> None:
    """Apply a released model to new rows.

    Prints csv, `row,prediction` with rows counted from 0: a class, or the number that a regression gives. Models of
    mean_operator and error_marginals add a column `probability_CLASS` for each class; others know none. A model of
    class ratios gives `class,ratio` of all rows, or `set,class,ratio` of the rows with equal values in the column --by,
    followed by `low,high` where it knows how far off it may be. Texts that a spreadsheet would run as formulas stand
    behind an apostrophe. What was used goes to standard error.
    """
    from scenarios.scores.prediction import LEVEL, RatioPrediction, predict

    found = predict(directory, variant, file, epsilon=epsilon, split=split, draw=draw, by=by)
    print(_told(found.used, chosen=epsilon is not None), file=sys.stderr)
    if found.used.remark:
        print(found.used.remark, file=sys.stderr)
    if isinstance(found, RatioPrediction):
        lines = _ratios(found, by)
        record: dict[str, Any] = {"ratios": lines}
        sets = "" if by is None else f", {len(found.ratios)} sets by {by}"
        intervals = f"; low to high: {LEVEL:.0%} interval" if "low" in lines[0] else ""
        print(f"class ratios of {found.rows} rows{sets}{intervals}", file=sys.stderr)
    else:
        lines = [{"row": row, "prediction": one} for row, one in enumerate(found.values)]
        record = {"predictions": found.values}
        if found.probabilities is not None:
            named = [f"probability_{name}" for name in found.classes]
            for line, shares in zip(lines, found.probabilities.tolist(), strict=True):
                line.update(zip(named, shares, strict=True))
            record["probabilities"] = [
                dict(zip(found.classes, row, strict=True)) for row in found.probabilities.tolist()
            ]
    table = csv_lines(lines)
    if out is not None:
        save("--out", out, table)
    text = [] if out else [table.removesuffix("\n")]
    tell(as_json, record | {"guarantee": found.used.guarantee}, text=text, hidden=[*record, "guarantee"])


def _ratios(found: RatioPrediction, by: str | None) -> list[dict[str, Any]]:
    """A line per class of each set; sets have names where rows are told apart."""
    known = any(ratio.interval is not None for ratios in found.ratios.values() for ratio in ratios)
    lines = []
    for name, ratios in found.ratios.items():
        for ratio in ratios:
            low, high = ratio.interval or (None, None)
            line: dict[str, Any] = {} if by is None else {"set": name}
            line |= {"class": ratio.name, "ratio": ratio.share}
            lines.append(line | {"low": low, "high": high} if known else line)
    return lines


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
