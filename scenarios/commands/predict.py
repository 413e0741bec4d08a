"""`federation predict`: apply a released model to new rows."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from federation.errors import InputError

if TYPE_CHECKING:
    from scenarios.prediction import Prediction


def predict_command(
    directory: Path,
    variant: str,
    file: Path,
    epsilon: float | None,
    split: int,
    draw: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Print `row,prediction` (rows counted from 0) or write it to `out`; what was used goes to standard error.

    With `as_json`, prints {"predictions", "guarantee"}. Raises `InputError`s.
    """
    from scenarios.prediction import predict

    found = predict(directory, variant, file, epsilon=epsilon, split=split, draw=draw)
    print(_used(found, chosen=epsilon is not None), file=sys.stderr)
    if out is not None:
        try:
            with out.open("w", newline="", encoding="utf-8") as target:
                _write(target, found.classes)
        except OSError as error:
            raise InputError(f"cannot write to --out {out}: {error.strerror}; name another file") from error
    if as_json:
        print(json.dumps({"predictions": found.classes, "guarantee": found.guarantee}, indent=2))
    elif out is None:
        _write(sys.stdout, found.classes)


def _write(target: TextIO, classes: tuple[str, ...]) -> None:
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(["row", "prediction"])
    writer.writerows(enumerate(classes))


def _used(found: Prediction, chosen: bool) -> str:
    """Which release was applied, and what it promises."""
    if found.non_private:
        return f"NON-PRIVATE: {found.source} protects nobody ({found.guarantee.get('reason')})"
    known = found.guarantee
    promise = (
        f"{found.source}: epsilon={known['epsilon']:g}, delta={known['delta']:g} for one {known['unit']} "
        f"({known['adjacency']}), {known['mechanism']}"
    )
    if known["parameters"].get("entropy") == "seed":
        promise += " (seeded simulation: not to be published)"
    if chosen or len(found.epsilons) == 1:
        return promise
    choices = ", ".join(f"{epsilon:g}" for epsilon in found.epsilons)
    return f"{promise}; the largest epsilon of {choices}, choose with --epsilon"
