"""`federation advise`: which mechanism for private labels to use, from public numbers, and a scenario that runs it."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from federation.contract.errors import InputError

if TYPE_CHECKING:
    from aggregator.advice.ranking import Advice

_OPTIONS = {"bag_size": "size"}  # as protocols name them
_IMPLIED = ("repaired",)  # what a protocol's default is already
_FEW, _MANY = 3, 12  # splits and draws of the written scenario stay quick to run


class Task(StrEnum):
    """What labels are."""

    REGRESSION = "regression"
    CLASSIFICATION = "classification"


class Trust(StrEnum):
    """Whom parties trust with their rows."""

    AGGREGATOR = "aggregator"
    NONE = "none"


def advise(
    rows: Annotated[int, typer.Option("--n", min=2, help="Rows of all parties together.")],
    columns: Annotated[int, typer.Option("--d", min=1, help="Features of a row, without the constant.")],
    parties: Annotated[int, typer.Option(min=1, help="Parties that the rows are spread over.")] = 1,
    epsilon: Annotated[float, typer.Option(help="Privacy loss of one label.")] = 1.0,
    delta: Annotated[float, typer.Option(help="0 compares pure mechanisms only.")] = 1e-6,
    task: Annotated[Task, typer.Option(help="Real labels, or two classes seen as 0 and 1.")] = Task.REGRESSION,
    trust: Annotated[
        Trust, typer.Option(help="none: every party adds its own noise; aggregator: it may hold all rows and labels.")
    ] = Trust.NONE,
    label_range: Annotated[
        str | None,
        typer.Option(
            "--range",
            metavar="LO,HI",
            help="Declared range of real labels; default: the documented one, or 0,1.",
        ),
    ] = None,
    residual: Annotated[
        float | None, typer.Option(help="Variance of labels around the best linear model; default: the largest.")
    ] = None,
    source: Annotated[str, typer.Option(help="Data of the scenario: a data set or a file.")] = "my.csv",
    label: Annotated[str, typer.Option(help="Column of the labels, for a file.")] = "y",
    write: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the scenario here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Rank the mechanisms for private labels by the excess risk that public numbers predict, and say why."""
    from aggregator.advice.ranking import rank

    lowest, highest = _documented(source, task) if label_range is None else _range(label_range)
    advice = rank(
        rows,
        columns + 1,
        parties,
        epsilon,
        delta,
        label_range=(lowest, highest),
        trust=trust.value,
        task=task.value,
        residual=residual,
    )
    scenario = None
    if task is Task.REGRESSION:
        scenario = _scenario(advice, source, label, (lowest, highest), parties, trust, epsilon, delta)
    elif write is not None:
        raise InputError("--write is for --task regression: the advice for two classes has no scenario of its own")
    if write is not None and scenario is not None:
        _save(write, scenario)
    if as_json:
        print(json.dumps({"advice": [_record(one) for one in advice], "scenario": scenario}, indent=2))
        return
    Console().print(_table(advice))
    typer.echo(f"Use {_name(advice[0])}: {advice[0].why}.")
    if task is Task.CLASSIFICATION:
        numbers = f"--rows {rows} --d {columns + 1} --parties {parties} --epsilon {epsilon:g} --delta {delta:g}"
        typer.echo(f"Not ranked is mean_operator, for two classes: federation privacy mean-operator {numbers}")
    if scenario is not None and write is None:
        typer.echo("Add --write FILE for a scenario that compares the leading ones on your data.")
    elif write is not None:
        typer.echo(f"wrote {write}; run it with: federation run {write}")


def _documented(source: str, task: Task) -> tuple[float, float]:
    """The range of labels of a data set, else 0 to 1. Raises `InputError` for one without real labels."""
    from scenarios.data.catalogue import entry

    known = entry(source)
    if known is not None and not known.regression and task is Task.REGRESSION:
        raise InputError(f"--source {source} has classes, not real labels; name another data set or a file")
    return (0.0, 1.0) if known is None or known.label_range is None else known.label_range


def _range(text: str) -> tuple[float, float]:
    try:
        lowest, highest = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--range must be two numbers with a comma between, such as 0,52; got '{text}'") from None
    return lowest, highest


def _name(advice: Advice) -> str:
    return " ".join([advice.mechanism, *(f"{name}={value}" for name, value in _protocol(advice).items())])


def _protocol(advice: Advice) -> dict[str, Any]:
    """The options of the protocol that the advice is about."""
    return {_OPTIONS.get(name, name): value for name, value in advice.options.items() if name not in _IMPLIED}


def _record(advice: Advice) -> dict[str, Any]:
    return {
        "mechanism": advice.mechanism,
        "options": _protocol(advice),
        "predicted_excess": advice.predicted_excess,
        "delta": advice.delta,
        "why": advice.why,
    }


def _table(advice: list[Advice]) -> Table:
    table = Table("mechanism", "predicted excess", "delta", title="Mechanisms for private labels, best first")
    for one in advice:
        table.add_row(_name(one), f"{one.predicted_excess:.4g}", f"{one.delta:g}")
    return table


def _scenario(
    advice: list[Advice],
    source: str,
    label: str,
    label_range: tuple[float, float],
    parties: int,
    trust: Trust,
    epsilon: float,
    delta: float,
) -> dict[str, Any]:
    """A scenario that compares the leading mechanisms; a trusted aggregator is one party that holds all rows."""
    from scenarios.data.catalogue import names

    data: dict[str, Any] = {"source": source}
    if source not in names():
        data |= {"label": label, "range": list(label_range)}
    leading = [{"kind": one.mechanism, **_protocol(one)} for one in advice[:_FEW]]
    return {
        "name": "advised",
        "data": data,
        "parties": {"count": 1 if trust is Trust.AGGREGATOR else parties},
        "protocols": [*leading, {"kind": "pooled"}],
        "privacy": {"epsilon": epsilon, **({"delta": delta} if delta > 0 else {})},
        "trials": {"splits": _FEW, "noise": _MANY // _FEW},
    }


def _save(path: Path, scenario: dict[str, Any]) -> None:
    from scenarios.settings.yaml_rules import dump

    try:
        path.write_text(dump(scenario))
    except OSError as error:
        raise InputError(f"cannot write to --write {path}: {error.strerror}; name another file") from error
