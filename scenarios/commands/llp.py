"""`federation privacy llp`: what noisy weighted label sums over bags promise, exactly, from public numbers alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.console import Console
from rich.table import Column, Table

from federation.contract.errors import InputError

if TYPE_CHECKING:
    from federation.mechanisms.bag_sums.design import BagDesign, Weights

_RELEASES = 16  # up to which powers of two are shown

RangeOption = typer.Option("--range", metavar="LOW,HIGH", help="The public range of labels; never taken from data.")


def llp(
    n: Annotated[int, typer.Option("--n", help="Records.")],
    m: Annotated[int, typer.Option("--m", help="Disjoint bags.")],
    k: Annotated[int, typer.Option("--k", help="Records in a bag.")],
    rho: Annotated[float | None, typer.Option(help="Share of records whose labels get noise, in (0, 1].")] = None,
    per_bag: Annotated[int | None, typer.Option(help="Instead of --rho: noisy labels in every bag.")] = None,
    sigma: Annotated[float, typer.Option(help="Standard deviation of the noise on a label.")] = 1.0,
    label_range: Annotated[str, RangeOption] = "0,1",
    weights: Annotated[str, typer.Option(help="gaussian, as published, or signs.")] = "gaussian",
    epsilon: Annotated[float, typer.Option(help="Privacy loss bound.")] = 1.0,
    delta: Annotated[float, typer.Option(help="What the noise that is enough should reach.")] = 1e-6,
    releases: Annotated[int, typer.Option(help="Releases of the same labels, each with fresh bags and noise.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Exact delta of noisy-wtd-LLP, the published theorem's value, and what several releases cost."""
    from federation.mechanisms.bag_sums.accounting import delta as exact_delta
    from federation.mechanisms.bag_sums.composition import composed_delta

    design = _design(n, m, k, rho, per_bag, weights)
    scale: dict[str, Any] = {"sigma": sigma, "label_range": parsed_range(label_range)}
    counts = sorted({2**i for i in range(_RELEASES.bit_length()) if 2**i <= max(releases, _RELEASES)} | {releases})
    record: dict[str, Any] = {
        "n": n,
        "m": m,
        "k": k,
        "noisy": design.noisy,
        "per_bag": design.per_bag,
        "weights": design.weights,
        "sigma": sigma,
        "label_range": list(scale["label_range"]),
        "epsilon": epsilon,
        "delta": exact_delta(epsilon, design, **scale),
        "theorem": _theorem(epsilon, design, **scale),
        "infinite_loss": design.noise_free,
        "sigma_for_delta": _enough(epsilon, delta, design, scale["label_range"]),
        "wanted_delta": delta,
        "releases": [
            {"releases": count, "delta": composed_delta(epsilon, design, releases=count, **scale)} for count in counts
        ],
    }
    if as_json:
        typer.echo(json.dumps(record, indent=2))
        return
    Console().print(_table(record))
    typer.echo(
        "One label may change, within the range; features, bags, weights and which labels are noisy are public.\n"
        "Infinite loss: a bag without noise reveals a label, whatever epsilon and sigma are; --per-bag avoids it."
    )


def parsed_range(text: str) -> tuple[float, float]:
    """LOW,HIGH as two numbers. Raises `InputError` for anything else."""
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--range must be two numbers with a comma between, such as 0,1; got '{text}'") from None
    if not low < high:
        raise InputError(f"--range must name the lower number first, got '{text}'")
    return low, high


def _design(n: int, m: int, k: int, rho: float | None, per_bag: int | None, weights: str) -> BagDesign:
    from federation.mechanisms.bag_sums.design import BagDesign, require_bags
    from federation.numerics.bag_weights import noisy_count

    require_bags(n, m, k)
    if (rho is None) == (per_bag is None):
        raise InputError("give --rho, the share of noisy labels, or --per-bag, how many every bag has, and not both")
    kind = cast("Weights", weights)  # the design refuses others
    if rho is None:
        return BagDesign(n, m, k, per_bag=per_bag, weights=kind)
    return BagDesign(n, m, k, noisy=noisy_count(rho, n), weights=kind)


def _theorem(epsilon: float, design: BagDesign, sigma: float, label_range: tuple[float, float]) -> float | None:
    """None where the theorem says nothing."""
    from federation.mechanisms.bag_sums.theorem import theorem_delta

    if design.noisy is None or design.weights != "gaussian":
        return None
    return theorem_delta(epsilon, design, sigma=sigma, label_range=label_range)


def _enough(epsilon: float, delta: float, design: BagDesign, label_range: tuple[float, float]) -> float | None:
    """The least sigma for the wanted delta, None when none is enough."""
    from federation.mechanisms.bag_sums.calibration import smallest_sigma

    if 0 < delta <= design.noise_free:
        return None
    return smallest_sigma(epsilon, delta, design, label_range=label_range)


def _table(record: dict[str, Any]) -> Table:
    noisy = f"{record['noisy']} in all" if record["per_bag"] is None else f"{record['per_bag']} in every bag"
    title = (
        f"{record['m']} bags of {record['k']} out of {record['n']} records, {record['weights']} weights, "
        f"noisy labels: {noisy}, noise {record['sigma']:g}, labels from {record['label_range'][0]:g} to "
        f"{record['label_range'][1]:g}"
    )
    table = Table(Column("quantity", no_wrap=True), "value", title=title)
    epsilon = f"epsilon {record['epsilon']:g}"
    table.add_row(f"exact delta at {epsilon}", f"{record['delta']:.4g}")
    table.add_row("delta of the published theorem", _shown(record["theorem"], "covers other designs"))
    table.add_row("infinite loss (a floor for delta)", f"{record['infinite_loss']:.4g}")
    needed = _shown(record["sigma_for_delta"], "no noise is enough")
    table.add_row(f"noise for delta {record['wanted_delta']:g}", needed)
    for row in record["releases"]:
        if row["releases"] > 1:
            table.add_row(f"delta of {row['releases']} releases", f"{row['delta']:.4g}")
    return table


def _shown(value: float | None, otherwise: str) -> str:
    return otherwise if value is None else f"{value:.4g}"
