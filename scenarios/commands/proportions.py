"""`federation privacy proportions`: what private label proportions cost, and which mechanism to use."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Column, Table

from federation.contract.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from federation.mechanisms.counts.comparison import Candidate

_LARGEST = 2**52
_EXACT = 1e-6  # relative standard error below which a mean counts as exact
_MANY = 12  # classes up to which counts are repeated in a title


def proportions(
    counts: Annotated[
        str | None, typer.Option(metavar="N,N,...", help="Invented counts per class: compare at these.")
    ] = None,
    classes: Annotated[int | None, typer.Option(help="Number of classes, to choose by public numbers.")] = None,
    size: Annotated[int | None, typer.Option(help="Records in a bag, beside --classes.")] = None,
    epsilon: Annotated[float, typer.Option(help="Privacy loss bound.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Probability beyond the bound; 0 asks for pure noise.")] = 1e-6,
    floor: Annotated[
        int | None,
        typer.Option(help="Records that every class surely has (dirichlet_floor); default: the least count."),
    ] = None,
    pseudo_count: Annotated[
        int | None, typer.Option(help="Added to every class (dirichlet_shifted); default: half the bag.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Mechanisms for the label counts of one bag: parameters, claims and expected distortion."""
    from federation.mechanisms.counts.comparison import compare, published_dirichlet, recommended

    _require_public("--floor", floor)
    _require_public("--pseudo-count", pseudo_count)
    what_if = counts is not None
    values = _counts(counts, classes, size)
    chosen, mechanism = recommended(len(values), epsilon, delta)
    rows = compare(values, epsilon, delta, floor=floor, pseudo_count=pseudo_count)
    if what_if:
        rows.append(published_dirichlet(values, epsilon, delta))
    elif floor is None:
        rows = [row for row in rows if row.noise != "dirichlet_floor"]  # a promise that nobody has made
    deviation = mechanism.variance() ** 0.5
    if as_json:
        record = {
            "classes": len(values),
            "size": int(values.sum()),
            "counts": values.tolist() if what_if else None,
            "epsilon": epsilon,
            "delta": delta,
            "recommended": chosen,
            "count_deviation": deviation,
            "rows": [_record(row) for row in rows],
        }
        typer.echo(json.dumps(record, indent=2))
        return
    Console().print(_table(rows, chosen, _title(values, what_if, epsilon, delta)))
    for row in rows:
        if row.note:
            typer.echo(f"{row.noise}: {row.note}.")
    typer.echo(
        f"Use noise: {chosen} (what auto chooses by {len(values)} classes, epsilon and delta alone).\n"
        f"A released count is then off by {deviation:.3g} records (standard deviation)."
    )
    if deviation > values.sum():
        typer.echo(
            "That is more than the bag holds: a release would say nothing. Take a larger epsilon or larger bags."
        )


def _require_public(option: str, value: int | None) -> None:
    from federation.mechanisms.counts.dirichlet import MAX_FLOOR

    if value is not None and not 1 <= value <= MAX_FLOOR:
        raise InputError(f"{option} must be a whole number from 1 to {MAX_FLOOR}, got {value}")


def _counts(counts: str | None, classes: int | None, size: int | None) -> np.ndarray:
    """The counts of either form as an array; `InputError` for none, both or impossible ones."""
    from federation.mechanisms.counts.additive import equal_counts

    if counts is not None:
        if classes is not None or size is not None:
            raise InputError("--counts stands alone: leave out --classes and --size, which follow from it")
        return _parsed(counts)
    if classes is None or size is None:
        raise InputError("give --counts N,N,... to compare at invented counts, or --classes and --size to choose")
    if classes < 2:
        raise InputError(f"--classes must be at least 2, got {classes}")
    if not 1 <= size <= _LARGEST:
        raise InputError(f"--size must be at least 1 and at most 2^52, got {size}")
    return equal_counts(classes, size)


def _parsed(text: str) -> np.ndarray:
    import numpy as np

    from federation.mechanisms.counts.additive import checked_counts

    try:
        values = [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"--counts must be whole numbers with commas between, such as 50,50,900; got '{text}'"
        ) from None
    if len(values) < 2:
        raise InputError(f"--counts must name two classes or more, got '{text}'")
    if min(values) < 0 or max(values) > _LARGEST:
        raise InputError(f"--counts must lie between 0 and 2^52, got '{text}'")
    return checked_counts(np.array(values), len(values))


def _record(row: Candidate) -> dict[str, Any]:
    record = asdict(row)
    expected = record.pop("distortion") or {"mean": None, "standard_error": None}
    return record | {"l1": expected["mean"], "l1_standard_error": expected["standard_error"]}


def _title(values: np.ndarray, what_if: bool, epsilon: float, delta: float) -> str:
    listed = ",".join(map(str, values)) if what_if and len(values) <= _MANY else f"{len(values)} classes"
    where = f"counts {listed}" if what_if else f"{listed} and {values.sum()} records, at equal counts"
    return f"mean L1 error of released proportions: {where}; epsilon={epsilon:g}, delta={delta:g}"


def _table(rows: list[Candidate], chosen: str, title: str) -> Table:
    table = Table(Column("noise", no_wrap=True), "parameters", "delta", "mean L1", title=title, padding=(0, 0))
    for row in rows:
        expected = row.distortion
        shown = expected is not None and expected.standard_error > _EXACT * expected.mean
        error = f" +- {expected.standard_error:.1g}" if expected and shown else ""
        table.add_row(
            f"{row.noise} *" if row.noise == chosen else row.noise,
            ", ".join(f"{name.replace('_', ' ')} {value:.7g}" for name, value in row.parameters.items()),
            "-" if row.delta is None else f"{row.delta:.3g}{'' if row.private else ' (true)'}",
            "-" if expected is None else f"{expected.mean:.4g}{error}",
        )
    return table
