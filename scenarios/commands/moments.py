"""`federation privacy mean-operator`: the noise on the mean of y x by each mechanism, from public numbers alone."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Column, Table

from federation.contract.errors import InputError

if TYPE_CHECKING:
    from federation.mechanisms.moments.calibration import SumNoise


def mean_operator(
    rows: Annotated[int, typer.Option("--rows", help="Rows of all parties, cut to norm 1.")],
    dimension: Annotated[int, typer.Option("--d", help="Features of a row, the constant one included.")],
    epsilon: Annotated[float, typer.Option(help="Privacy loss bound, for one label or one row.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Probability beyond the bound; 0 asks for pure noise.")] = 1e-6,
    parties: Annotated[int, typer.Option(help="Parties among whom the rows are.")] = 1,
    secure_sum: Annotated[
        bool, typer.Option("--secure-sum", help="Shares of one noise: the summation reveals only the sum.")
    ] = False,
    l1_bound: Annotated[
        float | None, typer.Option("--l1-bound", help="Public bound on the L1 norm of rows; default: sqrt(d).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Mechanisms for the mean operator, the mean of y x: honest epsilon, noise, and what to regularise by."""
    from federation.mechanisms.moments.calibration import SumNoiseKind, calibrate

    if not 1 <= parties <= rows:
        raise InputError(f"--parties must be an integer from 1 to --rows, got {parties} for {rows} rows")
    public: dict[str, Any] = {
        "dimension": dimension,
        "epsilon": epsilon,
        "delta": delta,
        "l1_bound": l1_bound,
        "rows": rows,
        "contributors": parties if secure_sum else 0,
    }
    chosen = calibrate("auto", **public)
    kinds: list[SumNoiseKind] = ["pure", "laplace", "gaussian", "published_laplace"]
    noises = {kind: calibrate(kind, **public) for kind in kinds if delta > 0 or kind != "gaussian"}
    releases = 1 if secure_sum else parties
    records = [_record(kind, noise, rows, releases, noise == chosen) for kind, noise in noises.items()]
    if as_json:
        settings = {"rows": rows, "dimension": dimension, "epsilon": epsilon, "delta": delta, "parties": parties}
        typer.echo(json.dumps({**settings, "secure_sum": secure_sum, "mechanisms": records}, indent=2))
        return
    Console().print(_table(records, _title(rows, dimension, epsilon, parties, secure_sum)))
    typer.echo(
        "Noise is that on the mean of y x, whose norm is at most 1: the standard deviation of one coordinate, and the\n"
        "root mean square norm. One label, or one row, may be replaced. published_laplace is meant for rows of L1\n"
        f"norm 1 and claims epsilon {epsilon:g}; shown is what it gives. auto takes the smallest noise norm."
    )
    if secure_sum:
        typer.echo(f"This holds while at least {parties} parties add their shares and only the sum is revealed.")
    if math.sqrt(releases) * chosen.noise_norm() > rows:
        typer.echo("The noise is longer than any mean can be: take more rows, a larger epsilon or fewer features.")


def _record(kind: str, noise: SumNoise, rows: int, releases: int, chosen: bool) -> dict[str, Any]:
    """What so many independent releases make of the mean."""
    from federation.mechanisms.moments.bounds import regularisation

    norm = math.sqrt(releases) * noise.noise_norm() / rows
    return {
        "noise": kind,
        "mechanism": noise.name,
        "epsilon": noise.epsilon,
        "delta": noise.delta,
        "deviation": math.sqrt(releases * noise.variance()) / rows,
        "noise_norm": norm,
        "regularisation": regularisation(norm**2),
        "auto": chosen,
    }


def _title(rows: int, dimension: int, epsilon: float, parties: int, secure_sum: bool) -> str:
    noise = "shares of one noise" if secure_sum else "noise of their own"
    among = f", {parties} parties with {noise}" if parties > 1 else ""
    return f"mean operator of {rows} rows in {dimension} dimensions at epsilon={epsilon:g}{among}"


def _table(records: list[dict[str, Any]], title: str) -> Table:
    heads = ("epsilon", "delta", "deviation", "noise norm", "lambda")
    table = Table(Column("noise", no_wrap=True), *heads, title=title)
    for record in records:
        numbers = (record[key] for key in ("epsilon", "delta", "deviation", "noise_norm", "regularisation"))
        name = f"{record['noise']} (auto)" if record["auto"] else record["noise"]
        table.add_row(name, *(f"{number:.4g}" for number in numbers))
    return table
