"""`federation privacy lba`: what weighted sums over bags, without noise, reveal of the labels of one's own file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer
from rich.console import Console
from rich.table import Column, Table

from federation.contract.errors import InputError
from scenarios.commands.llp import RangeOption, parsed_range

if TYPE_CHECKING:
    import numpy as np


def lba(
    file: Annotated[Path, typer.Argument(metavar="DATA", help="A csv, npz or Parquet file with real labels.")],
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of labels.")] = None,
    label_range: Annotated[str | None, RangeOption] = None,
    k: Annotated[int, typer.Option("--k", help="Records in a bag.")] = 64,
    m: Annotated[int | None, typer.Option("--m", help="Disjoint bags; default: as many as the rows allow.")] = None,
    epsilon: Annotated[float, typer.Option(help="Privacy loss bound.")] = 1.0,
    delta: Annotated[float, typer.Option(help="What noise on the sums should reach on all data.")] = 1e-6,
    outside: Annotated[str, typer.Option(help="refuse or clip labels outside the range.")] = "refuse",
    seen: Annotated[int, typer.Option(min=1, help="Random bags to look at, at most all m.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Of the bags that are looked at.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Per-instance delta of wtd-LBA on a file (DATA DEPENDENT, no guarantee), and the noise that would give one."""
    from federation.contract.randomness import NoiseBits
    from federation.mechanisms.bag_sums import repaired
    from federation.mechanisms.bag_sums.per_instance import DATA_DEPENDENT, per_instance_delta
    from federation.numerics.bag_weights import disjoint_bags

    if label_range is None:
        raise InputError("--range LOW,HIGH must declare the public range of labels; it cannot be taken from the data")
    bounds = parsed_range(label_range)
    rows, labels = _read(file, label, bounds, outside)
    count = max(1, len(labels) // max(k, 1)) if m is None else m
    drawn = disjoint_bags(len(labels), count, k, NoiseBits(seed, "bags to look at"))
    found = per_instance_delta(
        epsilon, rows, labels, drawn[:seen], label_range=bounds, inclusion=drawn.size / len(labels)
    )
    mechanism = repaired.calibrate(len(labels), len(drawn), k, label_range=bounds, epsilon=epsilon, delta=delta)
    record: dict[str, Any] = found.to_dict() | {
        "n": len(labels),
        "m": len(drawn),
        "tau_for_a_guarantee": mechanism.tau,
        "guaranteed_delta": delta,
    }
    if as_json:
        typer.echo(json.dumps(record, indent=2))
        return
    Console().print(_table(record))
    typer.echo(f"NOT A GUARANTEE: {DATA_DEPENDENT}.")
    typer.echo(
        f"Noise of standard deviation {mechanism.tau:.4g} on every sum of labels gives one for all data: "
        f"(epsilon, delta) = ({epsilon:g}, {delta:g}) for one label."
    )


def _read(file: Path, label: str | None, bounds: tuple[float, float], outside: str) -> tuple[np.ndarray, np.ndarray]:
    """Features (n, d) with texts as indicators and a column of ones, and labels (n,) in the range."""
    import numpy as np

    from federation.features import feature_map as features
    from scenarios.data.files import read_table
    from scenarios.data.tables import Outside

    if outside not in get_args(Outside):
        raise InputError(f"--outside must be refuse or clip, got '{outside}'")
    table = read_table(file, label, real=True).with_range(bounds, cast(Outside, outside))
    rows = table.rows(np.arange(len(table)))
    if not np.all(np.isfinite(rows)):
        column = table.columns[int(np.flatnonzero(~np.isfinite(rows).all(axis=0))[0])]
        raise InputError(f"{file}: column '{column}' has missing values; fill them or remove the rows")
    return features.fit(["constant"], rows, table.text).transform(rows), table.labels


def _table(record: dict[str, Any]) -> Table:
    title = (
        f"per-instance delta at epsilon {record['at_epsilon']:g}: {record['bags_seen']} of {record['m']} bags of "
        f"{record['size']} records"
    )
    table = Table(Column("quantity", no_wrap=True), "value", title=title)
    table.add_row("mean over records of bags", f"{record['per_instance_delta_mean']:.4g}")
    table.add_row("most exposed record of a bag, on average", f"{record['per_instance_delta_mean_largest']:.4g}")
    table.add_row("most exposed record of all", f"{record['per_instance_delta_largest']:.4g}")
    table.add_row("share of records that are revealed", f"{record['revealed_share']:.4g}")
    table.add_row("probability that a record is in a bag", f"{record['inclusion']:.4g}")
    return table
