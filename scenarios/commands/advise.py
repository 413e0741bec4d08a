"""`federation advise`: which mechanism for private labels to use, from public numbers, and a scenario that runs it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Option

from federation.contract.errors import InputError
from scenarios.commands.options import RANGE, AsJson, parsed_range
from scenarios.commands.output import save, tell

_FEW, _MANY = 3, 12  # splits and draws of the written scenario stay quick to run

Task = Literal["regression", "classification"]
Trust = Literal["aggregator", "none"]


def advise(
    rows: Annotated[int, Option("--n", min=2, help="Rows of all parties together.")],
    columns: Annotated[int, Option("--d", min=1, help="Features of a row, without the constant.")],
    parties: Annotated[int, Option(min=1, help="Parties that the rows are spread over.")] = 1,
    epsilon: Annotated[float, Option(help="Privacy loss of one label.")] = 1.0,
    delta: Annotated[float, Option(help="0 compares pure mechanisms only.")] = 1e-6,
    task: Annotated[Task, Option(help="Real labels, or two classes seen as 0 and 1.")] = "regression",
    trust: Annotated[
        Trust, Option(help="none: every party adds its own noise; aggregator: it may hold all rows and labels.")
    ] = "none",
    label_range: Annotated[str | None, RANGE] = None,
    residual: Annotated[
        float | None, Option(help="Variance of labels around the best linear model; default: the largest.")
    ] = None,
    source: Annotated[str, Option(help="Data of the scenario: a data set or a file.")] = "my.csv",
    label: Annotated[str, Option(help="Column of the labels, for a file.")] = "y",
    write: Annotated[Path | None, Option(metavar="FILE", help="Write the scenario here.")] = None,
    as_json: AsJson = False,
) -> None:
    """Rank the mechanisms for private labels by the excess risk that public numbers predict, and say why.

    Predicted is the risk of least squares; releases are shrunk by their noise, and have less where that is large.
    Without --range, labels have the documented range of the --source, or lie between 0 and 1.
    """
    from aggregator.advice.ranking import rank
    from scenarios.settings.suited_protocols import advised_options, advised_protocols
    from scenarios.settings.yaml_rules import dump

    bounds = _documented(source, task) if label_range is None else parsed_range(label_range)
    found = rank(
        rows, columns + 1, parties, epsilon, delta, label_range=bounds, residual=residual, trust=trust, task=task
    )
    advice = [asdict(one) | {"options": advised_options(one)} for one in found]
    best = advice[0]
    name = " ".join([best["mechanism"], *(f"{key}={value}" for key, value in best["options"].items())])
    text, scenario = [f"Use {name}: {best['why']}."], None
    if task == "classification":
        if write is not None:
            raise InputError("--write is for --task regression: the advice for two classes has no scenario of its own")
        numbers = f"--rows {rows} --d {columns + 1} --parties {parties} --epsilon {epsilon:g} --delta {delta:g}"
        text.append(f"Not ranked is mean_operator, for two classes: federation privacy mean-operator {numbers}")
    else:
        scenario = {
            "name": "advised",
            "data": _data(source, label, bounds),
            "parties": {"count": 1 if trust == "aggregator" else parties},  # who may hold all rows is one party
            "protocols": [
                *advised_protocols(found),
                {"kind": "pooled"},
                {"kind": "constant"},
            ],
            "privacy": {"epsilon": epsilon, **({"delta": delta} if delta > 0 else {})},
            "trials": {"splits": _FEW, "noise": _MANY // _FEW},
        }
        if write is None:
            text.append("Add --write FILE for a scenario that compares the leading ones on your data.")
        else:
            save("--write", write, dump(scenario))
            text.append(f"wrote {write}; run it with: federation run {write}")
    tell(as_json, {"advice": advice, "scenario": scenario}, text=text, hidden=("scenario", "why"))


def _documented(source: str, task: Task) -> tuple[float, float]:
    """The range of labels of a data set, else 0 to 1. Raises `InputError` for one without real labels."""
    from scenarios.data.catalogue import entry

    known = entry(source)
    if known is not None and not known.regression and task == "regression":
        raise InputError(f"--source {source} has classes, not real labels; name another data set or a file")
    return (0.0, 1.0) if known is None or known.label_range is None else known.label_range


def _data(source: str, label: str, bounds: tuple[float, float]) -> dict[str, Any]:
    """What a scenario says of a data set, and of a file beyond that."""
    from scenarios.data.catalogue import names

    return {"source": source} if source in names() else {"source": source, "label": label, "range": list(bounds)}
