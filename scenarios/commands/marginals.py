"""`federation privacy error-marginals`: the noise of an exchange of binned errors, from public numbers alone."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Column, Table

from federation.contract.errors import InputError

if TYPE_CHECKING:
    from federation.contract.guarantee import Adjacency, Unit
    from federation.mechanisms.marginals.noise import MarginalNoise
    from federation.mechanisms.marginals.published import PublishedRates

_ADJACENCIES = {"row": ("add_remove", "replace"), "label": ("replace",)}


def error_marginals(
    features: Annotated[int, typer.Option(help="Features, each with bins of its own.")],
    queries: Annotated[int, typer.Option(help="Queries of the exchange, that for row counts included.")],
    epsilon: Annotated[float, typer.Option(help="Privacy loss bound of all queries together.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Probability beyond the bound; 0 asks for pure noise.")] = 1e-5,
    protect: Annotated[str, typer.Option(help="row, or label where features are public.")] = "row",
    adjacency: Annotated[
        str | None,
        typer.Option(help="add_remove or replace of a row; default: add_remove of a row, replace of a label."),
    ] = None,
    rows: Annotated[int | None, typer.Option(help="Target rows, a public number: shows the bins of a feature.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Noise on the error marginals of EXPRIL: pure, Gaussian and as published, and which of them auto takes."""
    from federation.mechanisms.marginals.noise import calibrate
    from federation.mechanisms.marginals.published import PublishedRates

    if rows is not None and rows < 1:
        raise InputError(f"--rows must be at least 1, got {rows}")
    unit, change = _protected(protect, adjacency)
    numbers: dict[str, Any] = {"features": features, "queries": queries, "epsilon": epsilon, "delta": delta}
    chosen = calibrate("auto", **numbers, unit=unit, adjacency=change)
    found = [_candidate("pure", calibrate("pure", **numbers, unit=unit, adjacency=change), rows)]
    if delta > 0:
        found.append(_candidate("gaussian", calibrate("gaussian", **numbers, unit=unit, adjacency=change), rows))
    found.append(_published(PublishedRates(features, queries, epsilon), unit, change, rows))
    taken = "gaussian" if chosen.delta > 0 else "pure"
    if as_json:
        known = {"unit": str(unit), "adjacency": str(change), "target_rows": rows, "auto": taken}
        typer.echo(json.dumps(numbers | known | {"mechanisms": [asdict(one) for one in found]}, indent=2))
        return
    Console().print(
        _table(found, taken, f"noise on a cell: {features} features, {queries} queries, one {unit} by {change}")
    )
    typer.echo(
        f"Use noise: {taken} (what auto takes, by the standard deviation of a cell).\n"
        "Epsilon is that of all queries together, whose number is fixed beforehand. A cell counts the errors, or the\n"
        "correct rows, of a hypothesis in one bin of one feature."
    )
    for one in found:
        if one.note:
            typer.echo(f"{one.noise}: {one.note}.")


@dataclass(frozen=True)
class _Candidate:
    """A mechanism with its public numbers; `epsilon` and `delta` are None where it gives no guarantee."""

    noise: str
    scale: float
    deviation: float
    epsilon: float | None
    delta: float | None
    epsilon_per_query: float | None
    bins: int | None
    note: str = ""


def _protected(protect: str, adjacency: str | None) -> tuple[Unit, Adjacency]:
    """Raises `InputError` for what error marginals do not protect."""
    from federation.contract.guarantee import Adjacency, Unit

    if protect not in _ADJACENCIES:
        raise InputError(f"--protect must be {' or '.join(_ADJACENCIES)}, got '{protect}'")
    allowed = _ADJACENCIES[protect]
    if adjacency is not None and adjacency not in allowed:
        raise InputError(f"--adjacency of a {protect} must be {' or '.join(allowed)}, got '{adjacency}'")
    return Unit(protect), Adjacency(adjacency or allowed[0])


def _candidate(name: str, noise: MarginalNoise, rows: int | None) -> _Candidate:
    return _described(name, noise, rows, noise.epsilon, noise.delta, noise.per_query().epsilon)


def _published(rates: PublishedRates, unit: Unit, adjacency: Adjacency, rows: int | None) -> _Candidate:
    """Without a guarantee, and with the reason, for rows."""
    try:
        made = rates.guarantee(unit=unit, adjacency=adjacency)
    except InputError as error:
        return _described("published", rates, rows, note=str(error))
    note = "rates of errors, divided by exact public numbers of rows: the same noise as pure, less what clipping loses"
    return _described("published", rates, rows, made.epsilon, made.delta, rates.per_query().epsilon, note)


def _described(
    name: str,
    noise: MarginalNoise | PublishedRates,
    rows: int | None,
    epsilon: float | None = None,
    delta: float | None = None,
    epsilon_per_query: float | None = None,
    note: str = "",
) -> _Candidate:
    from aggregator.protocols.error_marginals.public_rules import bins_per_feature, published_bins

    rule = published_bins if name == "published" else bins_per_feature
    bins = None if rows is None else rule(rows, noise.features, noise.deviation)
    return _Candidate(name, float(noise.scale), noise.deviation, epsilon, delta, epsilon_per_query, bins, note)


def _table(found: list[_Candidate], taken: str, title: str) -> Table:
    heads = ["scale", "std. dev.", "epsilon", "delta", "epsilon of a query"]
    with_bins = found[0].bins is not None
    table = Table(Column("noise", no_wrap=True), *heads, *(["bins of a feature"] if with_bins else []), title=title)
    for one in found:
        values = (one.scale, one.deviation, one.epsilon, one.delta, one.epsilon_per_query)
        shown = ["none" if value is None else f"{value:.4g}" for value in values]
        table.add_row(
            f"{one.noise} *" if one.noise == taken else one.noise, *shown, *([str(one.bins)] if with_bins else [])
        )
    return table
