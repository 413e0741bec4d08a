"""`federation privacy MECHANISM`: the noise that a guarantee needs, before any data is touched."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table

from scenarios.commands.lba import lba
from scenarios.commands.llp import llp
from scenarios.commands.marginals import error_marginals
from scenarios.commands.moments import mean_operator
from scenarios.commands.proportions import proportions

privacy_app = typer.Typer(no_args_is_help=True, help="Noise scales and guarantees of a mechanism, without data.")
privacy_app.command("proportions")(proportions)
privacy_app.command("llp")(llp)
privacy_app.command("lba")(lba)
privacy_app.command("mean-operator")(mean_operator)
privacy_app.command("error-marginals")(error_marginals)

Noise = Literal["pure", "gaussian"]
Sensitivity = Annotated[float, typer.Option(help="L2 distance by which one unit can move the value.")]
Dimension = Annotated[int, typer.Option(min=1, help="Coordinates of the value.")]
Features = Annotated[int, typer.Option("--dimension", min=1, help="Feature dimension of the linear model.")]
Epsilon = Annotated[float, typer.Option(help="Privacy loss bound.")]
Delta = Annotated[float, typer.Option(help="Probability beyond the bound (Gaussian noise only).")]
Parties = Annotated[int, typer.Option(min=1, help="Number of parties.")]
Classes = Annotated[int, typer.Option(min=2, help="Number of classes.")]
Regularisation = Annotated[float, typer.Option(help="lambda of the regularised risk.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]

_FORMS = ("published", "tight", "diameter")


@privacy_app.command("gaussian")
def gaussian(
    sensitivity: Sensitivity = 1.0,
    dimension: Dimension = 1,
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-6,
    as_json: AsJson = False,
) -> None:
    """Discrete Gaussian noise with the exact analytic calibration."""
    _describe("gaussian", sensitivity, dimension, epsilon, delta, as_json)


@privacy_app.command("l2-gamma")
def l2_gamma(
    sensitivity: Sensitivity = 1.0, dimension: Dimension = 2, epsilon: Epsilon = 1.0, as_json: AsJson = False
) -> None:
    """Pure noise with density falling in the L2 norm (in one dimension: the discrete Laplace)."""
    _describe("pure", sensitivity, dimension, epsilon, 0.0, as_json)


@privacy_app.command("discrete-laplace")
def discrete_laplace(sensitivity: Sensitivity = 1.0, epsilon: Epsilon = 1.0, as_json: AsJson = False) -> None:
    """Pure noise for one number."""
    _describe("pure", sensitivity, 1, epsilon, 0.0, as_json)


@privacy_app.command("soft-vote")
def soft_vote(
    parties: Parties = 1000,
    classes: Classes = 2,
    regularisation: Regularisation = 1e-4,
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-6,
    dimension: Features = 10,
    as_json: AsJson = False,
) -> None:
    """Sensitivities and noise of the soft vote, on its parameters and on its sufficient statistic."""
    _compare("soft_vote", parties, classes, regularisation, epsilon, delta, dimension, as_json)


@privacy_app.command("majority-vote")
def majority_vote(
    parties: Parties = 1000,
    classes: Classes = 2,
    regularisation: Regularisation = 1e-4,
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-6,
    dimension: Features = 10,
    as_json: AsJson = False,
) -> None:
    """Sensitivities and noise of the majority vote's parameters, beside the soft vote's statistic."""
    _compare("majority_vote", parties, classes, regularisation, epsilon, delta, dimension, as_json)


def _describe(noise: Noise, sensitivity: float, dimension: int, epsilon: float, delta: float, as_json: bool) -> None:
    from federation.mechanisms.noise.additive import calibrate

    mechanism = calibrate(noise, sensitivity=sensitivity, dimension=dimension, epsilon=epsilon, delta=delta)
    record: dict[str, Any] = {
        "mechanism": mechanism.name,
        "epsilon": mechanism.epsilon,
        "delta": mechanism.delta,
        **mechanism.parameters,
        "expected_noise_norm": mechanism.expected_noise_norm(),
    }
    profile = {factor * epsilon: mechanism.delta_at(factor * epsilon) for factor in (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)}
    if as_json:
        record["delta_at"] = [{"epsilon": e, "delta": d} for e, d in profile.items()]
        record["assumptions"] = [{"text": a.text, "check": str(a.check)} for a in mechanism.assumptions]
        typer.echo(json.dumps(record, indent=2))
        return
    table = Table("quantity", "value", title=mechanism.name)
    for name, value in record.items():
        table.add_row(name.replace("_", " "), value if isinstance(value, str) else f"{value:.10g}")
    for at, value in profile.items():
        table.add_row(f"delta at epsilon {at:g}", f"{value:.6g}")
    Console().print(table)


def _compare(
    vote: str,
    parties: int,
    classes: int,
    regularisation: float,
    epsilon: float,
    delta: float,
    features: int,
    as_json: bool,
) -> None:
    """One row per sensitivity with both noises: on the model's parameters, and on the statistic of class contrasts."""
    from federation.mechanisms.accounting import sensitivity
    from federation.mechanisms.noise.additive import calibrate

    bound = getattr(sensitivity, vote)
    parameters = features * (1 if classes == 2 else classes)
    values = [
        (
            f"parameters, {form}",
            bound(form, regularisation=regularisation, parties=parties, classes=classes),
            parameters,
        )
        for form in _FORMS
    ]
    values.append(("soft vote statistic", sensitivity.statistic(parties), features * (classes - 1)))
    rows = []
    for what, reach, size in values:
        pure = calibrate("pure", sensitivity=reach, dimension=size, epsilon=epsilon, delta=delta)
        normal = calibrate("gaussian", sensitivity=reach, dimension=size, epsilon=epsilon, delta=delta)
        rows.append(
            {
                "what": what,
                "dimension": size,
                "sensitivity": reach,
                "pure_scale": pure.parameters["scale"],
                "pure_noise_norm": pure.expected_noise_norm(),
                "gaussian_sigma": normal.parameters["scale"],
                "gaussian_noise_norm": normal.expected_noise_norm(),
            }
        )
    if as_json:
        typer.echo(json.dumps({"epsilon": epsilon, "delta": delta, "rows": rows}, indent=2))
        return
    heads = ("what", "dim.", "sensitivity", "pure scale", "pure norm", "Gauss sigma", "Gauss norm")
    table = Table(*heads, title=f"noise at epsilon={epsilon:g}; Gaussian: delta={delta:g}", padding=(0, 0))
    for row in rows:
        table.add_row(*(f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values()))
    Console().print(table)
    typer.echo(
        "Parameters are weights on features of norm at most 1 (an inexact solver adds its slack);\n"
        "the statistic's whitened coordinates have norm at most 1. Compare each noise with what it perturbs."
    )
